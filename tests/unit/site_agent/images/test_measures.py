"""What a person's images become: variances that add up, public maps undone, nobody else's data."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import DataError
from consortium.space.atlas import Regions
from site_agent.engines.base import Threads
from site_agent.images.measures import amplitude, band_energy, measure_images
from tests.support.tiny_images import AFFINE, FUNC, SHAPE, save, tiny_grid, tiny_series
from tests.support.tiny_views import image, view_space, view_study

PLAIN = {"name": "view", "source": "fmri", "center": False, "normalize": False}
MASK = tiny_grid().mask


def put(dataset: Path, label: str, values: np.ndarray, step: float = 2.0, run: str = "") -> Path:
    name = f"sub-{label}_{FUNC.replace('_space', f'_run-{run}_space') if run else FUNC}"
    path = dataset / f"sub-{label}" / "func" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(image(values, step), path)
    return path


def contrast(dataset: Path, label: str, values: np.ndarray, name: str = "statmap") -> Path:
    stem = f"sub-{label}_task-rest_space-MNI152NLin2009cAsym_desc-faces_{name}.nii.gz"
    return save(dataset / f"sub-{label}" / "func" / stem, values.astype(np.float32))


def measured(dataset: Path, maps=None, regions=None, data=None, **view):
    study = view_study(PLAIN | view, **(data or {}))
    space = view_space(study, maps)
    if regions is not None:
        space = replace(space, regions=regions)
    return measure_images(
        dataset, study, space, space.views[0], dataset.parent / "cache", Threads()
    )


# -- connectivity --------------------------------------------------------------------------


def blocks_of(edges: tuple[int, ...]) -> Regions:
    """Regions of that many voxels each."""
    from scipy import sparse

    weights = np.zeros((len(edges), MASK.sum()))
    for row, start, size in zip(weights, np.cumsum((0, *edges)), edges, strict=False):
        row[start : start + size] = 1 / size
    return Regions(sparse.csr_array(weights))


def correlations(courses: np.ndarray) -> np.ndarray:
    return np.arctanh(np.corrcoef(courses)[np.triu_indices(len(courses), 1)])


def test_connectivity_is_fisher_z_of_the_mean_courses_run_by_run(tmp_path: Path) -> None:
    first, second = tiny_series(1), tiny_series(2, volumes=40)
    put(tmp_path / "bids", "01", first, run="1")
    put(tmp_path / "bids", "01", second + 500, run="2")
    regions = blocks_of((4, 3, 5))
    vectors, skipped = measured(
        *(tmp_path / "bids", None, regions),
        data={"detrend": "none", "atlas": "atlas.nii.gz"},
        measure="connectivity",
    )
    one, two = (correlations(regions.weights @ each[MASK]) for each in (first, second))
    np.testing.assert_allclose(vectors["01"], (24 * one + 40 * two) / 64, rtol=1e-4)
    assert skipped == []


def test_connectivity_of_maps_is_that_of_their_least_squares_courses(tmp_path: Path) -> None:
    maps = np.random.default_rng(8).standard_normal((MASK.sum(), 4))
    series = tiny_series(1)
    put(tmp_path / "bids", "01", series)
    vectors, _ = measured(
        *(tmp_path / "bids", maps),
        data={"detrend": "none"},
        measure="connectivity",
        components="maps.nii.gz",
    )
    courses = np.linalg.lstsq(maps, series[MASK], rcond=None)[0]
    np.testing.assert_allclose(vectors["01"], correlations(courses), rtol=1e-3)


def test_who_has_no_signal_in_a_region_is_left_out_and_named(tmp_path: Path) -> None:
    series = tiny_series(1)
    inside = np.argwhere(MASK)
    series[tuple(inside[4:7].T)] = 0
    put(tmp_path / "bids", "01", series)
    put(tmp_path / "bids", "02", tiny_series(2))
    vectors, skipped = measured(
        *(tmp_path / "bids", None, blocks_of((4, 3, 5))),
        data={"atlas": "atlas.nii.gz"},
        measure="connectivity",
    )
    assert set(vectors) == {"02"}
    assert [each.reason for each in skipped] == ["unusable"]
    assert "sub-01" in skipped[0].detail
    assert "time series 2 does not vary" in skipped[0].detail


# -- amplitudes ----------------------------------------------------------------------------


@pytest.mark.parametrize("detrend", ["none", "constant"])
def test_amplitude_is_the_deviation_over_time(tmp_path: Path, detrend: str) -> None:
    series = tiny_series()
    put(tmp_path / "bids", "01", series)
    vectors, skipped = measured(tmp_path / "bids", data={"detrend": detrend})
    np.testing.assert_allclose(vectors["01"], series[MASK].std(axis=1) / 1000, rtol=1e-4)
    assert skipped == []


def test_runs_are_pooled_without_the_step_between_them(tmp_path: Path) -> None:
    first, second = tiny_series(1), tiny_series(2, volumes=40)
    put(tmp_path / "bids", "01", first, run="1")
    put(tmp_path / "bids", "01", second + 500, run="2")
    vectors, _ = measured(tmp_path / "bids", data={"detrend": "none"})
    parts = 24 * first[MASK].var(axis=1) + 40 * second[MASK].var(axis=1)
    np.testing.assert_allclose(vectors["01"], np.sqrt(parts / 64) / 1000, rtol=1e-4)


def test_regions_are_averaged_before_they_are_measured(tmp_path: Path) -> None:
    from scipy import sparse

    series = tiny_series()
    put(tmp_path / "bids", "01", series)
    weights = np.zeros((2, MASK.sum()))
    weights[0, :4], weights[1, 4:] = 0.25, 1 / (MASK.sum() - 4)
    vectors, _ = measured(tmp_path / "bids", regions=Regions(sparse.csr_array(weights)))
    from scipy.signal import detrend

    expected = detrend(weights @ series[MASK], axis=1).std(axis=1) / 1000
    np.testing.assert_allclose(vectors["01"], expected, rtol=1e-3)


@given(st.integers(2, 61), st.integers(0, 2**32 - 1))
def test_the_energies_of_all_bands_add_up_to_the_variance(volumes: int, seed: int) -> None:
    courses = np.random.default_rng(seed).standard_normal((3, volumes))
    edges = [0.0, 0.03, 0.09, 0.26]  # none of them a frequency of these series but the first
    parts = [band_energy(courses, 2.0, (low + 1e-9, high)) for low, high in pairwise(edges)]
    np.testing.assert_allclose(sum(parts), amplitude(courses), rtol=1e-9, atol=1e-12)


def test_alff_finds_a_sine_in_its_band_only(tmp_path: Path) -> None:
    time = 2.0 * np.arange(100)
    values = np.full((*SHAPE, 100), 1000.0)
    values += 3 * np.sin(2 * np.pi * 0.05 * time) + 20 * np.sin(2 * np.pi * 0.2 * time)
    put(tmp_path / "bids", "01", values)
    vectors, _ = measured(tmp_path / "bids", measure="alff")
    np.testing.assert_allclose(vectors["01"], 3 / np.sqrt(2) / 1000, rtol=0.01)


def test_the_repetition_time_of_the_sidecar_goes_before_the_headers(tmp_path: Path) -> None:
    time = 2.0 * np.arange(100)
    values = np.full((*SHAPE, 100), 1000.0) + 3 * np.sin(2 * np.pi * 0.05 * time)
    path = put(tmp_path / "bids", "01", values, step=1.0)
    assert measured(tmp_path / "bids", measure="alff")[0]["01"].max() < 1e-3
    sidecar = path.with_name(path.name.replace(".nii.gz", ".json"))
    sidecar.write_text(json.dumps({"RepetitionTime": 2.0}))
    vectors, _ = measured(tmp_path / "bids", measure="alff")
    np.testing.assert_allclose(vectors["01"], 3 / np.sqrt(2) / 1000, rtol=0.01)


# -- components and images -----------------------------------------------------------------


def test_components_have_the_deviation_of_their_courses(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    maps = generator.standard_normal((MASK.sum(), 3))
    courses = np.array([[1.0], [20.0], [5.0]]) * generator.standard_normal((3, 50))
    values = np.zeros((*SHAPE, 50))
    values[MASK] = maps @ courses
    put(tmp_path / "bids", "01", values)
    vectors, _ = _components(tmp_path / "bids", maps)
    np.testing.assert_allclose(vectors["01"], courses.std(axis=1) / 1000, rtol=1e-4)


def _components(dataset: Path, maps: np.ndarray):
    settings = {"measure": "components", "components": "maps.nii.gz"}
    return measured(dataset, maps.astype(np.float32), data={"detrend": "constant"}, **settings)


def test_maps_that_depend_on_each_other_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "bids", "01", tiny_series())
    with pytest.raises(DataError, match="depend on each other"):
        _components(tmp_path / "bids", np.ones((MASK.sum(), 2)))


def test_an_image_is_read_at_the_studys_voxels(tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal(SHAPE)
    contrast(tmp_path / "bids", "01", values)
    view = {"measure": "image", "image": "desc-faces_statmap"}
    vectors, _ = measured(tmp_path / "bids", **view)
    np.testing.assert_allclose(vectors["01"], values[MASK], rtol=1e-5)


def test_an_image_on_another_grid_is_interpolated(tmp_path: Path) -> None:
    fine = np.diag([2.0, 2.0, 2.0, 1.0])
    fine[:3, 3] = AFFINE[:3, 3] - 4
    places = np.indices((20, 18, 16)).reshape(3, -1).T @ fine[:3, :3].T + fine[:3, 3]
    slope = np.array([1.0, -2.0, 0.5])
    path = contrast(tmp_path / "bids", "01", np.zeros(SHAPE))
    nib.save(nib.Nifti1Image((places @ slope).reshape(20, 18, 16), fine), path)
    vectors, _ = measured(tmp_path / "bids", measure="image", image="desc-faces_statmap")
    np.testing.assert_allclose(vectors["01"], tiny_grid().coordinates @ slope, atol=1e-4)


IMAGE = {"measure": "image", "image": "desc-faces_statmap"}


def test_missing_values_stay_missing_if_they_are_few(tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal(SHAPE)
    values[~MASK] = np.nan
    values[1, 2, 1] = np.nan
    contrast(tmp_path / "bids", "01", values)
    view = IMAGE
    vectors, _ = measured(tmp_path / "bids", **view)
    np.testing.assert_allclose(vectors["01"], values[MASK], rtol=1e-5)
    vectors, _ = measured(tmp_path / "bids", center=True, normalize=True, **view)
    known = values[MASK][np.isfinite(values[MASK])]
    expected = (values[MASK] - known.mean()) / np.linalg.norm(known - known.mean())
    np.testing.assert_allclose(vectors["01"], expected, rtol=1e-5)
    _, (skipped,) = measured(tmp_path / "bids", **view, gaps=0.01)
    assert "values are required in 99 % of the study's mask" in skipped.detail
    values[:3] = np.nan
    contrast(tmp_path / "bids", "01", values)
    _, (skipped,) = measured(tmp_path / "bids", **view)
    assert skipped.reason == "unusable"
    assert "values are required in 80 % of the study's mask" in skipped.detail


def test_a_value_at_the_edge_of_coverage_is_not_diluted(tmp_path: Path) -> None:
    """Images shifted by 0.3 voxels: every value is 1, or missing, and never in between."""
    affine = AFFINE.copy()
    affine[0, 3] += 0.3 * AFFINE[0, 0]
    values = np.ones(SHAPE, dtype=np.float32)
    values[np.nonzero(MASK)[0].max() :] = np.nan
    path = contrast(tmp_path / "bids", "01", np.zeros(SHAPE))
    nib.save(nib.Nifti1Image(values, affine), path)
    vectors, _ = measured(tmp_path / "bids", **IMAGE, gaps=0.5)
    known = np.isfinite(vectors["01"])
    assert 0 < np.count_nonzero(~known) < len(known) / 2
    np.testing.assert_allclose(vectors["01"][known], 1.0, rtol=1e-12)


def test_zeros_are_missing_only_where_the_view_says_so(tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal(SHAPE)
    values[1, 2, 1] = 0.0
    contrast(tmp_path / "bids", "01", values)
    vectors, _ = measured(tmp_path / "bids", **IMAGE)
    assert np.count_nonzero(vectors["01"] == 0) == 1
    vectors, _ = measured(tmp_path / "bids", **IMAGE, zero_is_missing=True)
    assert np.count_nonzero(np.isnan(vectors["01"])) == 1


def test_a_regions_mean_is_that_of_the_voxels_that_are_there(tmp_path: Path) -> None:
    values = np.full(SHAPE, 3.0)
    values.ravel()[np.flatnonzero(MASK.ravel())[[0, 1, 4, 5]]] = np.nan
    contrast(tmp_path / "bids", "01", values)
    regions = blocks_of((3, 5, 4, 4))  # 2 of 3, 2 of 5 and none are missing
    vectors, _ = measured(
        *(tmp_path / "bids", None, regions), data={"atlas": "a.nii.gz"}, **IMAGE, gaps=0.5
    )
    np.testing.assert_allclose(vectors["01"], [np.nan, 3.0, 3.0, 3.0])


def test_centre_and_norm_are_the_persons_own(tmp_path: Path) -> None:
    put(tmp_path / "bids", "01", tiny_series(1))
    alone, _ = measured(tmp_path / "bids", center=True, normalize=True)
    assert alone["01"].sum() == pytest.approx(0, abs=1e-9)
    assert np.linalg.norm(alone["01"]) == pytest.approx(1)
    put(tmp_path / "bids", "02", 7 * tiny_series(2))
    both, _ = measured(tmp_path / "bids", center=True, normalize=True)
    np.testing.assert_array_equal(both["01"], alone["01"])


# -- what can't be used --------------------------------------------------------------------


def _no_time(path: Path) -> None:
    nib.save(nib.Nifti1Image(tiny_series(), AFFINE), path)


WRONG = {
    "no repetition time": ("alff", _no_time, "unusable", "a repetition time in s is required"),
    "slow volumes": (
        "alff",
        lambda p: nib.save(image(tiny_series(), 10.0), p),
        "unusable",
        "too slow for a band",
    ),
    "a short series": (
        "alff",
        lambda p: nib.save(image(tiny_series(volumes=20), 0.1), p),
        "too-few-volumes",
        "too short for the band",
    ),
    "few volumes": (
        "amplitude",
        lambda p: nib.save(image(tiny_series(volumes=5)), p),
        "too-few-volumes",
        "5 volumes",
    ),
    "cut short": (
        "amplitude",
        lambda p: p.write_bytes(p.read_bytes()[:-500]),
        "unusable",
        "cut short",
    ),
    "constant": (
        "amplitude",
        lambda p: nib.save(image(np.ones((*SHAPE, 24))), p),
        "unusable",
        "constant",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_one_sentence_about_one_person(tmp_path: Path, case: str) -> None:
    measure, change, reason, match = WRONG[case]
    slow = tiny_series(2, volumes=120)
    put(tmp_path / "bids", "02", slow)
    change(put(tmp_path / "bids", "01", tiny_series()))
    vectors, (skipped,) = measured(tmp_path / "bids", measure=measure)
    assert list(vectors) == ["02"]
    assert (skipped.label, skipped.reason) == ("01", reason)
    assert match in skipped.detail
    assert skipped.detail.count("\n") == 0
    assert skipped.detail.endswith(".")


def test_a_person_has_one_image_or_is_told(tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal(SHAPE)
    contrast(tmp_path / "bids", "01", values)
    path = contrast(tmp_path / "bids", "02", values)
    path.rename(path.with_name(path.name.replace("rest", "faces")))
    contrast(tmp_path / "bids", "02", values)
    contrast(tmp_path / "bids", "03", values, name="otherstatmap")
    contrast(tmp_path / "bids", "04", np.zeros(SHAPE))
    contrast(tmp_path / "bids", "05", values).write_bytes(b"no image")
    save(contrast(tmp_path / "bids", "06", values), tiny_series())
    vectors, skipped = measured(tmp_path / "bids", measure="image", image="statmap")
    assert list(vectors) == ["01"]
    assert [(each.label, each.reason) for each in skipped] == [
        ("02", "unusable"),
        ("03", "no-view"),
        ("04", "unusable"),
        ("05", "unusable"),
        ("06", "unusable"),
    ]
    with pytest.raises(DataError, match="has no"):
        measured(tmp_path / "bids", measure="image", image="zmap")
