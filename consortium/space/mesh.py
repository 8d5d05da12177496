"""The study's mesh from GIFTI files: vertices of both cortices, in the order of a vector.

The centre and the sites read it only from the study and the files next to it, so it is public. A
vector has the vertices of the left hemisphere outside the medial wall, in their order, and then
those of the right: the order of CIFTI.

The models of a CIFTI file's header are read directly, because making nibabel's axes takes longer
than reading a series.
"""

import base64
import hashlib
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal
from xml.parsers.expat import ExpatError, ParserCreate

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

from consortium.base.array import Array
from consortium.base.atomic import path_in_folder
from consortium.base.regular_file import regular, sizes_unpacked
from consortium.errors import DataError
from consortium.space.nifti import UNREADABLE
from consortium.views.meshes import BUILT_IN, MESHES, MeshFiles, MeshKind, MeshName

Side = Literal["L", "R"]
SIDES: tuple[Side, Side] = ("L", "R")
SIDE_NAMES = {"L": "left", "R": "right"}
DAMAGED = (
    *UNREADABLE,
    nib.cifti2.Cifti2HeaderError,
    ExpatError,
    LookupError,
    AttributeError,
    TypeError,
    AssertionError,
    MemoryError,
)
"""What nibabel raises on files of surfaces that are missing, foreign, cut short or damaged."""
_MOST_BYTES = 100_000_000
_MOST_UNPACKED = 1 << 30
STRUCTURES = {"L": "CIFTI_STRUCTURE_CORTEX_LEFT", "R": "CIFTI_STRUCTURE_CORTEX_RIGHT"}


@dataclass(frozen=True, eq=False)
class Hemisphere:
    """One hemisphere of a study's mesh."""

    side: Side
    coordinates: NDArray[np.float64]
    """Shape (N, 3). Vertices in mm."""
    triangles: NDArray[np.intp]
    """Whole numbers, shape (F, 3). Vertices of each."""
    cortex: NDArray[np.bool_]
    """True or false, shape (N,). False on the medial wall."""

    @cached_property
    def features(self) -> int:
        """Vertices of the cortex."""
        return int(np.count_nonzero(self.cortex))

    def spread(self, values: Array, wall: float = 0.0) -> NDArray[np.float32]:
        """Put values of the cortex's vertices in their places; ``wall`` elsewhere: shape (N,)."""
        whole = np.full(len(self.cortex), wall, dtype=np.float32)
        whole[self.cortex] = values
        return whole


@dataclass(frozen=True, eq=False)
class Mesh:
    """Both hemispheres of a study's mesh."""

    name: str
    """As a study names it, such as ``fsaverage5``."""
    left: Hemisphere
    right: Hemisphere

    @property
    def kind(self) -> MeshKind:
        """What files on it are called."""
        return MESHES[self.name]

    @property
    def sides(self) -> tuple[Hemisphere, Hemisphere]:
        """Left, and right."""
        return self.left, self.right

    @property
    def features(self) -> int:
        """D, vertices of both cortices."""
        return self.left.features + self.right.features

    @cached_property
    def coordinates(self) -> NDArray[np.float64]:
        """Vertices of both cortices in mm, shape (D, 3)."""
        return np.concatenate([side.coordinates[side.cortex] for side in self.sides])

    def split(self, values: Array) -> Iterator[tuple[Hemisphere, Array]]:
        """Yield each side with its rows of values of all D vertices."""
        yield self.left, values[: self.left.features]
        yield self.right, values[self.left.features :]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of name, vertices, triangles and wall: who agree on it mean the same mesh."""
        content = hashlib.sha256(self.name.encode())
        for side in self.sides:
            content.update((np.round(side.coordinates, 4) + 0.0).astype("<f8").tobytes())
            content.update(side.triangles.astype("<i8").tobytes())
            content.update(np.packbits(side.cortex).tobytes())
        return content.hexdigest()


def read_mesh(files: MeshFiles, folder: Path) -> Mesh:
    """Read the mesh that a view names.

    Raises DataError if a file is outside ``folder``, is missing, or is not a surface or wall of
    this mesh.

    Parameters
    ----------
    folder : Path
        Folder of the study file and of all files that it names.
    """
    if files.surfaces is None:
        surfaces = _built_in()
    else:
        surfaces = read_sides(files.mesh, [_beside(folder, name) for name in files.surfaces])
    sides = []
    for number, (side, (coordinates, triangles)) in enumerate(zip(SIDES, surfaces, strict=True)):
        cortex = np.ones(MESHES[files.mesh].vertices, dtype=np.bool_)
        if files.cortex is not None:
            cortex = _cortex(files.cortex[number], folder, files.mesh, side)
        sides.append(Hemisphere(side, coordinates, triangles, cortex))
    return Mesh(files.mesh, sides[0], sides[1])


def load_gifti(path: Path, side: Side, most: int = _MOST_BYTES, unpacked: int | None = None) -> Any:
    """Open a GIFTI file of one hemisphere that contains all of its numbers.

    The file may come from the coordinator. So a further file that it names is not opened. Raises
    DataError if it can't be read, is another file, or states that it is of the other hemisphere.

    Parameters
    ----------
    most, unpacked : int
        Maximum bytes of the file and of its unpacked numbers (default: those of study files).
    """
    try:
        image = open_gifti(path, most, unpacked)
    except DAMAGED as error:
        raise DataError(
            f"{path} can't be read. Give a whole GIFTI file, with its numbers in it."
        ) from error
    structures = {each.meta.get("AnatomicalStructurePrimary") for each in (image, *image.darrays)}
    for other in SIDES:
        if other != side and f"Cortex{SIDE_NAMES[other].title()}" in structures:
            raise DataError(
                f"{path} says that it is of the {SIDE_NAMES[other]} hemisphere, and is given as "
                f"that of the {SIDE_NAMES[side]}. Correct its name or its place."
            )
    return image


def open_gifti(path: Path, most: int = _MOST_BYTES, unpacked: int | None = None) -> Any:
    """Read a whole GIFTI file after a check of its unpacked size; otherwise as `load_gifti`.

    Raises DAMAGED if it is too large or another file. Raises DataError if it is not a regular file.
    """
    if regular(path).stat().st_size > most:
        raise ValueError("too large for one hemisphere")
    content = path.read_bytes()
    _check_unpacked(content, _MOST_UNPACKED if unpacked is None else unpacked)
    return nib.GiftiImage.from_bytes(content)  # without a folder in which it would search


def _check_unpacked(content: bytes, most: int) -> None:
    """Raise ValueError if numbers unpack to more than the allowed bytes, which nibabel ignores."""
    left = most
    texts = list[str]()

    def flush(*_: object) -> None:
        nonlocal left
        for size in _unpacked_size("".join(texts)):
            left -= size
            if left < 0:
                raise ValueError("it contains too many values")
        texts.clear()

    parser = ParserCreate()
    parser.StartElementHandler = parser.EndElementHandler = flush  # as nibabel takes texts apart
    parser.CharacterDataHandler = texts.append
    parser.Parse(content, True)


def _unpacked_size(text: str) -> Iterator[int]:
    """Yield the bytes that each packed part of a text unpacks to."""
    with suppress(ValueError, zlib.error):
        yield from sizes_unpacked(base64.b64decode(text.encode("ascii")))


def mesh_values(path: Path, image: Any) -> NDArray[np.float64]:
    """Return the one number that a GIFTI file has for every vertex, shape (N,).

    Raises DataError if it has none, or several.
    """
    arrays = [np.asarray(each.data) for each in image.darrays]
    if len(arrays) != 1 or arrays[0].ndim != 1 or arrays[0].dtype.kind not in "biuf":
        raise DataError(f"{path} does not have one number for each vertex. Give a file of one map.")
    return arrays[0].astype(np.float64)


@lru_cache(maxsize=1)
def _built_in() -> tuple[tuple[Array, Array], ...]:
    """Return the white surfaces of fsaverage5 in nilearn."""
    from nilearn.datasets import load_fsaverage  # costs seconds, which few should pay

    parts = load_fsaverage(BUILT_IN)["white_matter"].parts
    return tuple(
        (np.asarray(each.coordinates, dtype=np.float64), np.asarray(each.faces, dtype=np.intp))
        for each in (parts["left"], parts["right"])
    )


def read_sides(mesh: MeshName, paths: Sequence[Path]) -> tuple[tuple[Array, Array], ...]:
    """Return vertices in mm and triangles of the left and of the right surface.

    Raises DataError if a file is missing, or is not a surface of this mesh.
    """
    found = []
    for side, path in zip(SIDES, paths, strict=True):
        image = load_gifti(path, side)
        points = image.get_arrays_from_intent("NIFTI_INTENT_POINTSET")
        faces = image.get_arrays_from_intent("NIFTI_INTENT_TRIANGLE")
        if len(points) != 1 or len(faces) != 1:
            raise DataError(f"{path} has no surface. Give a .surf.gii file of one.")
        coordinates = np.asarray(points[0].data, dtype=np.float64)
        triangles = np.asarray(faces[0].data).astype(np.intp)
        _check_surface(path.name, mesh, coordinates, triangles)
        found.append((coordinates, triangles))
    return tuple(found)


def _check_surface(name: str, mesh: str, coordinates: Array, triangles: Array) -> None:
    wanted = MESHES[mesh].vertices
    if coordinates.shape != (wanted, 3):
        raise DataError(
            f"The surface {name} has {len(coordinates):,} vertices, where {mesh} has {wanted:,}. "
            "Name one of that mesh."
        )
    each = np.arange(wanted)
    whole = triangles.shape[1:] == (3,) and np.array_equal(np.unique(triangles), each)
    if not whole or not np.isfinite(coordinates).all():
        raise DataError(
            f"Every vertex of the surface {name} must be in a triangle. Give a whole one."
        )
    corners = coordinates[triangles]
    sides = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    if not np.linalg.norm(sides, axis=1).min() > 0:
        raise DataError(f"Every triangle of the surface {name} must have an area. Give one in mm.")


def _cortex(name: str, folder: Path, mesh: str, side: Side) -> NDArray[np.bool_]:
    path = _beside(folder, name)
    wanted = MESHES[mesh].vertices
    values = mesh_values(path, load_gifti(path, side))
    if len(values) != wanted:
        raise DataError(
            f"The medial wall {name} has {len(values):,} vertices, where {mesh} has {wanted:,}. "
            "Name one of that mesh."
        )
    cortex: NDArray[np.bool_] = (values != 0) & np.isfinite(values)
    if not cortex.any():
        raise DataError(f"{name} must be 1 on the cortex, and it is 0 everywhere. Correct it.")
    return cortex


def _beside(folder: Path, name: str) -> Path:
    try:
        return path_in_folder(folder, name)
    except ValueError as error:
        raise DataError(
            f"The study's file {name} is not next to the study file. Give a relative path."
        ) from error


def grayordinates(image: nib.Cifti2Image) -> int:
    """Return the number of grayordinates that a dense CIFTI file states; 0 for another file."""
    places = image.header.matrix.get_index_map(1)
    if places.indices_map_to_data_type != "CIFTI_INDEX_TYPE_BRAIN_MODELS":
        return 0
    return sum(int(model.index_count) for model in places.brain_models)


def cortex_rows(path: Path, image: nib.Cifti2Image, mesh: Mesh) -> NDArray[np.intp]:
    """Return the grayordinates of the mesh's D vertices in a dense file, in order: shape (D,).

    Raises DataError if a hemisphere is missing, is of another mesh or has another medial wall.

    Parameters
    ----------
    path : Path
        The file, for messages.
    """
    models = image.header.matrix.get_index_map(1).brain_models
    named = {model.brain_structure: model for model in models}
    found = [_of_side(path, named.get(STRUCTURES[s.side]), s, mesh) for s in mesh.sides]
    return np.concatenate(found)


def _of_side(path: Path, model: Any, side: Hemisphere, mesh: Mesh) -> NDArray[np.intp]:
    if model is None or model.model_type != "CIFTI_MODEL_TYPE_SURFACE":
        raise DataError(f"{path} has no {SIDE_NAMES[side.side]} cortex. Give both hemispheres.")
    try:
        many = int(model.surface_number_of_vertices)
        start = int(model.index_offset)
        vertices = np.fromiter(model.vertex_indices, np.intp)
    except DAMAGED as error:
        raise DataError(
            f"{path} does not say which vertices of the {SIDE_NAMES[side.side]} cortex it has. "
            "Write it again."
        ) from error
    check_vertices(path, side, many, mesh)
    order = np.argsort(vertices, kind="stable")
    if not np.array_equal(vertices[order], np.flatnonzero(side.cortex)):
        raise DataError(
            f"{path} has {len(order):,} vertices of the {SIDE_NAMES[side.side]} cortex, and the "
            f"study's {side.features:,} are others. Use the study's medial wall."
        )
    return np.asarray(start + order)


def check_vertices(path: Path, side: Hemisphere, vertices: int, mesh: Mesh) -> None:
    """Raise DataError unless a hemisphere has as many vertices as the mesh."""
    if vertices != mesh.kind.vertices:
        raise DataError(
            f"{path} has {vertices:,} vertices in the {SIDE_NAMES[side.side]} hemisphere, where "
            f"{mesh.name} has {mesh.kind.vertices:,}. Resample it to {mesh.name}."
        )
