"""Similar names: none crosses hemispheres, sides or numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.base.near_names import known_names, names_differ, nearest_name
from consortium.views.table import REGIONS


@pytest.mark.parametrize("hemisphere", [("lh_", "rh_"), ("L_", "R_"), ("left_", "right_")])
@pytest.mark.parametrize("atlas", REGIONS)
def test_no_region_is_advised_for_another_one(atlas: str, hemisphere: tuple[str, str]) -> None:
    sides = ("",) if atlas == "aseg" else hemisphere
    regions = [f"{side}{name}" for side in sides for name in REGIONS[atlas]]
    for wanted in regions:
        like = nearest_name(wanted, [each for each in regions if each != wanted])
        assert like is None or not names_differ(wanted, like)
        assert like is None or like[:2] == wanted[:2]


@pytest.mark.parametrize(
    ("wanted", "there"),
    [
        ("rh_insula_thickness", "lh_insula_thickness"),
        ("Lthal", "Rthal"),
        ("thalamus.L", "thalamus.R"),
        ("lh.insula_area", "lh.insula_thickness"),
        ("score_2", "score_1"),
        ("x12", "x13"),
        ("lh_superiortemporal_thickness", "lh_inferiortemporal_thickness"),
        ("ptsd_pre", "ptsd_post"),
        ("Left-Amygdala", "Right-Amygdala"),
    ],
)
def test_names_of_two_things_are_never_advised(wanted: str, there: str) -> None:
    assert nearest_name(wanted, [there]) is None


@given(st.sampled_from(["age", "sex", "lh_insula_thickness"]), st.sampled_from("_ .-"))
def test_a_name_in_other_letters_is_advised(name: str, sign: str) -> None:
    assert nearest_name(name, [name.upper(), "zzz"]) == name.upper()
    assert nearest_name(name, [name + sign]) == name + sign


def test_an_unknown_name_comes_with_those_that_exist_and_the_nearest() -> None:
    assert known_names("x", []) == "There are none."
    assert known_names("x", ["age"]) == "There is 'age'."
    assert known_names("epsilom", ["delta", "epsilon"]).endswith("Did you mean 'epsilon'?")
    many = [f"c{n}" for n in range(20)]
    assert known_names("c", many).endswith("'c11' and 8 more.")
