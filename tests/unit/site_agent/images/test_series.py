"""A site's data set as algorithms see it: counting, streaming, reducing, refusing."""

import builtins
import errno
import io
import os
import tracemalloc

import numpy as np
import pytest

from consortium.algorithms.base import SiteData
from consortium.errors import DataError
from consortium.space.grid import Grid
from consortium.space.study_space import Space
from consortium.study.data_section import DataSection
from site_agent.data.cap import Cap
from site_agent.images.series import SiteDataset
from tests.support.tiny_images import (
    VOLUMES,
    save,
    save_confounds,
    save_subject,
    tiny_grid,
    tiny_series,
)

GRID = tiny_grid()


def make_dataset(tmp_path, subjects=3):
    bids = tmp_path / "bids"
    for index in range(subjects):
        save_subject(bids, f"{index}", tiny_series(index, volumes=VOLUMES + index))
    return bids


def opened(tmp_path, source=None, grid=GRID, **settings):
    source = tmp_path / "bids" if source is None else source
    return SiteDataset(source, DataSection(**settings), Space(grid), "subject", tmp_path / "cache")


def forbid_voxels(monkeypatch):
    def fail(*_args):
        raise AssertionError("a voxel was read")

    monkeypatch.setattr("site_agent.images.preprocess.iterate_volumes", fail)


def test_counting_reads_headers_only(tmp_path, monkeypatch):
    make_dataset(tmp_path)
    forbid_voxels(monkeypatch)
    dataset: SiteData = opened(tmp_path)
    assert dataset.lengths == (24, 25, 26)
    assert dataset.features == GRID.features
    assert dataset.unit == "subject"
    assert not (tmp_path / "cache").exists()
    with pytest.raises(AssertionError, match="voxel"):
        next(dataset.blocks())


def test_blocks_come_in_order_and_from_the_cache_later(tmp_path, monkeypatch):
    make_dataset(tmp_path)
    first = list(opened(tmp_path).blocks())
    assert [block.shape for block in first] == [(GRID.features, 24 + i) for i in range(3)]
    forbid_voxels(monkeypatch)
    for before, after in zip(first, opened(tmp_path).blocks(), strict=True):
        np.testing.assert_array_equal(before, after)


def test_a_changed_file_is_read_again(tmp_path):
    make_dataset(tmp_path, 1)
    before = next(opened(tmp_path).blocks())
    save_subject(tmp_path / "bids", "0", tiny_series(9))
    assert not np.array_equal(before, next(opened(tmp_path).blocks()))


def test_a_file_that_shrinks_during_a_study_is_refused(tmp_path):
    make_dataset(tmp_path, 1)
    dataset = opened(tmp_path)
    assert dataset.lengths == (24,)
    save_subject(tmp_path / "bids", "0", tiny_series(volumes=21))
    with pytest.raises(DataError, match="21 volumes, 24 when"):
        next(dataset.blocks())


def test_reduced_is_the_projection_of_all_blocks(tmp_path):
    make_dataset(tmp_path)
    dataset = opened(tmp_path)
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((GRID.features, 4)))[0]
    whole = np.hstack(list(dataset.blocks()))
    found = dataset.reduced(basis)
    np.testing.assert_allclose(found, basis.T @ whole, atol=1e-5)
    assert found.dtype == np.float32
    assert dataset.reduced(basis.copy()) is found
    np.testing.assert_allclose(dataset.reduced(basis[:, :2]), found[:2], atol=1e-6)


def test_one_subject_is_in_memory_at_a_time(tmp_path):
    grid = Grid(np.ones((20, 20, 20), bool), GRID.affine)
    for index in range(6):
        save_subject(tmp_path / "bids", f"{index}", tiny_series(index, 100, grid.shape))
    one = grid.features * 100 * 4
    peaks = []
    for _ in range(2):
        dataset = opened(tmp_path, grid=grid)
        assert len(dataset.lengths) == 6
        tracemalloc.start()
        for block in dataset.blocks():
            del block
        peaks.append(tracemalloc.get_traced_memory()[1] / one)
        tracemalloc.stop()
    assert peaks[0] < 2.5  # the series and its projection
    assert peaks[1] < 1.5


def test_short_scans_are_left_out(tmp_path):
    bids = make_dataset(tmp_path, 2)
    save_subject(bids, "short", tiny_series(volumes=19))
    (bids / "sub-none").mkdir()
    dataset = opened(tmp_path)
    assert dataset.lengths == (24, 25)
    reasons = {item.label: item.reason for item in dataset.survey.skipped}
    assert reasons == {"short": "too-few-volumes", "none": "no-image"}
    assert opened(tmp_path, minimum_volumes=5).lengths == (24, 25, 19)
    nobody = opened(tmp_path, minimum_volumes=50)
    assert nobody.lengths == nobody.people == ()
    assert "fewer volumes" in nobody.nobody


def test_an_odd_length_does_not_fit(tmp_path):
    make_dataset(tmp_path, 2)
    dataset = opened(tmp_path, volumes=24)
    (problem,) = dataset.survey.skipped
    assert problem.reason == "does-not-fit"
    assert "has 25 volumes, the study asks for 24" in problem.detail
    assert dataset.lengths == (24,)
    assert "lack images" in opened(tmp_path, volumes=23).nobody


def test_check_tells_all_problems_at_once(tmp_path):
    bids = make_dataset(tmp_path, 1)
    save_subject(bids, "flat", tiny_series()[..., 0])
    away = GRID.affine + np.diag([0, 0, 0, 0])
    away[1, 3] += 400
    save_subject(bids, "away", tiny_series(), away)
    dataset = opened(tmp_path)
    problems = dataset.survey.skipped
    assert sorted(item.label for item in problems) == ["away", "flat"]
    for item in problems:
        assert item.reason == "unusable"
        assert f"sub-{item.label}_" in item.detail
    assert dataset.lengths == (24,)
    (bids / "sub-0").rename(tmp_path / "gone")
    assert opened(tmp_path).lengths == ()
    assert "sub-away" in opened(tmp_path).nobody


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_who_turns_out_damaged_while_loading_is_left_out(tmp_path, value):
    bids = make_dataset(tmp_path)
    spoilt = tiny_series(1, volumes=VOLUMES + 1)
    spoilt[2, 2, 1, 3] = value
    save_subject(bids, "1", spoilt)
    dataset = opened(tmp_path)
    assert dataset.lengths == (24, 25, 26)
    assert list(dataset.load())[-1] == "3 of 3"
    assert dataset.lengths == (24, 26)
    assert dataset.people == ("0", "2")
    (problem,) = dataset.survey.skipped
    assert problem.reason == "unusable"
    assert "not finite in volume 4" in problem.detail
    assert len(list(dataset.blocks())) == 2


@pytest.mark.parametrize("when", ["before the count", "while loading"])
@pytest.mark.parametrize("inherited", [False, True])
def test_a_folder_without_rights_leaves_out_its_participant_only(
    tmp_path, monkeypatch, when, inherited
):
    """Names can be listed in it, and no file can be opened."""
    bids = make_dataset(tmp_path)
    home = bids / "sub-1" / "func"
    for path in home.glob("*.json"):
        path.unlink()
    image = next(home.glob("*_bold.nii*"))
    name = "sub-1_task-rest_bold.json" if inherited else image.name.split(".")[0] + ".json"
    (home / name).write_text("{}")
    real_stat, real_open = os.stat, io.open

    def closed(real):
        def act(path, *more, **options):
            if str(path).startswith(f"{home}{os.sep}"):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return real(path, *more, **options)

        return act

    def close():
        monkeypatch.setattr(os, "stat", closed(real_stat))
        monkeypatch.setattr(io, "open", closed(real_open))
        monkeypatch.setattr(builtins, "open", closed(real_open))

    if when == "before the count":
        close()
    dataset = opened(tmp_path)
    assert len(dataset.lengths) == (2 if when == "before the count" else 3)
    close()
    list(dataset.load())
    assert dataset.people == ("0", "2")
    (problem,) = dataset.survey.skipped
    assert (problem.label, problem.reason) == ("1", "unusable")


def test_missing_confounds_show_in_the_check(tmp_path):
    bids = make_dataset(tmp_path, 2)
    save_confounds(next(bids.rglob("sub-0_*.nii.gz")), {"csf": np.arange(24.0) ** 2})
    dataset = opened(tmp_path, confounds=["csf"])
    assert [(item.label, item.reason) for item in dataset.survey.skipped] == [("1", "unusable")]


def test_two_runs_are_one_subject(tmp_path):
    paths = [
        save(tmp_path / f"sub-1_run-{run}_bold.nii", tiny_series(run, volumes=12))
        for run in range(2)
    ]
    dataset = opened(tmp_path, source=paths)
    assert dataset.lengths == (24,)
    (block,) = dataset.blocks()
    assert block.shape == (GRID.features, 24)


def test_a_made_up_site_can_be_loaded_and_holds_its_networks(tmp_path):
    from consortium.simulation.bids import Recipe, make_consortium
    from consortium.simulation.networks import network_maps
    from consortium.space.grid import study_grid

    made = make_consortium(tmp_path, Recipe(("a",), 6, seed=1, resolution=12.0, networks=5))
    data = DataSection(resolution=12, detrend="quadratic", confounds=("trans_*", "rot_*", "csf"))
    grid = study_grid(data, tmp_path)
    dataset = SiteDataset(made.sites["a"], data, Space(grid), "subject", tmp_path / "cache")
    assert dataset.lengths == (100,) * 6
    second = sum(block @ block.T for block in dataset.blocks()) / 600
    assert np.trace(second) == pytest.approx(1.0, abs=1e-4)
    _, maps = network_maps(grid.affine, grid.shape, grid.mask, count=5)
    truth = np.linalg.qr(maps)[0]
    leading = np.linalg.eigh(second)[1][:, -12:]
    assert np.linalg.norm(truth.T @ leading) ** 2 / 5 > 0.9


def test_regions_and_finer_blocks_come_from_the_same_scans(tmp_path):
    from scipy import sparse

    from consortium.space.atlas import Regions

    make_dataset(tmp_path)
    half = GRID.features // 2
    weights = np.zeros((2, GRID.features))
    weights[0, :half], weights[1, half:] = 1 / half, 1 / (GRID.features - half)
    wide = Grid(np.ones(GRID.shape, bool), GRID.affine)
    space = Space(GRID, Regions(sparse.csr_array(weights)), wide)
    data = DataSection(standardize="none")
    bids, cache = tmp_path / "bids", tmp_path / "cache"
    dataset: SiteData = SiteDataset(bids, data, space, "subject", cache)
    plain = SiteDataset(bids, data, Space(GRID), "subject", cache)
    assert (dataset.features, dataset.voxels) == (2, wide.features)
    for coarse, fine, block in zip(
        dataset.blocks(), dataset.blocks("maps"), plain.blocks(), strict=True
    ):
        np.testing.assert_allclose(coarse, weights @ block, atol=1e-3)
        np.testing.assert_allclose(fine[GRID.mask.ravel()], block, atol=1e-3)


def test_who_is_not_chosen_is_not_opened_and_the_others_blocks_stay_as_they_were(tmp_path):
    bids = tmp_path / "bids"
    for label in ("01", "02", "03"):
        save_subject(bids, label, tiny_series(int(label)))
    (bids / "participants.tsv").write_text("participant_id\tage\n01\t20\n02\t30\n03\t40\n")
    everybody = list(opened(tmp_path).blocks())
    next((bids / "sub-02").rglob("*.nii.gz")).write_bytes(b"damaged")
    cached = sorted((tmp_path / "cache").iterdir())
    chosen = opened(tmp_path, persons={"age": {"levels": ["20", "40"]}})
    assert chosen.people == ("01", "03")
    (skipped,) = chosen.survey.skipped
    assert (skipped.label, skipped.reason) == ("02", "not-chosen")
    for ours, before in zip(chosen.blocks(), everybody[::2], strict=True):
        np.testing.assert_array_equal(ours, before)
    assert sorted((tmp_path / "cache").iterdir()) == cached  # whom a study takes changes no block


def test_the_cap_takes_some_of_all_who_qualify(tmp_path):
    bids = make_dataset(tmp_path, 4)
    whole = opened(tmp_path)
    cap = Cap(2, b"secret")
    data = SiteDataset(*(bids, DataSection(), Space(GRID), "subject", tmp_path / "cache"), cap=cap)
    assert data.people == whole.people == ("0", "1", "2", "3")
    taken = cap.taken(data.people)
    assert data.lengths == tuple(whole.lengths[place] for place in taken)
    assert data.person_hashes.tolist() == cap.hashes(data.people)[taken].tolist()
    assert list(data.load())[-1] == "4 of 4"  # whether a scan is damaged is known of all
    blocks = [*whole.blocks()]
    for block, place in zip(data.blocks(), taken, strict=True):
        np.testing.assert_array_equal(block, blocks[place])
    (bids / "sub-9").mkdir()
    assert data.units == 2
