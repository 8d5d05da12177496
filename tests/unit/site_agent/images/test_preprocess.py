"""Preprocessing against nilearn, closed forms and wrong inputs, on real files."""

import gzip
import re
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consortium.errors import DataError
from consortium.space.atlas import Target
from consortium.space.grid import Grid
from consortium.study.data_section import DataSection
from site_agent.data.survey import RecordingRun, Subject
from site_agent.images.preprocess import (
    confound_design,
    preprocess_person,
    project_out,
    read_confounds,
    read_series,
    standardize_series,
)
from tests.support.tiny_images import (
    AFFINE,
    SHAPE,
    VOLUMES,
    save,
    save_confounds,
    tiny_grid,
    tiny_series,
)

GRID = tiny_grid()


def load(path, table=None, **settings_):
    return preprocess_person(
        Subject("x", (RecordingRun(path, table),)), DataSection(**settings_), Target(GRID)
    )


@pytest.fixture
def bold(tmp_path):
    return save(tmp_path / "scan_space-x_bold.nii.gz", tiny_series())


def masker(**arguments):
    from nilearn.maskers import NiftiMasker

    mask = nib.Nifti1Image(GRID.mask.astype(np.uint8), GRID.affine)
    return NiftiMasker(mask, **arguments)


def test_raw_values_come_in_mask_order(bold):
    block = load(bold, detrend="none", standardize="none", scale=0.5)
    assert block.dtype == np.float32
    assert block.shape == (GRID.features, VOLUMES)
    np.testing.assert_allclose(block, 0.5 * tiny_series()[GRID.mask], rtol=1e-6)


def test_matches_nilearn_on_detrended_standardized_voxels(bold):
    reference = masker(detrend=True, standardize="zscore_sample").fit_transform(bold).T
    block = load(bold, detrend="linear", standardize="voxel")
    factor = np.sqrt((reference**2).sum(axis=0).mean())
    np.testing.assert_allclose(block, reference / factor, atol=2e-5)


def test_matches_nilearn_on_smoothing(bold):
    reference = masker(smoothing_fwhm=7.0, standardize=None).fit_transform(bold).T
    block = load(bold, smoothing=7.0, detrend="none", standardize="none")
    np.testing.assert_allclose(block, reference, rtol=1e-5)


def test_matches_nilearn_on_confounds_and_trend(bold):
    confounds = np.random.default_rng(3).normal(5, 2, (VOLUMES, 3))
    table = save_confounds(bold, {f"c{i}": confounds[:, i] for i in range(3)})
    found = load(bold, table, confounds=["c*"], detrend="linear", standardize="none")
    # One least squares with trend and confounds together is the reference; nilearn detrends data
    # and confounds first, which is the same projection.
    reference = masker(detrend=True, standardize=None).fit_transform(bold, confounds=confounds).T
    np.testing.assert_allclose(found, reference, atol=2e-3)


def test_matches_nilearn_on_resampling(tmp_path):
    from nilearn.image import resample_img

    fine = np.diag([2.0, 2.5, 2.0, 1.0])
    fine[:3, 3] = (-13.5, -11.0, -9.0)
    data = tiny_series(shape=(14, 12, 11))
    path = save(tmp_path / "fine.nii", data, fine)
    image = resample_img(
        nib.load(path), target_affine=AFFINE, target_shape=SHAPE, interpolation="continuous"
    )
    found = load(path, smoothing=0, detrend="none", standardize="none")
    np.testing.assert_allclose(found, image.get_fdata()[GRID.mask], rtol=1e-4)


@pytest.mark.parametrize(("name", "degree"), [("constant", 0), ("linear", 1), ("quadratic", 2)])
def test_trends_match_polyfit(bold, name, degree):
    values = tiny_series()[GRID.mask].astype(np.float64)
    time = np.arange(VOLUMES)
    fits = np.polynomial.polynomial.polyvander(time, degree)
    expected = values - (fits @ np.polynomial.polynomial.polyfit(time, values.T, degree)).T
    block = load(bold, detrend=name, standardize="none")
    np.testing.assert_allclose(block, expected, atol=1e-3)


@pytest.mark.parametrize("detrend", ["none", "linear"])
def test_confounds_and_trend_leave_in_one_projection(bold, detrend):
    generator = np.random.default_rng(1)
    # A confound with a trend of its own: taking one out after the other would leave some.
    confound = np.linspace(0, 3, VOLUMES) + generator.standard_normal(VOLUMES)
    table = save_confounds(bold, {"drift": confound, "other": generator.standard_normal(VOLUMES)})
    block = load(bold, table, confounds=["drift"], detrend=detrend, standardize="none")
    centred = confound - confound.mean()
    assert np.abs(block @ centred).max() < 1e-2 * np.linalg.norm(centred)
    means = block.mean(axis=1)
    expected = 0 if detrend == "linear" else tiny_series()[GRID.mask].mean(axis=1)
    np.testing.assert_allclose(means, expected, rtol=1e-4, atol=1e-3)


def test_standardized_subject_has_second_moment_of_trace_one(bold):
    for standardize in ("subject", "voxel"):
        block = load(bold, standardize=standardize).astype(np.float64)
        assert np.trace(block @ block.T / VOLUMES) == pytest.approx(1.0, abs=1e-5)
    spread = block.std(axis=1)
    np.testing.assert_allclose(spread, spread[0], rtol=1e-4)


@pytest.mark.parametrize("columns", [2048, 2049, 5000])
def test_series_standardized_in_parts_are_those_of_the_whole_to_the_bit(columns):
    series = np.random.default_rng(5).normal(3, 2, (30, columns)).astype(np.float32)
    series[:, columns // 3] = 7.0  # constant
    spread = series.std(axis=0, dtype=np.float64)
    factor = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 1e-5)
    wanted = series * factor.astype(np.float32)
    energy = sum(float(np.vdot(volume, volume)) for volume in wanted)
    wanted *= np.float32(np.sqrt(30 / energy))
    standardize_series(series, DataSection(standardize="voxel"), Path("scan"))
    np.testing.assert_array_equal(series, wanted)


def test_subject_factor_ignores_the_scanners_gain(tmp_path, bold):
    louder = save(tmp_path / "louder.nii", 7 * tiny_series())
    np.testing.assert_allclose(load(bold), load(louder), atol=1e-5)


@pytest.mark.parametrize("detrend", ["none", "constant", "linear"])
def test_constant_voxels_stay_zero(tmp_path, detrend):
    data = tiny_series()
    data[2, 2, 2] = 1234.567
    path = save(tmp_path / "one.nii", data)
    block = load(path, detrend=detrend, standardize="voxel")
    index = np.flatnonzero((np.argwhere(GRID.mask) == 2).all(axis=1))
    assert not block[index].any()
    assert np.count_nonzero(block.any(axis=1)) == GRID.features - 1


def test_runs_of_one_person_are_cleaned_apart_and_joined(tmp_path):
    first = save(tmp_path / "a.nii", tiny_series(1))
    second = save(tmp_path / "b.nii", 3 * tiny_series(2, volumes=30))
    data = DataSection(standardize="none")
    joined = preprocess_person(
        Subject("x", (RecordingRun(first), RecordingRun(second))), data, Target(GRID)
    )
    alone = [load(path, standardize="none") for path in (first, second)]
    np.testing.assert_array_equal(joined, np.hstack(alone))


@pytest.mark.parametrize("dtype", ["<i2", ">i2", "<u2", ">f4", "<f8"])
def test_stored_types_and_scaling_are_honoured(tmp_path, dtype):
    image = nib.Nifti1Image(tiny_series(), AFFINE)
    header = nib.Nifti1Header(endianness=dtype[0])
    header.set_data_dtype(np.dtype(dtype))
    path = tmp_path / "typed.nii.gz"
    nib.save(nib.Nifti1Image(tiny_series(), AFFINE, header), path)
    expected = nib.load(path).get_fdata()[GRID.mask]
    np.testing.assert_allclose(read_series(path, 0.0, GRID).T, expected, rtol=1e-6)
    assert image.shape == nib.load(path).shape


@settings(max_examples=40, deadline=None)
@given(st.integers(8, 40), st.integers(-1, 2), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_design_is_an_orthonormal_projection(volumes, degree, columns, seed):
    generator = np.random.default_rng(seed)
    confounds = generator.standard_normal((volumes, columns)) * 10.0 ** generator.integers(-6, 6)
    doubled = np.hstack([confounds, confounds[:, :1], np.full((volumes, 1), 0.1)])
    basis = confound_design(volumes, degree, doubled)
    assert basis.shape == (volumes, degree + 1 + columns)
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-9)
    series = generator.standard_normal((volumes, 5)).astype(np.float32)
    once = series.copy()
    project_out(once, basis)
    twice = once.copy()
    project_out(twice, basis)
    np.testing.assert_allclose(once, twice, atol=1e-5)
    assert np.abs(basis.T @ once).max(initial=0) < 1e-4


def refusal(path, **settings_):
    """The sentence about a file: it must name it and be one."""
    with pytest.raises(DataError) as caught:
        load(path, **settings_)
    text = str(caught.value)
    assert path.name in text
    assert re.fullmatch(r"[^\n]+[.]", text)
    return text.replace(str(path), "FILE")


@pytest.mark.parametrize("keep", [0.5, 0.9, 0.99])
def test_truncated_gzip(tmp_path, bold, keep):
    content = bold.read_bytes()
    path = tmp_path / "short.nii.gz"
    path.write_bytes(content[: int(keep * len(content))])
    assert "cut short or damaged" in refusal(path)


def test_truncated_plain_file(tmp_path):
    path = save(tmp_path / "short.nii", tiny_series())
    path.write_bytes(path.read_bytes()[:-100])
    assert "cut short" in refusal(path)


@pytest.mark.parametrize("size", [0, 10, 200])
def test_truncated_header(tmp_path, size):
    path = save(tmp_path / "short.nii", tiny_series())
    path.write_bytes(path.read_bytes()[:size])
    assert "NIfTI" in refusal(path)


def test_damage_that_only_the_checksum_shows(tmp_path):
    # Stored blocks: a flipped bit passes zlib and is found by gzip's CRC alone.
    plain = save(tmp_path / "plain.nii", tiny_series()).read_bytes()
    content = bytearray(gzip.compress(plain, compresslevel=0))
    content[-2000] ^= 1
    path = tmp_path / "flipped.nii.gz"
    path.write_bytes(content)
    assert "damaged" in refusal(path)


def test_other_files_and_shapes(tmp_path):
    text = tmp_path / "text.nii"
    text.write_text("not an image " * 50)
    assert "NIfTI" in refusal(text)
    assert "NIfTI" in refusal(tmp_path / "missing.nii.gz")
    assert "3 axes" in refusal(save(tmp_path / "flat.nii", tiny_series()[..., 0]))
    assert "5 axes" in refusal(save(tmp_path / "five.nii", tiny_series()[..., None]))
    foreign = tmp_path / "other.mgz"
    nib.save(nib.MGHImage(tiny_series(), AFFINE), foreign)
    assert "not a NIfTI" in refusal(foreign)
    complex_ = tmp_path / "complex.nii"
    nib.save(nib.Nifti1Image(tiny_series().astype(np.complex64), AFFINE), complex_)
    assert "real numbers" in refusal(complex_)


def test_wrong_places(tmp_path):
    away = AFFINE.copy()
    away[0, 3] += 8  # two of the mask's four columns
    assert "0%" in refusal(save(tmp_path / "away.nii", tiny_series(), away))
    slightly = AFFINE.copy()
    slightly[0, 3] += 4
    path = save(tmp_path / "slightly.nii", tiny_series(), slightly)
    assert load(path).shape == (GRID.features, VOLUMES)
    path = save(tmp_path / "singular.nii", tiny_series())
    for row, words in ((np.zeros(4), "singular"), (np.full(4, np.nan), "infinite")):
        content = bytearray(path.read_bytes())
        content[280:296] = row.astype("<f4").tobytes()  # first row of the sform
        path.write_bytes(content)
        assert words in refusal(path)


def test_values_that_are_not_finite(tmp_path):
    for value in (np.nan, np.inf):
        data = tiny_series()
        data[2, 2, 2, 6] = value
        assert "not finite in volume 7" in refusal(save(tmp_path / "bad.nii", data))
    outside = tiny_series()
    outside[0, 0, 0] = np.nan
    assert np.isfinite(load(save(tmp_path / "outside.nii", outside))).all()
    huge = tiny_series().astype(np.float64)
    huge[2, 2, 2, 3] = 1e300
    assert "not finite in volume 4" in refusal(save(tmp_path / "huge.nii", huge))


def test_a_mask_that_misses_the_brain(tmp_path):
    data = tiny_series()
    data[GRID.mask] = 0
    empty = save(tmp_path / "empty.nii", data)
    for standardize in ("none", "subject", "voxel"):
        assert "zero or constant" in refusal(empty, standardize=standardize)
    data[GRID.mask] = 950.3
    flat = save(tmp_path / "flat.nii", data)
    assert "zero or constant" in refusal(flat)
    assert "constant" in refusal(flat, detrend="none", standardize="voxel")


def test_confounds_that_are_not_there_or_leave_nothing(tmp_path, bold):
    assert "no confounds table" in refusal(bold, confounds=["csf"])
    columns = np.random.default_rng(0).standard_normal((VOLUMES, VOLUMES))
    table = save_confounds(bold, {f"c{i}": columns[i] for i in range(VOLUMES)})
    with pytest.raises(DataError, match="a study with fewer confounds"):
        load(bold, table, confounds=["c*"])


def test_first_line_of_a_derivative_counts_as_zero(bold):
    course = np.random.default_rng(0).standard_normal(VOLUMES)
    table = save_confounds(bold, {"d": course}, first="n/a")
    found = load(bold, table, confounds=["d"])
    course[0] = 0.0
    expected = load(bold, save_confounds(bold, {"d": course}), confounds=["d"])
    np.testing.assert_array_equal(found, expected)


def test_oblique_grids_are_resampled_onto_the_study(tmp_path):
    # A linear image is reproduced exactly by any interpolation: the places must be right.
    turn = np.array([[0.9, -0.3, 0.1], [0.3, 0.9, -0.2], [-0.1, 0.2, 0.95]]) * 3.0
    affine = np.eye(4)
    affine[:3, :3] = turn
    affine[:3, 3] = -turn @ np.array([8, 8, 8])
    index = np.indices((17, 17, 17)).reshape(3, -1).T
    places = index @ turn.T + affine[:3, 3]
    ramp = (1000 + places @ [2.0, -1.0, 3.0]).reshape(17, 17, 17).astype(np.float32)
    grid = Grid(GRID.mask, AFFINE)
    path = save(tmp_path / "oblique.nii", np.repeat(ramp[..., None], 3, axis=3), affine)
    expected = 1000 + grid.coordinates @ [2.0, -1.0, 3.0]
    np.testing.assert_allclose(read_series(path, 0.0, grid)[1], expected, rtol=1e-4)


def test_a_coarse_grid_averages_finer_voxels_by_default(tmp_path):
    """Alternating voxels of ±1 about 1000 are sampled as points without smoothing."""
    fine = np.indices((24, 24, 24)).sum(axis=0) % 2 * 2.0 - 1.0
    series = np.repeat(1000 + fine[..., None], 3, axis=3).astype(np.float32)
    affine = AFFINE @ np.diag([0.25, 0.25, 0.25, 1.0])
    path = save(tmp_path / "fine.nii.gz", series, affine)
    sampled, averaged = read_series(path, 0.0, GRID)[1], read_series(path, None, GRID)[1]
    assert np.abs(sampled - 1000).min() > 0.3
    inside = np.abs(averaged - 1000) < 100  # spline and filter know no values beyond the image
    assert inside.mean() > 0.5
    assert np.abs(averaged[inside] - 1000).max() < 1e-2


def test_an_image_on_the_grid_is_not_smoothed_by_default(bold):
    np.testing.assert_array_equal(read_series(bold, None, GRID), read_series(bold, 0.0, GRID))


@pytest.mark.parametrize("smoothing", [None, 0.0, 8.0])
def test_what_is_not_finite_outside_the_mask_is_left_out(tmp_path, smoothing):
    series = tiny_series()
    outside = series * GRID.mask[..., None]
    clean = read_series(save(tmp_path / "clean.nii", outside), smoothing, GRID)
    outside[~GRID.mask] = np.nan
    found = read_series(save(tmp_path / "nan.nii", outside), smoothing, GRID)
    np.testing.assert_array_equal(found, clean)


def test_what_is_not_finite_in_the_mask_is_told_even_where_images_are_resampled(tmp_path):
    series = tiny_series()
    place = tuple(np.argwhere(GRID.mask)[0])
    series[place] = np.nan
    moved = AFFINE.copy()
    moved[:3, 3] += 0.5
    with pytest.raises(DataError, match="not finite in volume 1"):
        read_series(save(tmp_path / "nan.nii", series, moved), None, GRID)


def test_a_band_is_what_is_left_between_its_frequencies(tmp_path):
    """Of cosines at .02, .05 and .15 Hz the middle one passes from .04 to .1 Hz."""
    volumes, step = 100, 2.0
    time = (np.arange(volumes) + 0.5) * step
    slow, middle, fast = (np.cos(2 * np.pi * f * time) for f in (0.02, 0.05, 0.15))
    rng = np.random.default_rng(5)
    weights = rng.normal(size=(3, *SHAPE[:3]))
    series = 1000 + np.tensordot(weights, [slow, middle, fast], axes=(0, 0))
    path = save(tmp_path / "scan_bold.nii.gz", series.astype(np.float32))
    path.with_name("scan_bold.json").write_text('{"RepetitionTime": 2.0}')
    block = load(path, high_pass=0.04, low_pass=0.1, standardize="none", detrend="constant")
    expected = np.outer(weights[1][GRID.mask], middle)
    np.testing.assert_allclose(block, expected, atol=2e-3)


def test_a_band_agrees_with_nilearns_cosine_filter(tmp_path):
    from nilearn.signal import clean

    series = tiny_series()
    path = save(tmp_path / "scan_bold.nii.gz", series)
    path.with_name("scan_bold.json").write_text('{"RepetitionTime": 2.5}')
    block = load(path, high_pass=0.03, standardize="none", detrend="constant")
    wanted = clean(
        series[GRID.mask].T,
        filter="cosine",
        high_pass=0.03,
        t_r=2.5,
        standardize=None,
        detrend=False,
        standardize_confounds=False,
    )
    np.testing.assert_allclose(block, (wanted - wanted.mean(axis=0)).T, rtol=1e-3, atol=1e-3)


def test_a_band_without_a_repetition_time_is_one_sentence(bold):
    image = nib.load(bold)
    image.header.set_xyzt_units(xyz="mm", t="unknown")
    nib.save(nib.Nifti1Image(np.asarray(image.dataobj), AFFINE, image.header), bold)
    with pytest.raises(DataError, match="a repetition time in s is required"):
        load(bold, low_pass=0.1)


def test_a_band_that_leaves_nothing_is_one_sentence(tmp_path):
    path = save(tmp_path / "scan_bold.nii.gz", tiny_series())
    path.with_name("scan_bold.json").write_text('{"RepetitionTime": 2.5}')
    with pytest.raises(DataError, match="a wider band"):
        load(path, low_pass=1e-4)
    with pytest.raises(ValueError, match=r"high_pass .* must be below low_pass"):
        DataSection(high_pass=0.1, low_pass=0.05)


TABLE = """trans_x\ttrans_x_derivative1\ttrans_y\tcsf
0.5\tn/a\t1\t900
0.25\t-0.25\t2\t901.5
-1e-3\t0.125\t3\t899
"""


@pytest.fixture
def table(tmp_path) -> Path:
    path = tmp_path / "table.tsv"
    path.write_text(TABLE)
    return path


def test_columns_by_name_and_prefix(table):
    matrix = read_confounds(table, ["csf", "trans_*", "trans_y"], 3)
    expected = [[900, 0.5, 0, 1], [901.5, 0.25, -0.25, 2], [899, -1e-3, 0.125, 3]]
    np.testing.assert_array_equal(matrix, expected)


def test_windows_line_ends_and_marks_are_read(table):
    table.write_bytes(b"\xef\xbb\xbf" + TABLE.replace("\n", "\r\n").encode())
    np.testing.assert_array_equal(read_confounds(table, ["trans_x"], 3)[:, 0], [0.5, 0.25, -1e-3])


@pytest.mark.parametrize(
    ("patterns", "volumes", "words"),
    [
        (["rot_x"], 3, "no column 'rot_x'"),
        (["trans_X"], 3, r"There are .* Did you mean 'trans_x'\?"),
        (["rot_*"], 3, r"no column 'rot_\*'"),
        (["csf"], 4, "3 lines for 4 volumes"),
        (["csf"], 2, "3 lines for 2 volumes"),
    ],
)
def test_what_is_missing_is_named(table, patterns, volumes, words):
    with pytest.raises(DataError, match=f"table.tsv.*{words}"):
        read_confounds(table, patterns, volumes)


def test_who_has_no_outlier_volume_has_no_column_for_one(table):
    patterns = ["csf", "motion_outlier*", "non_steady_state_outlier*"]
    np.testing.assert_array_equal(
        read_confounds(table, patterns, 3), read_confounds(table, ["csf"], 3)
    )
    assert read_confounds(table, ["motion_outlier*"], 3).shape == (3, 0)


@pytest.mark.parametrize("text", ["n/a", "nan", "inf", "", "two"])
def test_no_number_after_the_first_line_is_named(table, text):
    table.write_text(TABLE.replace("901.5", text))
    with pytest.raises(DataError, match=r"table\.tsv.*'csf' for volume 2"):
        read_confounds(table, ["csf"], 3)


def test_an_infinite_first_value_is_no_missing_one(table):
    table.write_text(TABLE.replace("n/a", "inf"))
    with pytest.raises(DataError, match="volume 1"):
        read_confounds(table, ["trans_x_derivative1"], 3)


def test_short_lines_are_named(table):
    table.write_text(TABLE.replace("\t899", ""))
    with pytest.raises(DataError, match="line 4"):
        read_confounds(table, ["csf"], 3)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00csf"])
def test_foreign_files_are_named(table, content):
    table.write_bytes(content)
    with pytest.raises(DataError, match=r"table\.tsv"):
        read_confounds(table, ["csf"], 3)
    table.unlink()
    with pytest.raises(DataError, match=r"table\.tsv"):
        read_confounds(table, ["csf"], 3)
