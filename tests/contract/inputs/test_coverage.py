"""K5, absence counted as zero: voxels without data, from image files to means and effects."""

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.ndimage import map_coordinates

from consortium.algorithms.base import Serious
from consortium.opened_study import OpenedStudy
from consortium.simulation.array_data import ArrayData
from consortium.simulation.simulation import Simulation
from consortium.space.study_space import Space, ViewSpace
from consortium.study.data_section import DataSection
from consortium.study.spec import Study
from consortium.views.surface import SurfaceView
from site_agent.data.understood import Understanding
from site_agent.images.coverage import summarize_coverage
from site_agent.images.surfaces import read_surfaces
from site_agent.loading.feature_vectors import FeatureDataset
from site_agent.loading.open import coverage_of, open_dataset
from tests.contract.inputs.images import MESH, cortex
from tests.support.surfaces import write_values
from tests.support.tiny_images import AFFINE, FUNC, SHAPE, tiny_grid, tiny_series
from tests.support.tiny_views import image as series_image
from tests.support.tiny_views import view_space, view_study

IMAGE = {
    **{"name": "x", "source": "fmri", "measure": "image", "image": "statmap"},
    **{"center": False, "normalize": False},
}
MASK = tiny_grid().mask
NAME = "sub-{}_space-MNI152NLin2009cAsym_statmap.nii.gz"
PART = np.zeros(SHAPE, bool)
PART.ravel()[np.flatnonzero(MASK.ravel())[:3]] = True
"""Three of the mask's 23 voxels: 13 %."""


def write(folder: Path, label: str, values: np.ndarray, affine: np.ndarray = AFFINE) -> None:
    home = folder / f"sub-{label}" / "func"
    home.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(values.astype(np.float32), affine), home / NAME.format(label))


def study_of(algorithm: str = "average", analysis: dict | None = None, **view: object) -> Study:
    values = view_study(IMAGE | view).model_dump(mode="json", exclude_none=True)
    changed = {"algorithm": algorithm, "analysis": analysis or {}}
    values["privacy"] |= {"scheme": "none"}
    return Study.model_validate(values | changed)


def opened(folder: Path, study: Study) -> FeatureDataset:
    found = open_dataset(folder, OpenedStudy(study, view_space(study)), folder.parent / "cache")
    assert isinstance(found, FeatureDataset)
    return found


def half_lacking(folder: Path, missing: float, people: int = 12) -> None:
    """Images that are 1 everywhere, half of them without values in part of the mask."""
    for number in range(people):
        values = np.ones(SHAPE)
        values[PART] = missing if number % 2 else 1.0
        write(folder, f"{number:02}", values)


def averaged(data: FeatureDataset, study: Study):
    """Result over four sites that each hold all participants."""
    blocks = list(data.blocks())
    site = ArrayData(blocks, views=(("x", len(blocks[0])),))
    analysis = study.analysis.model_copy(update={"bound": 100.0})
    return Simulation(study.model_copy(update={"analysis": analysis}), [site] * 4, 0).run()


@pytest.mark.parametrize("missing", [np.nan, np.inf, -np.inf])
def test_the_mean_is_that_of_the_participants_who_have_the_voxel(
    tmp_path: Path, missing: float
) -> None:
    half_lacking(tmp_path / "bids", missing)
    study = study_of()
    result = averaged(opened(tmp_path / "bids", study), study)
    np.testing.assert_allclose(result.arrays["mean"], 1.0, rtol=1e-6)
    coverage = result.arrays["coverage"][:, 0]
    np.testing.assert_allclose(coverage, np.where(PART[MASK], 0.5, 1.0), rtol=1e-6)


def test_zeros_count_as_missing_where_the_study_says_so_and_are_warned_of_elsewhere(
    tmp_path: Path,
) -> None:
    half_lacking(tmp_path / "bids", 0.0)
    said = study_of(zero_is_missing=True)
    result = averaged(opened(tmp_path / "bids", said), said)
    np.testing.assert_allclose(result.arrays["mean"], 1.0, rtol=1e-6)
    for number in range(12):
        values = np.random.default_rng(number).standard_normal(SHAPE)
        values[PART] = 0.0 if number % 2 else values[PART]
        write(tmp_path / "bids", f"{number:02}", values)
    for view in ({}, {"center": True, "normalize": True}):
        study = study_of(**view)
        data = opened(tmp_path / "bids", study)
        (note,) = summarize_coverage(coverage_of(data, study)).notes
        assert isinstance(note, Serious)
        assert "13 % of the values are equal to one another within a participant" in note
        assert "In a view with measure: image the coordinator can set zero_is_missing: true" in note


def test_voxels_that_less_than_half_of_the_participants_have_are_withheld(tmp_path: Path) -> None:
    for number in range(12):
        values = np.full(SHAPE, 2.0)
        values[PART] = np.nan if number % 3 else 2.0
        write(tmp_path / "bids", f"{number:02}", values)
    study = study_of()
    result = averaged(opened(tmp_path / "bids", study), study)
    mean = result.arrays["mean"][:, 0]
    assert not mean[PART[MASK]].any()
    np.testing.assert_allclose(mean[~PART[MASK]], 2.0, rtol=1e-6)
    assert "3 values of 23 are withheld" in result.captions.headline
    cells = [row[2] for row in result.tables["means"].rows]
    assert [cell.reported for cell in cells] == list(~PART[MASK])


@pytest.mark.parametrize("algorithm", ["summarize", "coordinate"])
def test_no_missing_value_enters_an_analysis_that_has_no_use_for_it(
    tmp_path: Path, algorithm: str
) -> None:
    half_lacking(tmp_path / "bids", np.nan)
    study = study_of(algorithm, {"radii": {"x": 3.0}} if algorithm == "coordinate" else None)
    data = opened(tmp_path / "bids", study)
    assert np.isfinite(data.table()).all()
    (note,) = summarize_coverage(coverage_of(data, study)).notes
    assert isinstance(note, Serious)
    assert "13 % of the values" in note
    assert "in at most 50%" in note


def test_what_check_prints_of_coverage(tmp_path: Path) -> None:
    half_lacking(tmp_path / "bids", np.nan)
    study = study_of()
    found = summarize_coverage(coverage_of(opened(tmp_path / "bids", study), study))
    assert found.notes == ()
    ((topic, finding),) = found.facts
    assert topic == "coverage of the mask, view 'x'"
    assert finding == (
        "complete in 6 of 12 participants; 13 % of the values are missing in more than 5% of them, "
        "0 % in more than half"
    )


def test_series_that_do_not_reach_a_voxel_are_counted(tmp_path: Path) -> None:
    study = view_study(IMAGE, detrend="none")
    study = study.model_copy(update={"features": ()})
    for number in range(4):
        series = tiny_series(number)
        series[PART] = 0.0 if number % 2 else series[PART]
        home = tmp_path / "bids" / f"sub-{number:02}" / "func"
        home.mkdir(parents=True)
        nib.save(series_image(series), home / f"sub-{number:02}_{FUNC}")
    data = open_dataset(
        tmp_path / "bids", OpenedStudy(study, Space(tiny_grid())), tmp_path / "cache"
    )
    found = summarize_coverage(coverage_of(data, study))
    ((topic, finding),) = found.facts
    assert topic == "coverage of the mask"
    assert finding.startswith("complete in 2 of 4 participants; 13 % of the values are missing")
    (note,) = found.notes
    assert isinstance(note, Serious)
    gappy = study.analysis.model_copy(update={"gaps": 0.2})
    assert summarize_coverage(coverage_of(data, study.model_copy(update={"analysis": gappy}))) == (
        Understanding(found.facts)
    )


# -- variants ------------------------------------------------------------------------------


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    seed=st.integers(0, 2**32 - 1),
    shift=st.tuples(*[st.floats(-0.9, 0.9)] * 3),
    missing=st.sampled_from([np.nan, np.inf]),
)
def test_a_value_is_the_weighted_mean_of_the_finite_values_around_it(
    tmp_path: Path, seed: int, shift: tuple[float, float, float], missing: float
) -> None:
    """Compared with trilinear weights that are worked out voxel by voxel."""
    generator = np.random.default_rng(seed)
    values = generator.standard_normal(SHAPE).astype(np.float32)
    values[generator.random(SHAPE) < 0.1] = missing
    affine = AFFINE.copy()
    affine[:3, 3] += AFFINE[:3, :3] @ np.array(shift)
    folder = tmp_path / f"{seed}-{missing}" / "bids"
    write(folder, "01", values, affine)
    found = read_one(folder, study_of(gaps=0.5))
    if found is None:
        return
    there, expected = np.isfinite(values), np.full(MASK.sum(), np.nan)
    inverse = np.linalg.inv(affine)
    for row, place in enumerate(tiny_grid().coordinates):
        at = (inverse @ np.append(place, 1.0))[:3]
        expected[row] = mean_around(values, there, np.round(at, 9))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def read_one(folder: Path, study: Study) -> np.ndarray | None:
    data = opened(folder, study)
    return data.table()[:, 0] if data.survey.lengths else None


def mean_around(values: np.ndarray, there: np.ndarray, place: np.ndarray) -> float:
    """Mean of the finite values at the eight corners around a place, by trilinear weights."""
    if (place < 0).any() or (place > np.array(values.shape) - 1).any():
        return float("nan")
    floor = np.minimum(np.floor(place).astype(int), np.array(values.shape) - 2)
    part, total, weight = place - floor, 0.0, 0.0
    for corner in np.ndindex(2, 2, 2):
        own = float(np.prod(np.where(corner, part, 1 - part)))
        at = tuple(floor + corner)
        if there[at]:
            total, weight = total + own * float(values[at]), weight + own
    return total / weight if weight >= 0.5 - 1e-9 else float("nan")


def test_the_reference_is_scipys_where_everything_is_there() -> None:
    values = np.random.default_rng(0).standard_normal(SHAPE)
    place = np.array([1.3, 2.6, 1.5])
    own = map_coordinates(values, place[:, None], order=1)[0]
    assert mean_around(values, np.isfinite(values), place) == pytest.approx(own)


@pytest.mark.parametrize(("gaps", "reason"), [(None, "unusable"), (0.1, "does-not-fit")])
def test_whom_gaps_of_the_study_leave_out_count_as_left_out_by_a_rule(
    tmp_path: Path, gaps: float | None, reason: str
) -> None:
    rows = np.flatnonzero(MASK.ravel())
    for number in range(12):
        values = np.random.default_rng(number).standard_normal(SHAPE)
        values.ravel()[rows[: 0 if number else 6]] = np.nan
        write(tmp_path / "bids", f"{number:02}", values)
    survey = opened(tmp_path / "bids", study_of(gaps=gaps)).survey
    ((label, found),) = [(each.label, each.reason) for each in survey.skipped]
    assert (label, found) == ("00", reason)


def test_whom_gaps_of_a_surface_view_leave_out_count_as_left_out_by_a_rule(tmp_path: Path) -> None:
    for label, lacking in (("01", 0), ("02", 2000)):
        for side in "LR":
            values = np.random.default_rng(int(label)).uniform(2, 3, 10_242).astype(np.float32)
            values[:lacking] = np.nan
            write_values(surface(tmp_path, label, side), values)
    found = {gaps: _reason(tmp_path, gaps) for gaps in (0.0, 0.05)}
    assert found == {0.0: "unusable", 0.05: "does-not-fit"}


def surface(root: Path, label: str, side: str) -> Path:
    name = f"sub-{label}_hemi-{side}_space-{MESH}_thickness.shape.gii"
    return root / f"sub-{label}" / "anat" / name


def _reason(root: Path, gaps: float) -> str:
    named = {"name": "x", "source": "surface", "mesh": MESH, "values": "thickness", "gaps": gaps}
    view = ViewSpace(SurfaceView.model_validate(named), cortex().features, mesh=cortex())
    (skipped,) = read_surfaces(root, DataSection(), view, gaps)[1]
    return str(skipped.reason)


@pytest.mark.parametrize("value", [np.nan, 0.0])
def test_an_image_without_a_finite_value_is_not_called_zero(tmp_path: Path, value: float) -> None:
    write(tmp_path / "bids", "01", np.full(SHAPE, value))
    write(tmp_path / "bids", "02", np.ones(SHAPE))
    (skipped,) = opened(tmp_path / "bids", study_of()).survey.skipped
    assert ("without any finite value" in skipped.detail) == np.isnan(value)
    assert ("zero at every finite value" in skipped.detail) == (value == 0)


def test_complete_images_are_called_complete(tmp_path: Path) -> None:
    half_lacking(tmp_path / "bids", 2.0)
    study = study_of()
    found = summarize_coverage(coverage_of(opened(tmp_path / "bids", study), study))
    assert [finding for _, finding in found.facts] == ["complete in all 12 participants"]
