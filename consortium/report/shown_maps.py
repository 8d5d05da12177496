"""The maps that the page draws: coloured values, peaks, and similar networks of each.

Values that noise could cause are zero here. So neither a picture nor the viewer can show them.

A name for a peak where a study names no atlas: the nearest of 160 published regions.

Centres of regions in MNI space and the network of each: N. U. F. Dosenbach et al., Prediction of
individual brain maturity using fMRI, Science 329 (2010), 1358-1361. They are part of nilearn.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import Array
from consortium.algorithms.findings import ImageSet
from consortium.report.brain_figures import ARBITRARY, THRESHOLD
from consortium.report.finished import ComponentMaps, Finished
from consortium.report.image_sets import image_set_grid, on_grid
from consortium.space.grid import Grid
from consortium.space.mesh import Mesh
from consortium.space.study_space import AnyViewSpace

_NO_REGION = "no region of the atlas"
NAMED = 0.4
"""Smallest correlation at which a map gets the name of a public network."""


@dataclass(frozen=True, eq=False)
class ShownMap:
    """One map as page and viewer show it."""

    ident: str
    """Where links on the page point to."""
    name: str
    grid: Grid
    """Its V voxels."""
    values: Array
    """Shape (V,). Zero where noise could be as large."""
    threshold: float
    """Least size that is coloured."""
    peak: Array
    """Shape (3,). In mm."""
    units: str
    """Unit of the values, as text."""
    numbered: bool = False
    """Whether the name is only a number, to which the page adds the map's name."""

    @property
    def coloured(self) -> int:
        """How many voxels pass the threshold."""
        return int(np.count_nonzero(np.abs(self.values) >= self.threshold))

    @cached_property
    def top(self) -> float:
        """Largest size of a value; 0 if there is none."""
        return float(np.abs(self.values).max(initial=0.0))


def component_maps(maps: ComponentMaps) -> list[ShownMap | None]:
    """Return every component, the most explained share first; None for one not found.

    Maps on a mesh are excluded, because its vertices are not voxels.
    """
    values = component_values(maps)
    if isinstance(maps.grid, Mesh):
        return []
    return [
        ShownMap(
            ident=f"component-{r + 1}",
            name=f"Component {r + 1}",
            grid=maps.grid,
            values=values[:, r],
            threshold=THRESHOLD,
            peak=maps.components.peaks[r],
            units="z",
            numbered=True,
        )
        if maps.is_found(r)
        else None
        for r in range(len(maps.components))
    ]


def component_values(maps: ComponentMaps) -> Array:
    """Return robust z of the components, V x R; zero where privacy noise could be as large."""
    floor = maps.floor
    values = maps.components.maps
    if floor is None:
        return values
    # A value that privacy noise could cause is not a finding, whatever its z.
    return np.where(np.abs(values) >= THRESHOLD * floor, values, 0.0)


def set_maps(run: Finished, key: str, images: ImageSet) -> list[ShownMap | None]:
    """Return every map of a set; None for one that is not found or has no voxel to colour.

    A set on a mesh has none, because its vertices are not voxels.
    """
    grid = image_set_grid(run.space, images)
    values = on_grid(run.space, images, images.coloured())
    if isinstance(grid, Mesh):
        return []
    return [_of_set(key, images, grid, values[:, k], k) for k in range(values.shape[1])]


def shown_maps(run: Finished) -> Iterator[ShownMap]:
    """Return all maps with coloured voxels, in the order of the page."""
    found = [] if run.components is None else component_maps(run.components)
    for key, images in run.result.images.items():
        if images.drawn:
            found += set_maps(run, key, images)
    return (each for each in found if each is not None and each.coloured)


class PeakRegion(NamedTuple):
    """Atlas region of a shown map's peak."""

    name: str = ""
    """Its name; empty without a region."""
    text: str = ""
    """The peak's position relative to it, as in "in Precuneus"; empty if nothing is known."""


def peak_region(run: Finished, shown: ShownMap) -> PeakRegion:
    """Return the region of a map's peak in the study's atlas, or the nearest published region."""
    if run.legend.anatomy is not None:
        found = run.legend.anatomy.name_at(shown.peak)
        return PeakRegion(found, f"in {found or _NO_REGION}")
    if not run.study.data.space.startswith("MNI152"):
        return PeakRegion()
    region = nearest_region(shown.peak)
    if region is None:
        return PeakRegion()
    return PeakRegion(region.name, f"near {region.name}, {region.network} network")


def region_name(run: Finished, peak: NDArray[np.floating]) -> str:
    """Return only the name of the region of a peak in mm, empty if there is none."""
    if run.legend.anatomy is not None:
        return run.legend.anatomy.name_at(peak) or ""
    if not run.study.data.space.startswith("MNI152"):
        return ""
    region = nearest_region(peak, FAR)
    return "" if region is None else region.name


def map_name(run: Finished, shown: ShownMap) -> str:
    """Return the name of the network that a map is most like, or otherwise of its peak's region.

    Empty if the study names no such network and no region is near.
    """
    networks = run.legend.networks
    alike = networks.most_alike(shown.grid, shown.values)[:1] if networks else []
    if alike and alike[0][1] >= NAMED:
        return alike[0][0]
    return region_name(run, shown.peak)


def map_names(run: Finished, maps: Sequence[ShownMap | None]) -> dict[str, list[str]]:
    """Return the field of a sidecar with a name for each map; empty for maps not found.

    The field is missing if no map has a name.
    """
    names = ["" if shown is None else map_name(run, shown) for shown in maps]
    return {"Names": names} if any(names) else {}


def component_regions(run: Finished, view: AnyViewSpace) -> Mapping[str, str]:
    """Return the regions of the public maps that a view measures, by its entries' names.

    Empty for a view of other entries than one a map, for maps that are not in voxels, and for maps
    with names.
    """
    maps = view.components
    grid = run.space.grid
    if maps is None or view.map_names or maps.shape != (grid.features, view.size):
        return {}
    peaks = grid.coordinates[np.abs(maps).argmax(axis=0)]
    return {k: region_name(run, peak) for k, peak in zip(view.labels, peaks, strict=True)}


def full_name(run: Finished, shown: ShownMap) -> str:
    """Return a shown map's name for people, with `map_name` if it is only numbered."""
    name = map_name(run, shown) if shown.numbered else ""
    return f"{shown.name}: {name}" if name else shown.name


def map_anchor(key: str, number: int) -> str:
    """Return the anchor of a set's map, counted from 0."""
    return f"{re.sub('[^A-Za-z0-9_-]', '-', key)}-{number + 1}"


def set_name(images: ImageSet, k: int) -> str:
    """Name of a set's map, counted from 0, for people."""
    text = images.labels[k]
    return text[:1].upper() + text[1:] + (f", {images.view}" if images.view else "")


def _of_set(key: str, images: ImageSet, grid: Grid, values: Array, k: int) -> ShownMap | None:
    coloured = np.abs(values[values != 0])
    if not (images.is_found(k) and len(coloured)):
        return None
    return ShownMap(
        ident=map_anchor(key, k),
        name=set_name(images, k),
        grid=grid,
        values=values,
        threshold=float(coloured.min()),
        peak=grid.coordinates[int(np.abs(values).argmax())],
        units=ARBITRARY if images.units == "arbitrary" else images.units,
        numbered=images.labels[k] in (f"component {k + 1}", f"map {k + 1}") and not images.view,
    )


NEAR = 15.0
"""Millimetres beyond which no region is near."""
FAR = 30.0
"""Millimetres beyond which a map is not named by the nearest region."""
_WORDS = {
    "ACC": "anterior cingulate",
    "IPL": "inferior parietal lobule",
    "IPS": "intraparietal sulcus",
    "SMA": "supplementary motor area",
    "TPJ": "temporoparietal junction",
    "aPFC": "anterior prefrontal cortex",
    "ant": "anterior",
    "dACC": "dorsal anterior cingulate",
    "dFC": "dorsal frontal cortex",
    "dlPFC": "dorsolateral prefrontal cortex",
    "inf": "inferior",
    "lat": "lateral",
    "mFC": "medial frontal cortex",
    "mPFC": "medial prefrontal cortex",
    "med": "medial",
    "mid": "middle",
    "post": "posterior",
    "pre-SMA": "pre-supplementary motor area",
    "sup": "superior",
    "vFC": "ventral frontal cortex",
    "vPFC": "ventral prefrontal cortex",
    "vent": "ventral",
    "vlPFC": "ventrolateral prefrontal cortex",
    "vmPFC": "ventromedial prefrontal cortex",
}


class Region(NamedTuple):
    """Name of a brain region that a shown map covers, and the network that it was found in."""

    name: str
    network: str


def nearest_region(peak: NDArray[np.floating], within: float = NEAR) -> Region | None:
    """Return the brain region whose centre is nearest to a shown peak; None beyond ``within``."""
    centres, regions = _published()
    distances = np.linalg.norm(centres - peak, axis=1)
    place = int(distances.argmin())
    return regions[place] if distances[place] <= within else None


@lru_cache(maxsize=1)
def _published() -> tuple[NDArray[np.float64], list[Region]]:
    from nilearn.datasets import fetch_coords_dosenbach_2010

    found = fetch_coords_dosenbach_2010()
    # A label ends in the region's number.
    names = (
        " ".join(_WORDS.get(word, word) for word in str(label).split()[:-1])
        for label in found.labels
    )
    regions = [Region(*pair) for pair in zip(names, map(str, found.networks), strict=True)]
    centres = np.column_stack([np.asarray(found.rois[axis]) for axis in "xyz"])
    return centres.astype(np.float64), regions
