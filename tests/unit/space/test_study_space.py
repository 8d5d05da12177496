"""Atlas and finer maps: real NIfTI files in, public linear maps out."""

from dataclasses import replace

import nibabel as nib
import numpy as np
import pytest

from consortium.algorithms.subspace import smooth_basis
from consortium.base.kept_arrays import cache_folder
from consortium.errors import DataError, StudyError
from consortium.kernels.smooth_basis import SmoothBasis
from consortium.membership.signed_study import named_files_digest
from consortium.space import study_space as spaces
from consortium.space.atlas import read_regions
from consortium.space.grid import Grid
from consortium.space.mesh import Hemisphere, Mesh
from consortium.space.study_space import KeptBasis, Space, image_space, study_space, surface_places
from consortium.study.data_section import DataSection
from consortium.study.spec import Study
from tests.support.surfaces import sphere

MANY = 400
GRID_KEPT_BASIS = Grid(np.ones((7, 6, 6), dtype=bool), np.diag([8.0, 8.0, 8.0, 1.0]))


@pytest.fixture
def mesh(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    points, triangles = sphere(MANY)
    cortex = np.arange(MANY) >= 20
    left = Hemisphere("L", points, triangles, cortex)
    return Mesh("fsaverage5", left, replace(left, side="R", coordinates=2 * points))


def test_they_are_kept_and_found_again(mesh):
    left, right = surface_places(mesh).modes
    assert left.vectors.shape == (380, len(left.values))
    assert right.area == pytest.approx(4 * left.area)
    files = sorted(cache_folder().iterdir())
    assert len(files) == 2
    first = [path.read_bytes() for path in files]
    spaces._side_modes.cache_clear()
    places = surface_places(mesh)
    again = places.modes
    assert places.modes is again
    np.testing.assert_array_equal(again[0].vectors, left.vectors)
    assert [path.read_bytes() for path in files] == first


def test_another_mesh_has_its_own(mesh):
    assert len(surface_places(mesh).modes) == 2
    wall = replace(mesh.left, cortex=np.arange(MANY) >= 40)
    assert len(surface_places(Mesh("fsaverage5", wall, mesh.right)).modes[0].vectors) == 360
    assert len(list(cache_folder().iterdir())) == 4


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(spaces, "_ROWS", 50)  # of 252 voxels


def test_it_is_the_basis_itself():
    plain = SmoothBasis(GRID_KEPT_BASIS.coordinates, 30.0)
    for _ in range(2):  # made, and read
        kept = smooth_basis(Space(GRID_KEPT_BASIS).places, 30.0)
        assert isinstance(kept, KeptBasis)
        assert np.array_equal(kept.centres, plain.centres)
        assert np.array_equal(kept.factor, plain.factor)
        assert kept.for_series.dtype == np.float32
        assert np.array_equal(kept.for_series, plain.matrix.astype(np.float32))
        assert np.array_equal(kept.matrix, plain.matrix)


def test_another_grid_and_another_cutoff_have_their_own():
    moved = Grid(
        GRID_KEPT_BASIS.mask, GRID_KEPT_BASIS.affine + np.eye(4)[:, :1] @ np.array([[0, 0, 0, 3.0]])
    )
    sizes = {
        KeptBasis(grid.coordinates, cutoff, grid.digest).centres.tobytes()
        for grid in (GRID_KEPT_BASIS, moved)
        for cutoff in (30.0, 25.0)
    }
    assert len(sizes) == 4


def test_what_is_refused_is_not_kept(tmp_path):
    fine = Grid(np.ones((24, 24, 24), dtype=bool), np.eye(4))
    with pytest.raises(StudyError, match="at most 4,000"):
        KeptBasis(fine.coordinates, 2.5, fine.digest).factor  # noqa: B018
    assert not [path for path in tmp_path.rglob("*.arrays") if path.stat().st_size > 1e7]


AFFINE = np.diag([4.0, 4, 4, 1])
GRID = Grid(np.ones((4, 3, 2), bool), AFFINE)


def saved(path, values, affine=AFFINE):
    nib.save(nib.Nifti1Image(values, affine), path)
    return path


def labels():
    values = np.zeros((4, 3, 2), np.int16)
    values[:2], values[2] = 7, 2
    return values


def test_labels_average_and_paint(tmp_path):
    regions = read_regions(saved(tmp_path / "a.nii.gz", labels()), GRID)
    flat = labels()[GRID.mask]
    series = np.random.default_rng(0).standard_normal((5, GRID.features)).astype(np.float32)
    means = np.stack([series[:, flat == label].mean(axis=1) for label in (2, 7)], axis=1)
    assert regions.features == 2  # in the order of the labels
    assert regions.average(series) == pytest.approx(means, abs=1e-6)
    painted = regions.paint(np.array([[1.0], [5.0]])).ravel()
    assert np.array_equal(painted, np.select([flat == 2, flat == 7], [1.0, 5.0]))


def test_maps_average_by_their_weights(tmp_path):
    generator = np.random.default_rng(1)
    maps = generator.uniform(-0.5, 1, (4, 3, 2, 3)).astype(np.float32)
    regions = read_regions(saved(tmp_path / "a.nii", maps), GRID)
    weights = np.maximum(maps[GRID.mask].T, 0)
    weights /= weights.sum(axis=1, keepdims=True)
    series = generator.standard_normal((5, GRID.features)).astype(np.float32)
    assert regions.average(series) == pytest.approx(series @ weights.T, abs=1e-5)
    constant = regions.paint(np.ones((3, 2)))
    assert np.allclose(constant[weights.sum(axis=0) > 0], 1.0)


def test_an_atlas_on_a_finer_grid_is_resampled(tmp_path):
    fine = np.repeat(np.repeat(np.repeat(labels(), 2, 0), 2, 1), 2, 2)
    affine = np.diag([2.0, 2, 2, 1])
    affine[:3, 3] = -1  # so that two by two voxels share the coarse one's centre
    coarse = read_regions(saved(tmp_path / "a.nii", labels()), GRID)
    finer = read_regions(saved(tmp_path / "b.nii", fine, affine), GRID)
    assert finer.digest == coarse.digest


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (labels() + np.float32(0.5), "fractions"),
        (np.zeros((4, 3, 2), np.int16), "no voxel"),
        (np.full((4, 3, 2), np.nan, np.float32), "finite"),
        (np.zeros((4, 3), np.int16), "3-D or 4-D"),
    ],
)
def test_an_unusable_atlas_is_told(tmp_path, values, message):
    with pytest.raises(DataError, match=message):
        read_regions(saved(tmp_path / "a.nii", values), GRID)
    with pytest.raises(DataError, match="can't be read"):
        read_regions(tmp_path / "none.nii", GRID)


def test_a_region_outside_the_mask_is_told(tmp_path):
    mask = np.ones((4, 3, 2), bool)
    mask[2] = False
    with pytest.raises(DataError, match=r"Region 1 .* no voxel"):
        read_regions(saved(tmp_path / "a.nii", labels()), Grid(mask, AFFINE))


def test_a_space_tells_its_parts_apart(tmp_path):
    regions = read_regions(saved(tmp_path / "a.nii", labels()), GRID)
    fine = Grid(np.ones((8, 6, 4), bool), np.diag([2.0, 2, 2, 1]))
    plain, whole = Space(GRID), Space(GRID, regions, fine)
    assert plain.digest == GRID.digest
    assert (plain.features, plain.voxels) == (24, 24)
    assert (whole.features, whole.voxels) == (2, 192)
    spaces = [plain, whole, Space(GRID, regions), Space(GRID, None, fine)]
    assert len({space.digest for space in spaces}) == 4
    assert np.array_equal(plain.paint(np.arange(24.0)), np.arange(24.0))


def test_a_study_names_atlas_and_maps(tmp_path):
    saved(tmp_path / "mask.nii", np.ones((4, 3, 2), np.uint8))
    saved(tmp_path / "atlas.nii", labels())
    data = DataSection(mask="mask.nii", atlas="atlas.nii", maps_resolution=2)
    space = image_space(data, tmp_path)
    assert space.features == 2
    assert space.voxels == pytest.approx(8 * 24, rel=0.5)
    assert np.allclose(np.diag(space.maps.affine)[:3], 2)
    with pytest.raises(DataError, match="not next to"):
        image_space(DataSection(mask="mask.nii", atlas="../atlas.nii"), tmp_path)


def test_places_are_the_voxels_centres_or_the_regions(tmp_path):
    saved(tmp_path / "mask.nii", np.ones((3, 4, 5), np.uint8))
    saved(tmp_path / "atlas.nii", np.ones((3, 4, 5), np.int16))
    space = image_space(DataSection(mask="mask.nii", maps_resolution=2.0), tmp_path)
    places = space.extent.places
    assert places is space.extent.places  # one object, so that a basis is worked out once
    assert np.array_equal(places.coordinates, space.grid.coordinates)
    assert np.array_equal(places.fine, space.maps.coordinates)
    assert places.volume == pytest.approx(abs(np.linalg.det(AFFINE[:3, :3])))
    assert space.extent.shape((3,), (30,), "subject").places is places
    regions = image_space(DataSection(mask="mask.nii", atlas="atlas.nii"), tmp_path)
    assert regions.extent.places is None
    middle = space.grid.coordinates.mean(axis=0)
    assert regions.extent.region_places == pytest.approx(middle[None])
    assert regions.extent.shape((3,), (30,), "subject").region_places is not None


def spots(shape=(4, 3, 2), count=2):
    return np.random.default_rng(2).standard_normal((*shape, count)).astype(np.float32)


def template_study(tmp_path, **data):
    saved(tmp_path / "mask.nii", np.ones((4, 3, 2), np.float32))
    saved(tmp_path / "atlas.nii", labels())
    content = {
        "study": "small",
        "sites": ["north", "east"],
        "participants": dict.fromkeys(["north", "east"], 10),
        "data": {"mask": "mask.nii", **data},
        "privacy": {"epsilon": 8, "delta": 1e-5, "colluding_sites": 0},
        "algorithm": "template_networks",
        "analysis": {"templates": "maps.nii"},
    }
    return Study.model_validate(content)


def test_templates_are_read_at_features_and_at_the_voxels_of_maps(tmp_path):
    values, study = spots(), template_study(tmp_path, maps_resolution=2.0)
    saved(tmp_path / "maps.nii", values)
    space = study_space(study, tmp_path)
    templates = space.extent.templates
    assert templates.values == pytest.approx(values.reshape(-1, 2))
    assert templates.fine.shape == (space.voxels, 2)
    assert space.extent.shape((3,), (30,), "subject").templates is templates
    assert study.map_files == ("maps.nii",)


def test_templates_over_an_atlas_are_its_regions_means(tmp_path):
    values = spots()
    saved(tmp_path / "maps.nii", values)
    space = study_space(template_study(tmp_path, atlas="atlas.nii"), tmp_path)
    flat = labels()[GRID.mask]
    means = [values.reshape(-1, 2)[flat == label].mean(axis=0) for label in (2, 7)]
    assert space.templates.values == pytest.approx(np.array(means), abs=1e-6)


def test_other_templates_are_another_space_and_another_signature(tmp_path):
    study, digests, files = template_study(tmp_path), set(), set()
    for factor in (1.0, 1.1):
        saved(tmp_path / "maps.nii", factor * spots())
        digests.add(study_space(study, tmp_path).digest)
        files.add(named_files_digest(study, tmp_path))
    assert len(digests) == len(files) == 2


MOVED = np.array([[4.0, 0, 0, 40], [0, 4, 0, 0], [0, 0, 4, 0], [0, 0, 0, 1]])


@pytest.mark.parametrize(
    ("values", "affine", "words"),
    [
        (spots(), MOVED, "only 0% of its voxels"),
        (np.ones((4, 3, 2, 2), np.float32), AFFINE, "Map 1 .* is the same everywhere"),
        (0 * spots(), AFFINE, "Map 1 .* is the same everywhere"),
        (np.full((4, 3, 2, 2), np.nan, np.float32), AFFINE, "finite numbers"),
    ],
)
def test_templates_that_can_t_be_used_are_named(tmp_path, values, affine, words):
    saved(tmp_path / "maps.nii", values, affine)
    with pytest.raises(DataError, match=words):
        study_space(template_study(tmp_path), tmp_path)


def test_templates_elsewhere_than_beside_the_study_are_refused(tmp_path):
    study = template_study(tmp_path)
    asked = study.model_copy(
        update={"analysis": study.analysis.model_copy(update={"templates": "../maps.nii"})}
    )
    with pytest.raises(DataError, match="not next to the study file"):
        study_space(asked, tmp_path)
