"""Tables as hospitals have them."""

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from consortium.errors import DataError
from consortium.views.table import REGIONS, TableView
from site_agent.config import Alias
from site_agent.data.people import chosen_by
from site_agent.data.tsv import read_table
from site_agent.data.wording import SiteTables, Wording
from tests.support.cases import make_study

THICK = {"low": 1.0, "high": 4.0}
WARDS = {"low": 20, "high": 80}


def view(file: str = "t", columns: object = None, **fields: object) -> TableView:
    columns = columns or {"lh_bankssts_thickness": THICK}
    return TableView.model_validate(
        {"name": "t", "source": "table", "file": file, "columns": columns, **fields}
    )


@pytest.mark.parametrize(
    "text",
    [
        "lh.aparc.thickness\tlh_bankssts_thickness\teTIV\nsub-01\t2.5\t1\n02\t4.0\t2\n",
        "lh.aparc.thickness,lh_bankssts_thickness\nsub-01,2.5\n02,4.0\n",
        'SubjID,Dx,"lh_bankssts_thickness"\nsub-01,"a, b",2.5\nsub-02,x,4\n',
        "Measure:volume\tlh_bankssts_thickness\nsub-01\t2.5\nsub-02\t4\n",
        "\ufeffsubject_id, lh_bankssts_thickness\r\n01, 2.5\r\n02, 4\r\n",
        "eTIV,participant_id,lh_bankssts_thickness\n9,sub-01,2.5\n9,sub-02,4\n",
    ],
)
def test_tables_are_read_as_freesurfer_enigma_and_bids_write_them(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "t").write_text(text, encoding="utf-8", newline="")
    vectors, lacking = read_table(tmp_path, view())
    assert {label: vector.tolist() for label, vector in vectors.items()} == {"01": [0], "02": [1]}
    assert lacking == {}


@pytest.mark.parametrize("header", ["age,lh_bankssts_thickness", "x.lh.y\tlh_bankssts_thickness"])
def test_another_first_column_names_nobody(tmp_path: Path, header: str) -> None:
    (tmp_path / "t").write_text(f"{header}\n1,2\n")
    with pytest.raises(DataError, match="column 'participant_id' is required"):
        read_table(tmp_path, view())


def test_one_pattern_stands_for_all_regions(tmp_path: Path) -> None:
    columns = {"lh_*_thickness": THICK, "rh_*_thickness": THICK, "age": WARDS}
    found = view(columns=columns, regions="desikan")
    assert found.size(0, 0) == 69
    assert found.labels[0] == "lh_bankssts_thickness"
    assert found.labels[34:36] == ("rh_bankssts_thickness", "rh_caudalanteriorcingulate_thickness")
    header = "\t".join(("participant_id", *found.labels))
    (tmp_path / "t").write_text(header + "\n01" + "\t2.5" * 68 + "\t50\n")
    vectors, _ = read_table(tmp_path, found)
    np.testing.assert_array_equal(vectors["01"], np.zeros(69))
    assert view(columns={"lh_*": THICK}, regions=["a", "b"]).labels == ("lh_a", "lh_b")
    whole = view(columns={"rh_*_area": THICK}, regions="destrieux").labels
    assert whole[0] == "rh_G&S_frontomargin_area"
    assert {name: len(set(each)) for name, each in REGIONS.items()} == {
        "desikan": 34,
        "destrieux": 74,
        "aseg": 14,
    }


@pytest.mark.parametrize(
    ("columns", "regions"),
    [
        ({"lh_*": THICK}, ()),
        ({"age": THICK}, "desikan"),
        ({"lh_*_*_*": THICK}, "desikan"),
        ({"*": THICK, "insula": THICK}, "desikan"),
        ({"*": THICK}, "schaefer"),
    ],
)
def test_a_pattern_without_regions_or_twice_is_refused(columns: object, regions: object) -> None:
    with pytest.raises(ValidationError, match=r"regions|not a name of a column|appears twice"):
        view(columns=columns, regions=regions)


def test_numbers_that_stand_for_nothing_are_missing_whatever_they_look_like(tmp_path: Path) -> None:
    lines = ["participant_id\tage\tsex", "01\t-9999\tF", "02\t-9999.0\tF", "03\t50\t999"]
    (tmp_path / "t").write_text("\n".join([*lines, "04\tNA\tF", "05\t20\tF"]) + "\n")
    both = view(columns={"age": WARDS, "sex": {"levels": ["F", "M"]}})
    vectors, lacking = read_table(tmp_path, both, Wording((-9999.0, 999.0)))
    assert set(vectors) == {"05"}
    reasons = {label: each.reason for label, each in lacking.items()}
    chosen = dict.fromkeys(("01", "02", "03"), "does-not-fit")  # the study's own choice
    assert reasons == {**chosen, "04": "no-view"}
    assert "a code for missing" in lacking["01"].detail
    assert set(read_table(tmp_path, both)[0]) == {"01", "02", "05"}  # counted as the limit


def test_who_lacks_more_than_may_be_by_the_studys_codes_is_left_out_by_its_choice(
    tmp_path: Path,
) -> None:
    lines = ["participant_id\ta\tb\tc", "01\t\t7\t1", "02\t\t\t1", "03\t7\t1\t1"]
    (tmp_path / "t").write_text("\n".join(lines) + "\n")
    limits = {"low": 0, "high": 9}
    gappy = view(columns={"a": limits, "b": limits, "c": limits}, gaps=0.34)
    vectors, lacking = read_table(tmp_path, gappy, Wording((7.0,)))
    assert set(vectors) == {"03"}
    assert {label: each.reason for label, each in lacking.items()} == {
        "01": "does-not-fit",
        "02": "no-view",
    }


def test_rules_read_missing_numbers_and_the_sites_own_words_too(tmp_path: Path) -> None:
    lines = ["participant_id\tDx\tiq", "sub-01\tscz\t-9999", "sub-02\t1\t90", "sub-03\thc\t99"]
    (tmp_path / "participants.tsv").write_text("\n".join(lines) + "\n")
    rules = {"diagnosis": {"levels": ["SCZ"]}, "iq": {"high": 200}}
    data = make_study("average").data.model_validate({"persons": rules, "missing": [-9999]})
    aliases = {"diagnosis": Alias(column="Dx", levels={"SCZ": ("scz", "1"), "HC": ("hc",)})}
    out = chosen_by(tmp_path, data, SiteTables(aliases))(["01", "02", "03"])
    assert sorted(each.label for each in out) == ["01", "03"]


def test_a_value_here_means_one_level() -> None:
    with pytest.raises(ValidationError, match="'1' means two"):
        Alias(levels={"SCZ": ("1",), "HC": ("1", "0")})


def test_a_column_of_other_capitals_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("participant_id\tDiagnosis\n01\tSCZ\n")
    levels = {"diagnosis": {"levels": ["SCZ", "HC"]}}
    with pytest.raises(DataError, match=r"column 'Diagnosis'.*aliases: {diagnosis: {column: Diag"):
        read_table(tmp_path, view(columns=levels))
    wording = Wording(tables=SiteTables({"diagnosis": Alias(column="Diagnosis")}))
    assert read_table(tmp_path, view(columns=levels), wording)[0]["01"].tolist() == [-1]
