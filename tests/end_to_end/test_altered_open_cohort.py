"""An open cohort that was altered, exchanged or removed after the study was signed."""

import pytest

from consortium.membership.keys import load_identity
from consortium.membership.roster import read_roster
from consortium.membership.signed_study import sign_study
from consortium.simulation.bids import Recipe, make_consortium
from consortium.simulation.signals import SignalLevels
from tests.support.command_line import enter
from tests.support.local_consortium import STUDY, build, make_scans

COHORT = "cohort.npz"
OPENLY = STUDY.replace("algorithm: ica", "algorithm: group_ica").replace(
    "{components: 2, rounds: 2, pca_solver: moment}",
    f"{{components: 2, replays: 10, anyway: true, open: {COHORT}}}",
)


def make_cohort(study, seed, resolution=30.0):
    """Write an open cohort of 30 simulated participants next to a study; return its bytes."""
    folder = study.parent / f"public-{seed}"
    recipe = Recipe(("open",), 30, seed, 24, 2, resolution, levels=SignalLevels())
    make_consortium(folder, recipe, workers=1)
    said = enter("consortium", "open-cohort", study, folder / "open" / "bids")
    assert said.code == 0, said.err
    return (study.parent / COHORT).read_bytes()


def make(folder, subjects):
    make_scans(folder, subjects)
    make_cohort(folder.parent / "study.yaml", 7)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return build(tmp_path_factory.mktemp("open") / "place", text=OPENLY, make=make)


@pytest.fixture(scope="module")
def contents(place, tmp_path_factory):
    """The signed file, and others, by name."""
    signed = (place.files.study.parent / COHORT).read_bytes()
    flipped = bytearray(signed)
    flipped[len(signed) // 2] ^= 1
    other, fine = (tmp_path_factory.mktemp(name) / "study.yaml" for name in ("other", "fine"))
    text = place.files.study.read_text(encoding="utf-8")
    other.write_text(text, encoding="utf-8")
    fine.write_text(text.replace("resolution: 30", "resolution: 24"), encoding="utf-8")
    return {
        "signed": signed,
        "altered": bytes(flipped),
        "of other participants": make_cohort(other, 8),
        "of another study": make_cohort(fine, 9, 24.0),
    }


def commands(place):
    files = place.files
    there = ("--roster", files.roster)
    own = ("-f", place.site("east"))
    return {
        "check": ("site-agent", "check", files.study, *there, *own),
        "approve": ("site-agent", "approve", files.study, *there, *own, "--yes"),
        "run": (
            *("consortium", "run", files.study, *there, "--keys", files.keys),
            *("--exchange", files.exchange, "--out", place.root / "out"),
        ),
    }


@pytest.mark.parametrize("command", ["check", "approve", "run"])
@pytest.mark.parametrize("kind", ["altered", "of other participants", "of another study", None])
def test_it_is_refused_in_one_sentence(place, contents, kind, command):
    path = place.files.study.parent / COHORT
    if kind is None:
        path.unlink()
    else:
        path.write_bytes(contents[kind])
    said = enter(*commands(place)[command])
    path.write_bytes(contents["signed"])
    assert said.code != 0
    assert COHORT in said.err
    assert ("can't be read" if kind is None else "changed after the coordinator signed") in said.err
    assert len(said.err.strip().splitlines()) == 1
    assert not (place.root / "out").exists()


@pytest.mark.parametrize("command", ["check", "approve", "run"])
def test_one_of_another_study_is_refused_even_if_it_was_signed(place, contents, command):
    files = place.files
    path = files.study.parent / COHORT
    keys = load_identity(files.keys).key
    path.write_bytes(contents["of another study"])
    sign_study(files.study, read_roster(files.roster), keys)
    said = enter(*commands(place)[command])
    path.write_bytes(contents["signed"])
    sign_study(files.study, read_roster(files.roster), keys)
    assert said.code != 0
    assert "must have the study's voxels" in said.err
    assert len(said.err.strip().splitlines()) == 1


def test_the_signed_file_is_accepted(place, contents):
    assert (place.files.study.parent / COHORT).read_bytes() == contents["signed"]
    said = enter(*commands(place)["check"])
    assert said.code == 0, said.err
