"""A finished study as its files and its page are made from."""

from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import Array, Result
from consortium.algorithms.findings import Finding
from consortium.report.components import Components, tidy_components
from consortium.report.course import Step
from consortium.report.legend import Legend
from consortium.report.privacy_report import PrivacyReport
from consortium.space.grid import Grid
from consortium.space.mesh import Mesh
from consortium.space.sampling import smooth_maps
from consortium.space.study_space import Space
from consortium.study.spec import Study


@dataclass(frozen=True, eq=False)
class ComponentMaps:
    """The tidied component maps of a study of images."""

    grid: Grid | Mesh
    """Their V voxels, or vertices."""
    components: Components
    noise: NDArray[np.float64] | None = None
    """Shape (V,). Standard deviation of the privacy noise in each voxel of the maps before they
    were scaled, if it can be told."""
    found: tuple[bool, ...] = ()
    """Whether each component stands out of the noise; one that does not is listed, but not drawn.
    Empty: all do."""
    shares: tuple[Finding, ...] = ()
    """Of each component, its part of the data's variance. Empty: it is not known, and each one's
    part of all components' is told."""

    @property
    def floor(self) -> NDArray[np.float64] | None:
        """The noise in the units of each map, V x R."""
        return None if self.noise is None else self.noise[:, None] / self.components.noise

    def is_found(self, r: int) -> bool:
        """Whether component r, counted from 0, stands out of the noise."""
        return self.found[r] if self.found else True

    @property
    def tells_shares(self) -> bool:
        """Whether the share of any component is told."""
        return not self.shares or any(share.reported for share in self.shares)

    def share(self, r: int) -> Finding:
        """Explained share of component r: of the data's variance, or of all components'."""
        return self.shares[r] if self.shares else Finding(float(self.components.shares[r]))


@dataclass(frozen=True, eq=False)
class Finished:
    """All that is told of a study that has ended; `finish_result` makes one."""

    study: Study
    space: Space
    result: Result
    report: PrivacyReport
    day: date
    """The day that the page carries."""
    components: ComponentMaps | None = None
    """The result's maps, if it is a study of images and has any."""
    legend: Legend = field(default_factory=Legend)
    """Names of places and networks, if the study gives any."""
    course: tuple[Step, ...] = ()
    """What happened beside what was planned, if the plan is known."""
    files: tuple[Path, ...] = ()
    """What people may want to open, relative to the output folder."""

    @property
    def loadings(self) -> Array | None:
        """Values over all views' entries, D x K, of a study of persons that has any."""
        name = self.result.loadings or self.result.maps
        return self.result.arrays[name] if name and self.space.views else None

    @property
    def has_images(self) -> bool:
        """Whether anything comes from images."""
        return not self.space.views or any(view.view.is_image for view in self.space.views)


def finish_result(
    study: Study,
    space: Space,
    result: Result,
    report: PrivacyReport,
    day: date,
    legend: Legend | None = None,
) -> Finished:
    """Put together what is told; the same result gives the same maps.

    Raises DataError if the maps don't fit the study's grid or hold a value that is not finite.
    """
    maps = _component_maps(study, space, result) if result.maps and not study.features else None
    return Finished(study, space, result, report, day, maps, legend or Legend())


def _component_maps(study: Study, space: Space, result: Result) -> ComponentMaps:
    """Paint, smooth and tidy the result's maps."""
    values = result.arrays[result.maps]
    grid = space.maps if result.fine else space.domain
    painted = values if result.fine else space.paint(values)
    smooth, noise = smooth_maps(painted, result.noise, grid, study.data.maps_smoothing)
    # A region's voxels share their noise, so that it is not told voxel by voxel.
    with_noise = result.noise > 0 and (result.fine or space.regions is None)
    variances = np.maximum(result.arrays[result.variances], 0.0) if result.variances else None
    components = tidy_components(smooth, grid, variances)
    found = tuple(result.captions.is_found(r) for r in components.order)
    shares = tuple(result.shares[r] for r in components.order) if result.shares else ()
    return ComponentMaps(grid, components, noise if with_noise else None, found, shares)
