"""Views of a value for each vertex of the cortex."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field, model_validator

from consortium.views.base import BaseView, BesideName, Label
from consortium.views.meshes import CORTEX, SURFACES, MeshFiles, MeshName


class SurfaceView(BaseView):
    """One number per vertex of both cortices, such as thickness, on a public mesh."""

    source: Literal["surface"]
    """Values on the cortex's surface, as FreeSurfer, fMRIPrep and HCP's pipelines write them."""
    mesh: MeshName
    """The mesh that every site's files are on: 'fsLR-32k', 'fsaverage5' or 'fsaverage6'. Files with
    another number of vertices are refused."""
    values: Label
    """End of the files' names before the ending, as 'thickness' for
    sub-01_space-fsLR_den-91k_thickness.dscalar.nii (CIFTI), for the pair
    sub-01_hemi-L_space-fsaverage5_thickness.shape.gii and hemi-R (GIFTI; .func.gii as well), or for
    the pair lh.thickness.fsaverage5.mgh and rh. (FreeSurfer; .mgz as well). If a participant has
    several kinds, the first of these counts."""
    surfaces: tuple[BesideName, BesideName] | None = Field(
        default=None,
        description=SURFACES,
    )
    cortex: tuple[BesideName, BesideName] | None = Field(
        default=None,
        description=CORTEX,
    )
    center: bool = False
    """Take a participant's own mean over all vertices away."""
    normalize: bool = False
    """Scale every participant's vector to Euclidean norm 1."""
    gaps: float = Field(default=0.0, ge=0, le=0.5)
    """Fraction of the vertices at which a participant may have no number. Views of `average` and
    outcomes of `glm` may have gaps. The share of participants who have each vertex is then released
    with the rest, and results are computed from those participants. A participant who lacks more is
    left out. With 0, a participant who lacks any is left out."""

    @model_validator(mode="after")
    def _has_surfaces(self) -> SurfaceView:
        self.mesh_files.check()
        return self

    @property
    def labels(self) -> tuple[str, ...]:
        """Return none: entries are vertices, which have numbers."""
        return ()

    def known_sums(self, size: int) -> Iterator[tuple[range, float]]:
        """Yield all entries if the participant's own mean is subtracted."""
        if self.center:
            yield range(size), 0.0

    def size(self, image_features: int, maps: int) -> int:
        """Return the number of vertices, which is passed as ``maps``."""
        del image_features
        return maps

    @property
    def stated_gaps(self) -> float:
        """Fraction of the vertices that a participant may lack."""
        return self.gaps

    @property
    def mesh_files(self) -> MeshFiles:
        """Its mesh, with the files that describe it."""
        return MeshFiles(self.mesh, self.surfaces, self.cortex)

    @property
    def heading(self) -> str:
        """Name, measure and mesh."""
        return f"{self.name} ({self.values} on the mesh {self.mesh})"

    def methods_sentence(self, size: int) -> str:
        """State the files and the scaling."""
        scaled = ", scaled to norm 1" if self.normalize else ""
        wall = " outside the medial wall" if self.cortex else ""
        where = f"{size:,} vertices of the mesh {self.mesh}{wall}"
        return f"{self.name} ({where}), {self.values}{scaled}"

    def usual(self, size: int) -> tuple[float, float]:
        """Return those of vectors of norm 1; others have no usual values."""
        if self.normalize:
            return 0.0 if self.center else size**-0.5, size**-0.5
        return super().usual(size)
