"""FreeSurfer's stats files as a view: regions by name, persons by folder."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from consortium.errors import DataError
from consortium.views.table import TableView
from site_agent.config import Alias
from site_agent.data.personal import pair_cells
from site_agent.data.tsv import read_table
from site_agent.data.wording import SiteTables, Wording

UNIT = {"low": -1, "high": 1}
MATRIX = np.array([[1.0, 0.5, -0.2], [0.5, 1.0, 0.1], [-0.2, 0.1, 1.0]])
APARC = """\
# Title Segmentation Statistics
# Measure Cortex, MeanThickness, Mean Thickness, {mean}, mm
# ColHeaders StructName NumVert SurfArea GrayVol ThickAvg
bankssts   1200  800  2100  {thick}
insula     2200  1500 6900  3.0
"""
COLUMNS = {
    "bankssts_ThickAvg": {"low": 1, "high": 4},
    "insula_GrayVol": {"low": 0, "high": 13800},
    "MeanThickness": {"low": 1, "high": 4},
}


def view_pairs(
    file: str = "d/sub-*/func/sub-*_task-rest_relmat.tsv", **fields: object
) -> TableView:
    given = {"columns": {"*-*": UNIT}, "regions": ["LH_Vis_1", "RH-Cont", "7"], **fields}
    return TableView.model_validate({"name": "edges", "source": "table", "file": file, **given})


def written(names: list[str], *, lines: bool, matrix: np.ndarray = MATRIX) -> str:
    """As XCP-D writes a matrix, with the names of its lines or without."""
    rows = [[*(["Node"] if lines else []), *names]]
    for name, row in zip(names, matrix, strict=True):
        rows.append([*([name] if lines else []), *(str(x) for x in row)])
    return "\n".join("\t".join(row) for row in rows) + "\n"


def put_pairs(folder: Path, person: str, text: str, end: str = "task-rest_relmat.tsv") -> Path:
    path = folder / "d" / person / "func" / f"{person}_{end}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_pairs_of_all_regions_are_one_line_of_a_study() -> None:
    assert view_pairs().labels == ("LH_Vis_1-RH-Cont", "LH_Vis_1-7", "RH-Cont-7")
    ten = view_pairs(regions=["network[1-10]"])
    assert len(ten.labels) == ten.size(0, 0) == 45
    assert (ten.labels[0], ten.labels[-1]) == ("network1-network2", "network9-network10")
    assert view_pairs(columns={"*_to_*_z": UNIT}, regions=["a", "b"]).labels == ("a_to_b_z",)
    assert len(view_pairs(columns={"*": UNIT}, regions="desikan").labels) == 34


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"regions": ["x[1-300]"]}, "44850 entries are more than 20000"),
        ({"regions": ["x[1-99999]"]}, "99999 entries"),
        ({"columns": {"*": UNIT}, "regions": ["x[0-20000]"]}, "20001 entries"),
        ({"columns": {"*-*-*": UNIT}}, "not a name of a column"),
        ({"regions": ["a", "a"]}, "appears twice"),
        ({"columns": {"*-*": UNIT, "b-c": UNIT}, "regions": ["b", "c"]}, "appears twice"),
    ],
)
def test_too_many_pairs_or_one_twice_are_refused(fields: dict[str, object], match: str) -> None:
    with pytest.raises(ValidationError, match=match):
        view_pairs(**fields)


@pytest.mark.parametrize("lines", [True, False])
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_a_matrix_is_read_by_its_names(tmp_path: Path, lines: bool, order: list[int]) -> None:
    names = [["LH_Vis_1", "RH-Cont", "7"][k] for k in order]
    text = written(names, lines=lines, matrix=MATRIX[np.ix_(order, order)])
    put_pairs(tmp_path, "sub-01", text)
    put_pairs(tmp_path, "sub-02", "\ufeff" + text.replace("\n", "\r\n"))
    vectors, lacking = read_table(tmp_path, view_pairs())
    assert lacking == {}
    for vector in vectors.values():
        np.testing.assert_allclose(vector, [0.5, -0.2, 0.1], atol=1e-15)
    assert sorted(vectors) == ["01", "02"]


def test_lines_are_found_by_their_own_names() -> None:
    lines = ["Node\ta\tb", "b\t0.3\t1", "a\t1\t0.4"]
    assert pair_cells(lines, ["a-b", "b-a"], courses=False) == {"a-b": "0.4", "b-a": "0.3"}


def test_a_matrix_of_numbers_alone_has_numbered_regions(tmp_path: Path) -> None:
    text = "\n".join("\t".join(map(str, row)) for row in MATRIX.tolist())
    put_pairs(tmp_path, "sub-01", text, "atlas-x_desc-correlation_matrix.tsv")
    found = view_pairs("d/sub-*/func/sub-*_atlas-x_desc-correlation_matrix.tsv", regions=["[1-3]"])
    assert found.labels == ("1-2", "1-3", "2-3")
    np.testing.assert_allclose(read_table(tmp_path, found)[0]["01"], [0.5, -0.2, 0.1], atol=1e-15)


@pytest.mark.parametrize("named", [True, False])
def test_courses_become_their_correlations(tmp_path: Path, named: bool) -> None:
    courses = np.random.default_rng(0).standard_normal((50, 3))
    courses[:, 1] += 1e5
    rows = ["\t".join(map(str, row)) for row in courses.tolist()]
    names = ["LH_Vis_1", "RH-Cont", "7"] if named else ["1", "2", "3"]
    put_pairs(tmp_path, "sub-01", "\n".join(["\t".join(names)] * named + rows), "x_timeseries.tsv")
    vectors, _ = read_table(
        tmp_path, view_pairs("d/sub-*/func/sub-*_x_timeseries.tsv", regions=names)
    )
    wanted = np.corrcoef(courses.T)[np.triu_indices(3, 1)]
    np.testing.assert_allclose(vectors["01"], wanted, atol=1e-9)


@pytest.mark.parametrize("numbers", [["1", "2", "3"], ["11", "7", "305"]])
def test_regions_that_are_named_by_numbers_are_no_volume(numbers: list[str]) -> None:
    courses = np.random.default_rng(0).standard_normal((12, 3))
    rows = ["\t".join(map(str, row)) for row in courses.tolist()]
    pair = f"{numbers[0]}-{numbers[2]}"
    found = pair_cells(["\t".join(numbers), *rows], [pair], courses=True)
    assert float(found[pair]) == pytest.approx(np.corrcoef(courses.T)[0, 2])
    lines = ["\t".join(map(str, row)) for row in MATRIX.tolist()]
    assert pair_cells(["\t".join(numbers), *lines], [pair], courses=False) == {pair: "-0.2"}


def test_courses_of_whole_numbers_without_names_are_all_volumes() -> None:
    courses = np.random.default_rng(0).permutation(40).reshape(20, 2)
    courses[1:] -= 20
    lines = ["\t".join(map(str, row)) for row in courses]
    found = pair_cells(lines, ["1-2"], courses=True)
    assert pair_cells([*lines, "n/a\t3"], ["1-2"], courses=True) == {"1-2": "n/a"}
    assert float(found["1-2"]) == pytest.approx(np.corrcoef(courses.T)[0, 1])


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_no_unit_makes_a_correlation_another(scale: float) -> None:
    courses = np.random.default_rng(0).standard_normal((12, 2))
    lines = ["\t".join(map(str, row)) for row in (scale * courses).tolist()]
    found = pair_cells(lines, ["1-2"], courses=True)
    assert float(found["1-2"]) == pytest.approx(np.corrcoef(courses.T)[0, 1])


def test_a_file_of_many_regions_takes_no_more_than_the_studys_pairs() -> None:
    courses = np.random.default_rng(0).standard_normal((10, 2000))
    lines = ["\t".join(map(str, row)) for row in courses.tolist()]
    tracemalloc.start()
    found = pair_cells(lines, ["1-2000"], courses=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert float(found["1-2000"]) == pytest.approx(np.corrcoef(courses[:, [0, -1]].T)[0, 1])
    assert peak < 5e6  # a matrix of all of them alone is 32 MB


def test_courses_that_lack_a_number_or_do_not_vary_lack_their_pairs(tmp_path: Path) -> None:
    rows = [f"{k}\t{k * k}\t{7}\t{'n/a' if k == 3 else -k}\t{k}" for k in range(12)]
    lines = ["a\tb\tflat\tgap\tc", *rows]
    found = pair_cells(lines, ["a-b", "a-flat", "flat-gap", "b-gap", "a-c"], courses=True)
    assert {pair: value for pair, value in found.items() if value == "n/a"}.keys() == {
        "a-flat",
        "flat-gap",
        "b-gap",
    }
    assert float(found["a-c"]) == pytest.approx(1)
    put_pairs(tmp_path, "sub-01", "\n".join(lines), "x_timeseries.tsv")
    gappy = view_pairs("d/sub-*/func/sub-*_x_timeseries.tsv", regions=["a", "b", "flat"], gaps=0.5)
    assert read_table(tmp_path, gappy)[0] == {}  # two of three pairs are not there


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "LH_Vis_1\tRH-Cont\t7\n",
        "LH_Vis_1\tRH-Cont\n1\t0.5\n0.5\t1\n",
        "LH_Vis_1\tRH-Cont\t7\n1\t0.5\n0.5\t1\n0\t0\n",
        "LH_Vis_1\tLH_Vis_1\t7\n" + "1\t0.5\t0\n" * 3,
        written(["LH_Vis_1", "RH-Cont", "7"], lines=False).replace("0.5", "x"),
        "Node\tLH_Vis_1\tRH-Cont\t7\n" + "LH_Vis_1\t1\t0.5\t0.1\n" * 3,
        "\x00" * 10,
    ],
)
def test_who_has_no_such_matrix_is_left_out_with_a_sentence(tmp_path: Path, text: str) -> None:
    put_pairs(tmp_path, "sub-01", written(["LH_Vis_1", "RH-Cont", "7"], lines=True))
    put_pairs(tmp_path, "sub-02", text)
    (tmp_path / "d" / "sub-03").mkdir()
    vectors, lacking = read_table(tmp_path, view_pairs())
    assert list(vectors) == ["01"]
    assert sorted(lacking) == ["02", "03"]
    assert "sub-02_task-rest_relmat.tsv: " in lacking["02"].detail
    assert ": column LH_Vis_1-" in lacking["03"].detail


def test_a_name_that_may_be_two_pairs_is_nobodys() -> None:
    lines = ["a\ta-b\tb-c\tc", *["1\t0.1\t0.2\t0.3"] * 4]
    assert pair_cells(lines, ["a-b-c", "a-c"], courses=False) == {"a-c": "0.3"}


def test_codes_for_missing_and_the_sites_own_names_hold_here_too(tmp_path: Path) -> None:
    matrix = MATRIX.copy()
    matrix[0, 2] = -9999
    put_pairs(tmp_path, "sub-01", written(["Vis", "RH-Cont", "7"], lines=True, matrix=matrix))
    aliases = {f"LH_Vis_1-{each}": Alias(column=f"Vis-{each}") for each in ("RH-Cont", "7")}
    gappy = view_pairs(gaps=0.4)
    vectors, _ = read_table(tmp_path, gappy, Wording((-9999.0,), SiteTables(aliases)))
    np.testing.assert_allclose(vectors["01"], [0.5, np.nan, 0.1], atol=1e-15)


def test_a_person_s_file_may_not_be_a_link_out_of_the_data_set(tmp_path: Path) -> None:
    outside = tmp_path / "outside.tsv"
    outside.write_text(written(["LH_Vis_1", "RH-Cont", "7"], lines=True))
    site = tmp_path / "site"
    path = put_pairs(site, "sub-01", "")
    path.unlink()
    path.symlink_to(outside)
    assert read_table(site, view_pairs())[0] == {}
    with pytest.raises(DataError, match="may be another participant's"):
        read_table(site, view_pairs("d/sub-*/func/sub-*1_relmat.tsv"))


XCP_D = "task-rest_space-MNI152NLin2009cAsym_seg-4S156Parcels_stat-{}.tsv"
HALFPIPE = (
    "derivatives/halfpipe/sub-*/ses-1/func/task-rest/sub-*_ses-1_task-rest_feature-corrMatrix"
)


@pytest.mark.parametrize("atlas", ["seg", "atlas"])
def test_the_files_of_xcp_d_are_read_by_their_own_names(tmp_path: Path, atlas: str) -> None:
    """A first column Node in matrices, and n/a where a parcel is not covered."""
    names = ["LH_Vis_1", "RH-Cont", "7"]
    end = XCP_D.replace("seg-", f"{atlas}-").format("pearsoncorrelation_relmat")
    text = written(names, lines=True).replace("-0.2", "n/a")
    put_pairs(tmp_path, "sub-01", text, end)
    found, lacking = read_table(tmp_path, view_pairs(f"d/sub-*/func/sub-*_{end}", gaps=0.5))
    assert lacking == {}
    np.testing.assert_allclose(found["01"], [0.5, np.nan, 0.1])


@pytest.mark.parametrize("kind", ["desc-correlation_matrix", "timeseries"])
def test_the_files_of_halfpipe_are_numbers_alone(tmp_path: Path, kind: str) -> None:
    """Regions are 1, 2, 3, 4; nan where one is not covered."""
    courses = np.random.default_rng(0).standard_normal((40, 4))
    courses[:, 3] = np.nan
    numbers = courses if kind == "timeseries" else np.corrcoef(courses.T)
    file = f"{HALFPIPE}_atlas-schaefer2018_{kind}.tsv"
    path = tmp_path / file.replace("*", "01")
    path.parent.mkdir(parents=True)
    np.savetxt(path, numbers, fmt="%.10f", delimiter="\t")
    found, _ = read_table(tmp_path, view_pairs(file, regions=["[1-4]"], gaps=0.5))
    expected = np.corrcoef(courses.T)[np.triu_indices(4, 1)]
    np.testing.assert_allclose(found["01"], expected, atol=1e-9)


def view(file="freesurfer/sub-*/stats/lh.aparc.stats"):
    return TableView(name="cortex", source="table", file=file, columns=COLUMNS)


def put(folder, person, text, name="lh.aparc.stats"):
    path = folder / "freesurfer" / person / "stats" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_regions_and_whole_brain_numbers_are_found_by_name(tmp_path):
    put(tmp_path, "sub-01", APARC.format(thick=2.5, mean=2.8))
    put(tmp_path, "sub-02", APARC.format(thick=4.0, mean=1.0))
    put(tmp_path, "fsaverage", APARC.format(thick=1, mean=1))
    vectors, lacking = read_table(tmp_path, view())
    assert sorted(vectors) == ["01", "02"]
    assert np.allclose(vectors["01"], [0.0, 0.0, 0.2])
    assert np.allclose(vectors["02"], [1.0, 0.0, -1.0])
    assert not lacking


@pytest.mark.parametrize("text", ["", "# ColHeaders StructName ThickAvg\nbankssts", "\x00" * 10])
def test_who_lacks_a_region_is_left_out_with_a_sentence(tmp_path, text):
    put(tmp_path, "sub-01", APARC.format(thick=2.5, mean=2.8))
    put(tmp_path, "sub-02", text)
    put(tmp_path, "sub-03", APARC.format(thick="nan", mean=2.8))
    (tmp_path / "freesurfer" / "sub-04").mkdir()
    vectors, lacking = read_table(tmp_path, view())
    assert list(vectors) == ["01"]
    assert sorted(lacking) == ["02", "03", "04"]
    assert "column bankssts_ThickAvg has no value" in lacking["04"].detail


@pytest.mark.parametrize("file", ["../sub-*/lh.aparc.stats", "/etc/sub-*/passwd", "sub-*/../../x"])
def test_a_study_does_not_lead_out_of_the_data_set(tmp_path, file):
    (tmp_path / "site" / "sub-01").mkdir(parents=True)
    with pytest.raises(DataError, match="not in the site's data set"):
        read_table(tmp_path / "site", view(file))


@pytest.mark.parametrize(
    "file",
    [
        "sub-*1/sub-*/lh.stats",
        "asub-*/sub-*/lh.stats",
        "sub-*/sub-*1/lh.stats",
        "sub-*/sub-*1.stats",
    ],
)
def test_nobody_brings_another_persons_numbers(tmp_path, file):
    for person in (
        "sub-01",
        "sub-011",
    ):  # the second would come as the first's, at the first's cost
        path = tmp_path / file.replace("sub-*", person)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(APARC.format(thick=2.5, mean=2.8), encoding="utf-8")
        (tmp_path / person).mkdir(exist_ok=True)
    with pytest.raises(DataError, match="may be another participant's"):
        read_table(tmp_path, view(file))


def test_a_link_out_of_the_data_set_is_not_followed(tmp_path):
    put(tmp_path / "other", "sub-01", APARC.format(thick=2.5, mean=2.8))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "freesurfer").symlink_to(tmp_path / "other" / "freesurfer")
    with pytest.raises(DataError, match="not in the site's data set"):
        read_table(tmp_path / "site", view())


def test_a_person_who_is_a_link_out_of_the_data_set_is_left_out(tmp_path):
    put(tmp_path / "other", "sub-02", APARC.format(thick=2.5, mean=2.8))
    put(tmp_path / "site", "sub-01", APARC.format(thick=2.5, mean=2.8))
    link = tmp_path / "site" / "freesurfer" / "sub-02"
    link.symlink_to(tmp_path / "other" / "freesurfer" / "sub-02")
    vectors, lacking = read_table(tmp_path / "site", view())
    assert list(vectors) == ["01"]
    assert list(lacking) == ["02"]


def test_a_path_without_persons_is_refused(tmp_path):
    (tmp_path / "freesurfer").mkdir()
    with pytest.raises(DataError, match="no participant's folder"):
        read_table(tmp_path, view())


@pytest.mark.parametrize("link", ["sub-02/stats", "sub-02", "sub-02/stats/lh.aparc.stats"])
@pytest.mark.parametrize("stored", [False, True])
def test_nobody_has_another_persons_file_by_a_link(tmp_path, link, stored):
    put(tmp_path, "sub-01", APARC.format(thick=2.5, mean=2.8))
    home = tmp_path / "freesurfer"
    if stored:  # as DataLad and a store of files do
        (home / "sub-01" / "stats").rename(tmp_path / "store")
        (home / "sub-01" / "stats").symlink_to(tmp_path / "store")
    (home / link).parent.mkdir(parents=True, exist_ok=True)
    (home / link).symlink_to(home / link.replace("sub-02", "sub-01"))
    vectors, lacking = read_table(tmp_path, view())
    assert list(vectors) == ["01"]
    assert lacking["02"].reason == "unusable"
    assert "is a link into the folder of sub-01" in lacking["02"].detail


@pytest.mark.parametrize(
    ("stated", "fits"),
    [
        ("sub-002", True),
        ("2", True),
        ("/data/freesurfer/sub-002", True),
        ("sub-002_ses-1", True),
        ("sub-002_ses-1.long.sub-002", True),
        ("bert", True),
        ("20240117093000", True),
        ("sub-001", False),
        ("001", False),
        ("/data/freesurfer/sub-001/", False),
        ("sub-001_ses-1.long.sub-001", False),
    ],
)
def test_a_stats_file_that_names_another_participant_is_not_used(tmp_path, stated, fits):
    text = f"# subjectname {stated}\n# hemi lh\n" + APARC.format(thick=2.5, mean=2.8)
    put(tmp_path, "sub-002", text)
    vectors, lacking = read_table(tmp_path, view())
    assert ("002" in vectors) == fits
    if not fits:
        assert lacking["002"].reason == "unusable"
        assert f"must name sub-002, got {stated}" in lacking["002"].detail


def test_a_stats_file_of_the_other_hemisphere_is_not_used(tmp_path):
    put(tmp_path, "sub-01", "# hemi rh\n" + APARC.format(thick=2.5, mean=2.8))
    vectors, lacking = read_table(tmp_path, view())
    assert not vectors
    assert "'hemi' must be lh, got rh" in lacking["01"].detail


def test_a_region_with_two_values_has_none(tmp_path):
    text = APARC.format(thick=2.5, mean=2.8)
    put(tmp_path, "sub-01", text + text)
    put(tmp_path, "sub-02", text + text.replace("2.5", "2.6"))
    put(tmp_path, "sub-03", text + text.replace("2.5", "2.6") + text)
    vectors, lacking = read_table(tmp_path, view())
    assert list(vectors) == ["01"]
    assert "bankssts_ThickAvg" in lacking["02"].detail
    assert "bankssts_ThickAvg" in lacking["03"].detail


@pytest.mark.parametrize("side", [np.triu, np.tril])
def test_a_matrix_with_one_side_only_is_not_used(tmp_path: Path, side) -> None:
    names = ["LH_Vis_1", "RH-Cont", "7"]
    put_pairs(tmp_path, "sub-01", written(names, lines=True))
    put_pairs(tmp_path, "sub-02", written(names, lines=True, matrix=side(MATRIX)))
    put_pairs(tmp_path, "sub-03", written(names, lines=True, matrix=np.eye(3)))
    columns = {"7-LH_Vis_1": UNIT, "LH_Vis_1-RH-Cont": UNIT}
    vectors, lacking = read_table(tmp_path, view_pairs(columns=columns, regions=[]))
    assert list(vectors) == ["01", "03"]
    assert lacking["02"].reason == "unusable"
    assert "the matrix has values on one side of its diagonal only" in lacking["02"].detail


@pytest.mark.parametrize(("volumes", "used"), [(3, False), (9, False), (10, True)])
def test_few_volumes_have_no_correlations(tmp_path: Path, volumes: int, used: bool) -> None:
    rows = np.random.default_rng(0).standard_normal((volumes, 3)).tolist()
    lines = ["LH_Vis_1\tRH-Cont\t7", *("\t".join(map(str, row)) for row in rows)]
    put_pairs(tmp_path, "sub-01", "\n".join(lines), "x_timeseries.tsv")
    vectors, lacking = read_table(tmp_path, view_pairs("d/sub-*/func/sub-*_x_timeseries.tsv"))
    assert bool(vectors) == used
    if not used:
        assert f"at least 10 volumes, and the file has {volumes}" in lacking["01"].detail
