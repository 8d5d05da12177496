"""What a volume becomes: values of voxels or vertices, or of an atlas's regions over voxels."""

from dataclasses import dataclass

from consortium.space.atlas import Regions
from consortium.space.grid import Grid
from consortium.space.mesh import Mesh


@dataclass(frozen=True, eq=False)
class Target:
    """Voxels that an image is sampled on, and regions that these are averaged over."""

    grid: Grid | Mesh
    """Of a mesh the vertices' values are taken as they are."""
    regions: Regions | None = None
    """Of an atlas, over the voxels of the grid; without one, the voxels are kept."""

    @property
    def features(self) -> int:
        """D, what a volume becomes: regions, or else voxels or vertices."""
        return self.regions.features if self.regions else self.grid.features

    @property
    def digests(self) -> list[str]:
        """SHA-256 of each part."""
        return [self.grid.digest, *([self.regions.digest] if self.regions else [])]
