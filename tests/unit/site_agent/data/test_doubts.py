"""What a site's own people are told of odd cells in their tables, before they say yes."""

import json
from pathlib import Path

import pytest
import yaml

from consortium.study.spec import Study
from site_agent.config import Alias
from site_agent.data.doubts import doubts_about
from site_agent.data.strange_numbers import (
    months_fit,
    part_beyond,
    strange_numbers,
)
from site_agent.data.wording import PLAIN_TABLES, SiteTables
from tests.support.cases import make_study

COLUMNS: dict[str, object] = {
    "diagnosis": {"levels": ["SCZ", "HC"]},
    "iq": {"low": 40, "high": 160},
}


def study_of(columns: dict[str, object] = COLUMNS, **data: object) -> Study:
    values = make_study("average").model_dump(mode="json", exclude_none=True)
    values["features"] = [{"name": "t", "source": "table", "columns": columns}]
    values["data"] = {**values["data"], "detrend": "none", **data}
    return Study.model_validate(values)


def write_site(folder: Path, *lines: str, header: str = "diagnosis iq") -> Path:
    (folder / "participants.tsv").write_text(
        "\n".join((f"participant_id {header}", *lines)).replace(" ", "\t") + "\n"
    )
    return folder


def described(folder: Path, **columns: object) -> None:
    (folder / "participants.json").write_text(json.dumps(columns))


def test_the_sites_people_are_told_of_levels_and_codes_before_they_say_yes(tmp_path: Path) -> None:
    site = write_site(tmp_path, "01 scz -9999", "02 SCZ 100", "03 HC 0", "04 Hc 0", "05 other 161")
    level, code, zero = doubts_about(site, study_of(), PLAIN_TABLES)
    assert "'scz' for 1 participant, which resembles SCZ" in level
    assert "'Hc' for 1 participant, which resembles HC" in level
    assert "aliases: {diagnosis: {levels: {SCZ: [scz], HC: [Hc]}}}" in level
    assert code.startswith("-9999 is in 'iq'")
    assert zero.startswith("0 is in 'iq'")
    aliases = {"diagnosis": Alias(levels={"SCZ": ("scz",), "HC": ("Hc",)})}
    assert list(doubts_about(site, study_of(missing=[-9999, 0]), SiteTables(aliases))) == []


def test_the_field_to_paste_keeps_the_aliases_that_are_there(tmp_path: Path) -> None:
    present = {
        "diagnosis": Alias(column="Dx", levels={"SCZ": ("1",)}),
        "iq": Alias(column="IQ"),
    }
    site = write_site(tmp_path, "01 1 100", "02 scz 100", "03 HC 100", header="Dx IQ")
    (told,) = doubts_about(site, study_of(), SiteTables(present))
    pasted = yaml.safe_load(told.split("write '")[1].split("' into site.yaml")[0])["aliases"]
    assert pasted == {
        "diagnosis": {"column": "Dx", "levels": {"SCZ": ["1", "scz"]}},
        "iq": {"column": "IQ"},
    }
    aliases = {name: Alias(**values) for name, values in pasted.items()}
    assert list(doubts_about(site, study_of(), SiteTables(aliases))) == []


def test_levels_of_all_columns_are_one_field_to_paste(tmp_path: Path) -> None:
    columns = {"diagnosis": {"levels": ["SCZ", "HC"]}, "sex": {"levels": ["F", "M"]}}
    site = write_site(tmp_path, "01 scz f", "02 Scz F", "03 hc m", header="diagnosis sex")
    (told,) = doubts_about(site, study_of(columns), PLAIN_TABLES)
    pasted = yaml.safe_load(told.split("write '")[1].split("' into site.yaml")[0])["aliases"]
    aliases = {name: Alias.model_validate(each) for name, each in pasted.items()}
    assert list(doubts_about(site, study_of(columns), SiteTables(aliases))) == []


def test_nobody_is_bothered_about_values_that_are_meant(tmp_path: Path) -> None:
    site = write_site(tmp_path, "01 SCZ 39", "02 SCZ 100", "03 HC 161", "04 HC n/a", "05 HC 101.5")
    assert list(doubts_about(site, study_of(), PLAIN_TABLES)) == []


def test_who_is_chosen_by_another_spelling_is_told_of(tmp_path: Path) -> None:
    site = write_site(tmp_path, "01 Scz 100")
    study = study_of(persons={"diagnosis": {"levels": ["SCZ"]}})
    assert any("resembles SCZ" in each for each in doubts_about(site, study, PLAIN_TABLES))


def test_ages_in_months_are_told_with_what_part_is_clipped(tmp_path: Path) -> None:
    study = study_of({"age": {"low": 18, "high": 90}})
    months = [f"{n:02d} {240 + 37 * n}" for n in range(10)]
    site = write_site(tmp_path, *months, header="age")
    (told,) = doubts_about(site, study, PLAIN_TABLES)
    assert told.startswith(
        "'age': up to 100% of the participants here are beyond the study's limits"
    )
    assert "18 to 90; a twelfth would fit, as of months" in told
    described(site, age={"Units": "month"})
    (told,) = doubts_about(site, study, PLAIN_TABLES)
    assert "the JSON next to the table gives it in month, the study has 18 to 90" in told
    years = [f"{n:02d} {20 + 3 * n}" for n in range(10)]
    assert list(doubts_about(write_site(tmp_path, *years, header="age"), study, PLAIN_TABLES)) == []


def test_months_are_told_where_a_rule_would_take_nobody(tmp_path: Path) -> None:
    study = study_of(persons={"age": {"low": 18, "high": 65}})
    months = [f"{n:02d} SCZ 100 {240 + 37 * n}" for n in range(10)]
    site = write_site(tmp_path, *months, header="diagnosis iq age")
    (told,) = doubts_about(site, study, PLAIN_TABLES)
    assert "'age': up to 100% of the participants here" in told


def test_few_are_clipped_without_a_word_and_many_columns_are_one_line(tmp_path: Path) -> None:
    names = [f"r{n}" for n in range(8)]
    study = study_of({name: {"low": 1, "high": 4} for name in names})
    mm = [f"{n:02d} " + " ".join(["2.5"] * 8) for n in range(30)]
    site = write_site(tmp_path, *mm, "30 " + " ".join(["4.1"] * 8), header=" ".join(names))
    assert list(doubts_about(site, study, PLAIN_TABLES)) == []
    cm = [f"{n:02d} " + " ".join([f"0.2{n}"] * 8) for n in range(30)]
    (told,) = doubts_about(write_site(tmp_path, *cm, header=" ".join(names)), study, PLAIN_TABLES)
    assert told.startswith("'r0', 'r1', 'r2', 'r3', 'r4' and 3 more: up to 100%")


def test_codes_that_the_sites_own_json_names_are_told(tmp_path: Path) -> None:
    lines = [f"{n:02d} SCZ {90 + n}" for n in range(20)]
    site = write_site(tmp_path, *lines, "20 SCZ 55", "21 SCZ 77")
    assert list(doubts_about(site, study_of(), PLAIN_TABLES)) == []
    described(site, iq={"Levels": {"55": "not available"}, "MissingValues": [77]})
    first, second = doubts_about(site, study_of(), PLAIN_TABLES)
    assert {first[:2], second[:2]} == {"55", "77"}
    assert "the JSON file of the table calls it missing" in first
    assert list(doubts_about(site, study_of(missing=[55, 77]), PLAIN_TABLES)) == []


def test_levels_are_found_by_what_the_sites_own_json_calls_them(tmp_path: Path) -> None:
    site = write_site(tmp_path, "01 1 100", "02 2 100", "03 9 100")
    assert list(doubts_about(site, study_of(), PLAIN_TABLES)) == []
    levels = {"1": "Patient (SCZ)", "2": {"Description": "HC"}, "9": "unknown"}
    described(site, Dx={"Levels": levels})
    assert list(doubts_about(site, study_of(), PLAIN_TABLES)) == []
    described(site, diagnosis={"Levels": levels})
    (told,) = doubts_about(site, study_of(), PLAIN_TABLES)
    assert "'1' ('Patient (SCZ)' in the JSON next to the table) for 1 participant" in told
    assert "aliases: {diagnosis: {levels: {SCZ: ['1'], HC: ['2']}}}" in told


def test_what_codes_of_a_study_mean_here_is_told(tmp_path: Path) -> None:
    site = write_site(tmp_path, "01 1 100", "02 2 100")
    described(site, diagnosis={"Levels": {"1": "control", "2": "patient"}})
    study = study_of({**COLUMNS, "diagnosis": {"levels": ["1", "2"]}})
    (told,) = doubts_about(site, study, PLAIN_TABLES)
    assert "calls 1 'control', 2 'patient'. Check whether the study uses the same levels" in told


@pytest.mark.parametrize("text", ['{"iq": 3}', '{"iq": {"Levels": [1], "Units": 7}}'])
def test_a_description_that_says_nothing_is_passed_over(tmp_path: Path, text: str) -> None:
    site = write_site(tmp_path, "01 SCZ 100")
    (site / "participants.json").write_text(text)
    assert list(doubts_about(site, study_of(), PLAIN_TABLES)) == []


@pytest.mark.parametrize("text", ["", "[1]", "{", "\udcff"])
def test_a_damaged_description_is_not_an_absent_one(tmp_path: Path, text: str) -> None:
    site = write_site(tmp_path, "01 SCZ 100")
    (site / "participants.json").write_text(text, errors="surrogateescape")
    (told,) = doubts_about(site, study_of(), PLAIN_TABLES)
    assert "participants.json is not a JSON object" in told


def test_persons_of_the_table_without_a_folder_are_told_where_images_are_taken(
    tmp_path: Path,
) -> None:
    site = write_site(tmp_path, "01 SCZ 100", "02 SCZ 100", "03 HC 100")
    (site / "sub-01").mkdir()
    assert list(doubts_about(site, study_of(), PLAIN_TABLES)) == []
    series = make_study("ica", analysis={"components": 2})
    (told,) = doubts_about(site, series, PLAIN_TABLES)
    assert "participants.tsv has 2 participants without a folder" in told
    assert "(sub-02, sub-03)" in told
    (site / "participants.tsv").unlink()
    assert list(doubts_about(site, series, PLAIN_TABLES)) == []


@pytest.mark.parametrize(
    ("cells", "codes"),
    [
        ({"-9999": 1, "50": 10, "60": 10}, {"-9999"}),
        ({"999": 1, "50": 10}, {"999"}),
        ({"-1": 2, "50": 10}, {"-1"}),
        ({"0": 2, "50": 10, "40": 3}, {"0"}),  # a limit, and nobody near
        ({"0": 2, "5": 3, "50": 10}, set()),  # the least of a scale that goes on
        ({"0": 9, "100": 9}, set()),  # of two values
        ({"0": 1, "50": 10}, set()),
        ({"-9999": 2, "240": 1, "300": 1, "361": 1, "402": 1}, {"-9999"}),  # beside months
        ({"n/a": 2, "inf": 3, "x": 4, "50": 1}, set()),
    ],
)
def test_codes_are_told_from_what_was_measured(cells: dict[str, int], codes: set[str]) -> None:
    assert {*strange_numbers(cells, 0.0, 100.0)} == codes
    assert {*strange_numbers(cells, 0.0, None)} == set()


def test_what_part_lies_beyond_the_limits_counts_no_codes() -> None:
    cells = {"-9999": 50, "240": 2, "300": 2, "361": 2, "402": 2, "50": 2}
    assert part_beyond(cells, 0.0, 100.0) == 0.8
    assert part_beyond({"101": 2, "50": 5}, 0.0, 100.0) == 0.0
    assert not months_fit(cells, 0.0, 100.0)
    assert months_fit({"240": 2, "300": 2, "361": 2, "402": 2, "-9999": 1}, 18.0, 90.0)


@pytest.mark.parametrize(
    ("file", "text", "column", "like"),
    [
        (
            "fs/sub-*/lh.aparc.stats",
            "# ColHeaders StructName ThickAvg\ninsula 3.0\n",
            "insula_thickavg",
            "insula_ThickAvg",
        ),
        ("fs/sub-*/x_relmat.tsv", "Vis-1\tCont\n1\t0\n0\t1\n", "vis-1-cont", "Vis-1-Cont"),
        ("fs/sub-*/x_timeseries.tsv", "Vis-1\tCont\n1\t0\n", "vis-1-cont", "Vis-1-Cont"),
        ("fs/sub-*/x_relmat.tsv", "Vis-1\tCont\n1\t0\n0\t1\n", "insula-cuneus", None),
    ],
)
def test_a_column_that_no_persons_file_has_is_told_with_what_it_is_like(
    tmp_path: Path, file: str, text: str, column: str, like: str | None
) -> None:
    for person in ("sub-01", "sub-02"):
        path = tmp_path / file.replace("sub-*", person)
        path.parent.mkdir(parents=True)
        path.write_text(text)
    values = study_of().model_dump(mode="json", exclude_none=True)
    columns = {column: {"low": 0, "high": 9}}
    values["features"] = [{"name": "t", "source": "table", "file": file, "columns": columns}]
    found = [*doubts_about(tmp_path, Study.model_validate(values), PLAIN_TABLES)]
    assert len(found) == (like is not None)
    for told in found:
        assert f"has '{column}', and one has '{like}': if that is meant, write 'aliases:" in told
