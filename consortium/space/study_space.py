"""The study's two spaces: the features that are analysed, and the voxels that maps are drawn on.

Smooth bases and modes of a mesh are cached for the user of this computer.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import combinations
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import AnyPlaces, Extent, Places, SurfacePlaces, Templates
from consortium.algorithms.open_cohort import OpenCohort
from consortium.base.array import Array
from consortium.base.atomic import path_in_folder
from consortium.base.kept_arrays import kept_arrays
from consortium.errors import DataError
from consortium.kernels import smooth_basis
from consortium.kernels import surface_modes as kernel
from consortium.kernels.smooth_basis import SmoothBasis
from consortium.kernels.surface_modes import SurfaceModes, surface_modes
from consortium.space.atlas import (
    Regions,
    Target,
    read_map_names,
    read_maps,
    read_parcellation,
    read_regions,
    table_of,
)
from consortium.space.grid import TEMPLATE, Grid, study_grid, template_grid
from consortium.space.mesh import Hemisphere, Mesh, read_mesh
from consortium.space.open_cohort import read_open_cohort
from consortium.space.templates import read_surface_templates, read_templates
from consortium.study.data_section import DataSection
from consortium.study.spec import Study
from consortium.views.base import BaseView

_ROWS = 20_000  # voxels at a time, to keep no whole map in memory in float64
Kind = TypeVar("Kind", bound=BaseView, covariant=True)


def surface_places(mesh: Mesh) -> SurfacePlaces:
    """Return the places of a mesh's vertices; its modes are computed at their first use."""
    return SurfacePlaces(mesh.coordinates, partial(_modes_of, mesh))


def _modes_of(mesh: Mesh) -> tuple[SurfaceModes, ...]:
    return tuple(_side_modes(mesh.digest, side) for side in mesh.sides)


@lru_cache(maxsize=4)  # both hemispheres of two meshes
def _side_modes(digest: str, side: Hemisphere) -> SurfaceModes:
    key = f"{digest} {side.side}"
    make = partial(_modes, side)
    kept = kept_arrays("modes", key, kernel.__file__, make)
    return SurfaceModes(kept["values"], kept["vectors"], kept["anchors"], float(kept["area"]))


def _modes(side: Hemisphere) -> dict[str, Array]:
    found = surface_modes(side.coordinates, side.triangles, side.cortex)
    area = np.array(found.area)
    return {
        "values": found.values,
        "vectors": found.vectors,
        "anchors": found.anchors,
        "area": area,
    }


@dataclass(frozen=True, eq=False)
class KeptBasis(SmoothBasis):
    """A smooth basis over the voxels of a grid; what takes long comes from the user's caches."""

    digest: str
    """The grid's."""

    @cached_property
    def centres(self) -> Array:
        """As of `SmoothBasis`."""
        return self._kept("centres", lambda: super(KeptBasis, self).centres)

    @cached_property
    def factor(self) -> Array:
        """As of `SmoothBasis`."""
        return self._kept("factor", lambda: super(KeptBasis, self).factor)

    @cached_property
    def for_series(self) -> Array:
        """Φ in float32, as series of images are."""
        return self._kept("maps", self._narrow)

    def _narrow(self) -> Array:
        maps = np.empty((len(self.coordinates), self.size), dtype=np.float32)
        for start in range(0, len(maps), _ROWS):
            rows = slice(start, start + _ROWS)
            maps[rows] = self.at(self.coordinates[rows])
        return maps

    def _kept(self, what: str, make: Callable[[], Array]) -> Array:
        key = f"{what} {float(self.cutoff).hex()} {self.digest}"
        return kept_arrays("basis", key, smooth_basis.__file__, lambda: {what: make()})[what]


@dataclass(frozen=True, eq=False)
class ViewSpace(Generic[Kind]):
    """Meaning of the entries of a view."""

    view: Kind
    """View whose space this is."""
    size: int
    """Entries of the view."""
    components: NDArray[np.float32] | None = None
    """32, shape (D, K). Public component maps over the rows of the images, for a view that measures
    these."""
    mesh: Mesh | None = None
    """Whose vertices the entries are, for a view of surfaces."""
    map_names: tuple[str, ...] = ()
    """Names of the component maps, from the table next to their file; empty without a table. They
    are for people, and change neither the digest nor a released number."""

    @property
    def name(self) -> str:
        """The view's name."""
        return self.view.name

    @property
    def labels(self) -> Sequence[str]:
        """Names of the entries; numbers where they are places in an image without names."""
        if self.map_names and self.view.is_of_edges:
            return [f"{one} - {other}" for one, other in combinations(self.map_names, 2)]
        return self.map_names or self.unnamed

    @property
    def unnamed(self) -> Sequence[str]:
        """Names of the entries in the analysis, which does not read the table of names."""
        return self.view.names_of(self.size) or [str(row + 1) for row in range(self.size)]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the view and of the files that it needs in addition to the study file."""
        content = hashlib.sha256(self.view.model_dump_json().encode())
        if self.components is not None:
            content.update(np.ascontiguousarray(self.components).tobytes())
        if self.mesh is not None:
            content.update(self.mesh.digest.encode())
        return content.hexdigest()


AnyViewSpace = ViewSpace[Any]
"""Of any kind."""


@dataclass(frozen=True, eq=False)
class Space:
    """Features of a study, and the voxels on which maps are drawn."""

    grid: Grid
    """Voxels that images are sampled on, unless there is a mesh."""
    regions: Regions | None = None
    """An atlas over these voxels, or over the mesh's vertices; its regions are then the
    features."""
    fine: Grid | None = None
    """Voxels of full-resolution maps. By default those of ``grid``."""
    views: tuple[AnyViewSpace, ...] = ()
    """Views of a study of feature vectors, whose features are their entries."""
    templates: Templates | None = None
    """Public maps that the study's analysis names."""
    mesh: Mesh | None = None
    """Mesh at whose vertices image series have their numbers, instead of the grid's voxels."""
    open_cohort: OpenCohort | None = None
    """Participants of an open cohort that the study's analysis names."""

    @property
    def domain(self) -> Grid | Mesh:
        """Where image series have their numbers."""
        return self.mesh or self.grid

    @property
    def target(self) -> Target:
        """Target of a volume for the analysis."""
        return Target(self.domain, self.regions)

    @property
    def maps_target(self) -> Target:
        """Target of a volume for full-resolution maps."""
        return Target(self.maps)

    @property
    def image_features(self) -> int:
        """Rows of a participant's image series: regions, or voxels or vertices without an atlas."""
        return self.target.features

    @property
    def features(self) -> int:
        """D, number of analysed values."""
        return sum(view.size for view in self.views) if self.views else self.image_features

    @property
    def extent(self) -> Extent:
        """Its numbers of features and voxels."""
        views = tuple((view.name, view.size) for view in self.views)
        return Extent(
            features=self.features,
            voxels=0 if views else self.voxels,
            views=views,
            places=self.places,
            templates=self.templates,
            image_places=self.image_places if views else None,
            known_sums=tuple(self._known_sums()),
            region_places=self.region_places,
            surface_places=self._surface_places,
            open_cohort=self.open_cohort,
        )

    @cached_property
    def _surface_places(self) -> dict[str, SurfacePlaces]:
        """Places by view: one object each, so modes are computed once."""
        meshes = ((view.name, view.mesh) for view in self.views)
        return {name: surface_places(mesh) for name, mesh in meshes if mesh is not None}

    def _known_sums(self) -> Iterator[tuple[range, float]]:
        """Return known sums of the views' entries, by the entries' places in a vector."""
        start = 0
        for view in self.views:
            for own, value in view.view.known_sums(view.size):
                yield range(start + own.start, start + own.stop, own.step), value
            start += view.size

    @cached_property
    def places(self) -> AnyPlaces | None:
        """Where the features are, if they are voxels of the grid or vertices of the mesh."""
        return None if self.views else self.image_places

    @cached_property
    def image_places(self) -> AnyPlaces | None:
        """Places of the voxels or vertices of a participant's images; None for regions."""
        if self.regions:
            return None
        if self.mesh is not None:
            return surface_places(self.mesh)
        volume = abs(float(np.linalg.det(self.grid.affine[:3, :3])))
        fine = self.fine.coordinates if self.fine else None
        basis = partial(KeptBasis, digest=self.grid.digest)
        return Places(self.grid.coordinates, volume, fine, basis)

    @property
    def region_places(self) -> NDArray[np.float64] | None:
        """Centres of the atlas's regions in mm, if these are the features: D x 3."""
        if self.views or not self.regions:
            return None
        return np.asarray(self.regions.weights @ self.domain.coordinates, dtype=np.float64)

    @property
    def maps(self) -> Grid | Mesh:
        """Voxels of full-resolution maps, or the mesh."""
        return self.fine or self.domain

    @property
    def voxels(self) -> int:
        """V, rows of a full-resolution map."""
        return self.maps.features

    @property
    def rows_digest(self) -> str:
        """SHA-256 of the meaning of image series' rows: voxels, vertices or regions."""
        parts = [self.domain.digest, *([self.regions.digest] if self.regions else [])]
        return hashlib.sha256("|".join(parts).encode()).hexdigest()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all parts; without atlas and finer maps that of the grid."""
        parts = [self.domain.digest]
        if self.regions:
            parts.append(f"regions {self.regions.digest}")
        if self.fine:
            parts.append(f"fine {self.fine.digest}")
        parts += [f"view {view.digest}" for view in self.views]
        if self.templates:
            content = np.ascontiguousarray(self.templates.values).tobytes()
            parts.append(f"templates {hashlib.sha256(content).hexdigest()}")
        if self.open_cohort:
            parts.append(f"open cohort {self.open_cohort.digest}")
        return parts[0] if len(parts) == 1 else hashlib.sha256("|".join(parts).encode()).hexdigest()

    def mesh_of(self, view: str) -> Mesh | None:
        """Return the mesh whose vertices are a view's entries, or those of series without views."""
        if not self.views:
            return self.mesh
        return next((each.mesh for each in self.views if each.name == view), None)

    def paint(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of the features (D x K) as values of the grid's voxels."""
        return self.regions.paint(values) if self.regions else values

    def paint_view(self, view: AnyViewSpace, values: NDArray[Any]) -> NDArray[Any]:
        """Return loadings of a view of images as values of the grid's voxels: D_v x K to V x K.

        A measure of components is painted as its components' maps, each times its loading.
        """
        return self.paint(values if view.components is None else view.components @ values)


def study_space(study: Study, folder: Path) -> Space:
    """Return the features of a study, and the voxels on which its maps are drawn.

    Raises DataError if a file is outside ``folder``, is missing or can't be used.

    Parameters
    ----------
    study : Study
        Its views, its analysis's templates, and of its data section ``mesh``, ``mask``,
        ``resolution``, ``atlas`` and ``maps_resolution``.
    folder : Path
        Folder of the study file and of all files that it names.
    """
    images = image_space(study.data, folder)
    views = tuple(_view_space(view, images, folder) for view in study.features)
    return replace(
        images,
        views=views,
        templates=_templates(study, images, folder),
        open_cohort=_open_cohort(study, images, folder),
    )


def _open_cohort(study: Study, images: Space, folder: Path) -> OpenCohort | None:
    name = study.analysis.open_file
    if name is None:
        return None
    return read_open_cohort(_beside(folder, name, "open cohort"), images.rows_digest)


def _templates(study: Study, images: Space, folder: Path) -> Templates | None:
    if study.templates is None:
        return None
    path = _beside(folder, study.templates, "templates")
    if images.mesh is not None:
        return read_surface_templates(path, images.mesh, images.regions)
    return read_templates(path, images.grid, images.regions, images.fine)


def _view_space(view: BaseView, images: Space, folder: Path) -> AnyViewSpace:
    if view.mesh_files is not None:
        mesh = read_mesh(view.mesh_files, folder)
        return ViewSpace(view, view.size(0, mesh.features), mesh=mesh)
    if view.maps_file is None:
        return ViewSpace(view, view.size(images.image_features, 0))
    path = _beside(folder, view.maps_file, "component maps")
    maps = read_maps(path, images.grid)
    if images.regions:
        maps = np.asarray(images.regions.weights @ maps, dtype=np.float32)
    names = _map_names(path, maps.shape[1]) if table_of(path).is_file() else ()
    return ViewSpace(view, view.size(images.image_features, maps.shape[1]), maps, map_names=names)


def _map_names(path: Path, many: int) -> tuple[str, ...]:
    names = read_map_names(path, many)
    twice = [name for name, times in Counter(names).items() if times > 1 or not name]
    if twice:
        raise DataError(
            f"{table_of(path)}: every map must have a name of its own, and '{twice[0]}' is the "
            "name of two or is empty. Correct the table."
        )
    return names


def image_space(data: DataSection, folder: Path) -> Space:
    """Return the space of a study's images: its mesh, or its grid, atlas and voxels of maps.

    Raises DataError as `study_space`.
    """
    grid = study_grid(data, folder)
    mesh = read_mesh(data.mesh_files, folder) if data.mesh_files else None
    regions = None
    finer = data.maps_resolution
    if data.atlas:
        atlas = _beside(folder, data.atlas, "atlas")
        regions = read_parcellation(atlas, mesh) if mesh else read_regions(atlas, grid)
    return Space(grid, regions, _finer(data, grid, finer) if finer else None, mesh=mesh)


def _beside(folder: Path, name: str, what: str) -> Path:
    try:
        return path_in_folder(folder, name)
    except ValueError as error:
        raise DataError(
            f"The study's {what} {name} is not next to the study file. Give a relative path."
        ) from error


def _finer(data: DataSection, grid: Grid, resolution: float) -> Grid:
    """Return the same brain on voxels of another size."""
    if data.mask == TEMPLATE:
        return template_grid(resolution)
    from nilearn.image import resample_img  # costs seconds, which few should pay

    image = resample_img(
        grid.image(np.ones(grid.features)),
        np.eye(3) * resolution,
        interpolation="nearest",
        force_resample=True,
        copy_header=True,
    )
    return Grid(np.asarray(image.dataobj) > 0, np.asarray(image.affine, dtype=np.float64))
