"""Views matched by person: who has all of them, in which order, and why the others are out."""

import re
from collections.abc import Callable
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Query
from consortium.errors import DataError
from consortium.opened_study import OpenedStudy
from site_agent.config import Alias
from site_agent.data.wording import SiteTables
from site_agent.loading.feature_vectors import FeatureDataset
from site_agent.loading.open import open_dataset
from tests.support.tiny_images import FUNC, tiny_grid, tiny_series
from tests.support.tiny_recordings import CHANNELS, TASK, record, tiny_tape
from tests.support.tiny_views import image, view_space, view_study

TABLE = {"name": "who", "source": "table", "columns": {"age": {"low": 0, "high": 100}}}
FMRI = {"name": "fmri", "source": "fmri"}
EEG = {
    "name": "erp",
    "source": "eeg",
    "task": TASK,
    "channels": list(CHANNELS),
    "events": ["target"],
}
PEOPLE = ("03", "01", "02")


def _participants(folder: Path, people: tuple[str, ...] = PEOPLE) -> None:
    lines = ["participant_id\tage", *(f"sub-{p}\t{10 * int(p)}" for p in people)]
    (folder / "participants.tsv").write_text("\n".join(lines) + "\n")


def _scan(folder: Path, label: str) -> Path:
    path = folder / f"sub-{label}" / "func" / f"sub-{label}_{FUNC}"
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(image(tiny_series(int(label))), path)
    return path


@pytest.fixture
def bids(tmp_path: Path) -> Path:
    """Three persons with everything."""
    folder = tmp_path / "bids"
    folder.mkdir()
    _participants(folder)
    for label in PEOPLE:
        _scan(folder, label)
        record(folder, label, tiny_tape(int(label)))
    return folder


def opened(bids: Path, *views: dict, **data) -> FeatureDataset:
    study = view_study(*(views or (TABLE, FMRI, EEG)), **data)
    found = open_dataset(bids, OpenedStudy(study, view_space(study)), bids.parent / "cache")
    assert isinstance(found, FeatureDataset)
    return found


def test_a_rule_for_persons_is_read_in_the_sites_own_words_for_images_too(bids: Path) -> None:
    study = view_study(FMRI, persons={"years": {"high": 25}})
    tables = SiteTables({"years": Alias(column="age")})
    data = open_dataset(
        bids, OpenedStudy(study, view_space(study)), bids.parent / "cache", tables=tables
    )
    assert data.people == ("01", "02")


def test_views_are_stacked_in_their_order_and_persons_sorted(bids: Path) -> None:
    data = opened(bids)
    sizes = dict(data.extent.views)
    assert sizes == {"who": 1, "fmri": tiny_grid().features, "erp": len(CHANNELS) * 71}
    assert data.features == data.voxels == sum(sizes.values())
    assert data.lengths == (1, 1, 1)
    table = data.table()
    assert table.shape == (data.features, 3)
    np.testing.assert_allclose(table[0], [-0.8, -0.6, -0.4])
    for view in ("fmri", "erp"):
        single = opened(bids, {"fmri": FMRI, "erp": EEG}[view]).table()
        start = 1 if view == "fmri" else 1 + sizes["fmri"]
        np.testing.assert_array_equal(table[start : start + sizes[view]], single)
        np.testing.assert_allclose(np.linalg.norm(single, axis=0), 1)
    swapped = opened(bids, EEG, TABLE).table()
    np.testing.assert_array_equal(swapped[-1], table[0])


def test_blocks_are_the_columns_and_nobody_writes_to_them(bids: Path) -> None:
    data = opened(bids)
    np.testing.assert_array_equal(np.hstack(list(data.blocks())), data.table())
    np.testing.assert_array_equal(np.hstack(list(data.blocks("maps"))), data.table())
    basis = np.random.default_rng(0).standard_normal((data.features, 2))
    np.testing.assert_allclose(data.reduced(basis), basis.T @ data.table())
    with pytest.raises(ValueError, match="read-only"):
        data.table()[0, 0] = 5


LACKS: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "a line of the table": (lambda b: _participants(b, ("01", "02")), "no-view", "view 'who'"),
    "images": (lambda b: next(b.rglob("sub-03*bold.nii.gz")).unlink(), "no-image", "no image"),
    "EEG": (lambda b: next(b.rglob("sub-03*.vhdr")).unlink(), "no-view", "no EEG"),
}


@pytest.mark.parametrize("case", LACKS)
def test_who_lacks_a_view_is_left_out_and_told(bids: Path, case: str) -> None:
    whole = opened(bids).table()
    change, reason, match = LACKS[case]
    change(bids)
    data = opened(bids)
    (skipped,) = data.survey.skipped
    assert (skipped.label, skipped.reason) == ("03", reason)
    assert match in skipped.detail
    assert data.lengths == (1, 1)
    np.testing.assert_array_equal(data.table(), whole[:, :2])


def test_a_person_of_one_view_alone_is_left_out(bids: Path) -> None:
    _participants(bids, (*PEOPLE, "04"))
    record(bids, "05", tiny_tape(5))
    left_out = [(each.label, each.reason) for each in opened(bids).survey.skipped]
    assert left_out == [("04", "no-view"), ("05", "no-view")]


def test_whose_file_is_damaged_is_left_out_until_it_is_mended(bids: Path) -> None:
    path = next(bids.rglob("sub-02*_eeg.eeg"))
    whole = path.read_bytes()
    path.write_bytes(whole[:1000])
    data = opened(bids)
    assert [each.reason for each in data.survey.skipped] == ["unusable"]
    assert "sub-02" in data.survey.skipped[0].detail
    assert data.lengths == (1, 1)
    assert data.table().shape[1] == len(list(data.blocks())) == 2
    path.write_bytes(whole)
    assert opened(bids).lengths == (1, 1, 1)


@pytest.mark.parametrize("views", [(TABLE, FMRI, EEG), (EEG, FMRI, TABLE)])
def test_nothing_need_be_mended_of_who_is_left_out_anyway(bids: Path, views) -> None:
    next(bids.rglob("sub-02*_eeg.eeg")).unlink()
    _participants(bids, ("01", "03"))
    data = opened(bids, *views)
    assert [(each.label, each.reason) for each in data.survey.skipped] == [("02", "no-view")]
    assert data.lengths == (1, 1)


@pytest.mark.parametrize("damaged", ["sub-02*_eeg.eeg", "sub-02*bold.nii.gz"])
def test_who_is_not_chosen_is_in_no_view_and_need_not_be_mended(bids: Path, damaged: str) -> None:
    whole = opened(bids).table()
    path = next(bids.rglob(damaged))
    path.write_bytes(path.read_bytes()[:1000])
    rules = {"age": {"low": 10, "high": 10}}
    data = opened(bids, persons=rules)
    assert data.people == ("01",)
    np.testing.assert_array_equal(data.table(), whole[:, :1])
    left_out = {(each.label, each.reason) for each in data.survey.skipped}
    assert left_out == {("02", "not-chosen"), ("03", "not-chosen")}


def test_recordings_are_chosen_by_their_entities_in_every_view(bids: Path) -> None:
    for view, words in ((EEG, "has no"), (FMRI, "ses-a")):
        data = opened(bids, view, session="a")
        assert data.lengths == data.people == ()
        assert words in data.nobody
    assert opened(bids, TABLE, session="a").lengths == (1, 1, 1)


def test_nobody_with_all_views_is_said_and_no_error(bids: Path) -> None:
    _participants(bids, ("07",))
    data = opened(bids)
    assert data.lengths == ()
    assert data.table().shape == (data.features, 0)
    assert re.search(r"No participant in .* have 'who'", data.nobody)
    assert len(opened(bids).survey.skipped) == 4
    with pytest.raises(DataError, match="must be a folder"):
        _ = opened(bids / "nowhere").survey


def test_an_algorithm_of_either_kind_sees_persons_as_columns(bids: Path) -> None:
    data = opened(bids)
    algorithm = REGISTRY["average"]
    study = data.study
    shape = data.extent.shape((3,), (3,), "subject")
    (release,) = algorithm(study.analysis, shape).planned()
    local = algorithm.statistics[release.statistic]
    mean = local(None, data, Query(release.stage, release.statistic), release.bound)
    clipped = data.table() / np.maximum(1, np.linalg.norm(data.table(), axis=0))
    expected = np.concatenate([clipped.mean(axis=1), np.square(clipped).mean(axis=1) / 2**0.5])
    np.testing.assert_allclose(mean, expected, rtol=1e-6)


def test_a_column_of_letters_is_named(bids: Path) -> None:
    table = bids / "participants.tsv"
    header, *rows = table.read_text().splitlines()
    place = header.split("\t").index("age")
    cells = [row.split("\t") for row in rows]
    letters = [[*row[:place], "old", *row[place + 1 :]] for row in cells]
    table.write_text("\n".join([header, *("\t".join(row) for row in letters)]) + "\n")
    data = opened(bids)
    assert data.lengths == ()
    assert re.search("0 have .*column age has no number", data.nobody)
    assert "old" not in data.nobody


@pytest.mark.parametrize("normalize", [True, False])
def test_sums_that_are_said_to_be_known_are_everybodys(bids: Path, normalize: bool) -> None:
    who = {**TABLE, "columns": {"age": {"levels": ["10", "20", "30"]}}}
    fmri = {**FMRI, "normalize": normalize}
    eeg = {**EEG, "normalize": normalize, "center": True, "minimum_epochs": 2}
    data = opened(bids, who, fmri, eeg)
    sums = data.extent.known_sums
    assert len(sums) == 1 + 1 + 1 + 71
    table = data.table()
    reach = np.abs(table).max()
    for entries, value in sums:
        assert table[entries].sum(axis=0) == pytest.approx(np.full(3, value), abs=1e-4 * reach)
    plain = opened(bids, TABLE, {**FMRI, "center": False}, {**EEG, "reference": "as-recorded"})
    assert plain.extent.known_sums == ()
