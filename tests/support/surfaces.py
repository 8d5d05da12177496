"""Surfaces, walls and values on a mesh, written by nibabel."""

import pickle
from functools import lru_cache
from pathlib import Path

import nibabel as nib
import numpy as np
from nibabel.gifti import GiftiDataArray, GiftiImage
from scipy.spatial import ConvexHull

from consortium.algorithms.base import SurfacePlaces
from consortium.kernels.surface_modes import SurfaceModes
from consortium.views.meshes import MESHES

RADIUS = 60.0
"""Radius of a sphere in mm; its area is about that of a hemisphere."""


@lru_cache(maxsize=4)
def sphere(vertices: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points that are spread evenly over a sphere, and the triangles between them."""
    place = np.arange(vertices) + 0.5
    height, angle = 1 - 2 * place / vertices, np.pi * (1 + 5**0.5) * place
    flat = np.sqrt(1 - height**2)
    points = np.stack([flat * np.cos(angle), flat * np.sin(angle), height], axis=1)
    hull = ConvexHull(points)
    corners = points[hull.simplices]
    out = np.einsum("fi,fi->f", np.cross(*np.diff(corners, axis=1).swapaxes(0, 1)), corners[:, 0])
    triangles = np.where((out > 0)[:, None], hull.simplices, hull.simplices[:, ::-1])
    return RADIUS * points, triangles.astype(np.int32)


def _tiny_side(seed: int) -> SurfaceModes:
    vectors = np.random.default_rng(seed).standard_normal((3, 3))
    return SurfaceModes(np.array([0.0, 0.01, 0.02]), vectors, np.array([0, 2, 1]), 3e3)


TINY = SurfacePlaces(np.zeros((6, 3)), lambda: (_tiny_side(0), _tiny_side(1)))
"""Two sides of three vertices, each with three modes of which two are longer than 60 mm."""
TINY_CUTOFF, TINY_MAPS = 60.0, 4


def write_sphere(path: Path, mesh: str, scale: float = 1.0) -> Path:
    """Write a surface of a mesh; ``scale`` makes it larger than a hemisphere."""
    points, triangles = sphere(MESHES[mesh].vertices)
    arrays = [
        GiftiDataArray((scale * points).astype(np.float32), intent="NIFTI_INTENT_POINTSET"),
        GiftiDataArray(triangles, intent="NIFTI_INTENT_TRIANGLE"),
    ]
    return _write(path, arrays)


def say_side(path: Path, side: str) -> Path:
    """Write into a GIFTI file of which hemisphere it is, as FreeSurfer's and HCP's tools do."""
    image = nib.load(path)
    image.darrays[0].meta["AnatomicalStructurePrimary"] = f"Cortex{side}"
    nib.save(image, path)
    return path


def wall_of(mesh: str) -> np.ndarray:
    """Return which vertices are cortex: all except some four in a hundred."""
    cortex = np.ones(MESHES[mesh].vertices, dtype=bool)
    cortex[: len(cortex) // 24] = False
    return cortex


def write_wall(path: Path, mesh: str) -> Path:
    """Write 1 on the cortex and 0 on the medial wall."""
    return write_values(path, wall_of(mesh).astype(np.float32))


def write_values(path: Path, *maps: np.ndarray, packed: bool = True) -> Path:
    """Write maps of a hemisphere as GIFTI, or one as FreeSurfer's overlay."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".gii":
        way = f"GIFTI_ENCODING_B64{'GZ' if packed else 'BIN'}"
        values = (each.astype(np.float32) for each in maps)
        return _write(path, [GiftiDataArray(each, encoding=way) for each in values])
    nib.save(nib.MGHImage(maps[0].astype(np.float32)[:, None, None], np.eye(4)), path)
    return path


def write_pair(folder: Path, stem: str, space: str, what: str, seed: int = 0) -> None:
    """Write a participant's values of both hemispheres of fsaverage5 or fsaverage6."""
    generator = np.random.default_rng(seed)
    for side in "LR":
        values = 2.5 + generator.standard_normal(MESHES[space].vertices)
        write_values(folder / f"{stem}_hemi-{side}_space-{space}_{what}.shape.gii", values)


def write_cifti(
    path: Path, left: np.ndarray, right: np.ndarray, mesh: str, *more: object, maps: int = 1
) -> Path:
    """Write values at the vertices that are cortex, 1 everywhere in ``more`` of brain models."""
    walls = [np.isfinite(values) for values in (left, right)]
    assert all(len(wall) == MESHES[mesh].vertices for wall in walls)
    names = nib.cifti2.ScalarAxis([f"map {k + 1}" for k in range(maps)])
    found = [np.tile(own[wall], (maps, 1)) for own, wall in zip((left, right), walls, strict=True)]
    return _write_dense(path, found, walls, more, names)


def write_dtseries(
    path: Path, sides: list[np.ndarray], walls: list[np.ndarray], *more: object, step: float = 2.0
) -> Path:
    """Write series (T x N a side) at the vertices that are cortex as nibabel does.

    ``more`` are further brain models, whose values are 1.
    """
    found = [values[:, own] for values, own in zip(sides, walls, strict=True)]
    times = nib.cifti2.SeriesAxis(0.0, step, len(found[0]))
    return _write_dense(path, found, walls, more, times, "ConnDenseSeries")


def _write_dense(
    path: Path,
    found: list[np.ndarray],
    walls: list[np.ndarray],
    more: tuple[object, ...],
    steps: object,
    intent: str = "",
) -> Path:
    """Write rows of both cortices, and 1 in the following models."""
    assert path.suffix == ".nii"
    path.parent.mkdir(parents=True, exist_ok=True)
    rest = np.ones((len(found[0]), sum(map(len, more))))
    rows = np.concatenate([*found, rest], axis=1).astype("<f4")
    head = _head_of_dense(pickle.dumps((walls, more, steps, intent)))
    path.write_bytes(head + rows.tobytes(order="F"))
    return path


@lru_cache(maxsize=8)  # nibabel takes a second for the names of all vertices
def _head_of_dense(described: bytes) -> bytes:
    """Return nibabel's bytes before the values of walls, more models, steps and an intent."""
    walls, more, steps, intent = pickle.loads(described)
    models = [
        nib.cifti2.BrainModelAxis.from_surface(np.flatnonzero(own), len(own), name)
        for own, name in zip(walls, ("CortexLeft", "CortexRight"), strict=True)
    ]
    axis = sum((*models[1:], *more), start=models[0])
    rows = np.zeros((len(steps), len(axis)), dtype=np.float32)
    image = nib.Cifti2Image(rows, (steps, axis))
    if intent:
        image.nifti_header.set_intent(intent)
    return image.to_bytes()[: -rows.nbytes]


def below_cortex(voxels: int = 20) -> nib.cifti2.BrainModelAxis:
    """Return voxels of the left thalamus."""
    mask = np.zeros((5, 5, 5), dtype=bool)
    mask.flat[:voxels] = True
    return nib.cifti2.BrainModelAxis.from_mask(mask, "ThalamusLeft", np.eye(4))


def write_func_pair(folder: Path, stem: str, space: str, sides: list[np.ndarray]) -> None:
    """Write series (T x N a side) as GIFTI, an array for each volume, any values in the wall.

    Those of the left hemisphere are packed, and those of the right are not, which is faster.
    """
    for side, values in zip("LR", sides, strict=True):
        path = folder / f"{stem}_hemi-{side}_space-{space}_bold.func.gii"
        write_values(path, *values, packed=side == "L")


def halves_of(mesh: str) -> list[np.ndarray]:
    """Return a number at every vertex of both hemispheres."""
    return [np.full(MESHES[mesh].vertices, value, dtype=np.float32) for value in (2, 3)]


def write_parcels(
    path: Path, values: object, names: tuple[str, ...] = ("L_V1", "R_V1"), maps: int = 1
) -> Path:
    """Write a value per parcel, each of some vertices; ``.ptseries.nii`` has T x parcels."""
    path.parent.mkdir(parents=True, exist_ok=True)
    cortex = nib.cifti2.BrainModelAxis.from_surface(np.arange(9), 32_492, "CortexLeft")
    made = nib.cifti2.ParcelsAxis.from_brain_models([(name, cortex) for name in names])
    rows = np.tile(np.asarray(values, dtype=np.float32), (maps, 1))
    steps = nib.cifti2.ScalarAxis([f"map {k + 1}" for k in range(maps)])
    if path.name.endswith(".ptseries.nii"):
        steps = nib.cifti2.SeriesAxis(0.0, 0.72, len(rows))
    nib.save(nib.Cifti2Image(rows, (steps, made)), path)
    return path


def write_dlabel(
    path: Path,
    keys: list[np.ndarray],
    names: dict[int, str],
    walls: list[np.ndarray] | None = None,
) -> Path:
    """Write labels of both hemispheres (N keys each), at the vertices of the walls or all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    inside = walls or [np.ones(len(own), dtype=bool) for own in keys]
    left, right = (
        nib.cifti2.BrainModelAxis.from_surface(np.flatnonzero(wall), len(wall), f"Cortex{side}")
        for wall, side in zip(inside, ("Left", "Right"), strict=True)
    )
    table = {0: ("???", (0.0, 0.0, 0.0, 0.0))} | {k: (n, (1.0, 0, 0, 1)) for k, n in names.items()}
    rows = np.concatenate([own[wall] for own, wall in zip(keys, inside, strict=True)])
    axes = nib.cifti2.LabelAxis(["parcels"], [table]), left + right
    nib.save(nib.Cifti2Image(rows[None].astype(np.float32), axes), path)
    return path


def _write(path: Path, arrays: list[GiftiDataArray]) -> Path:
    nib.save(GiftiImage(darrays=arrays), path)
    return path
