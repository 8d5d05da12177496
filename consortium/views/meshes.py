"""Public meshes of the cortex that values are stored on, the same anywhere.

Source: the numbers of vertices are FreeSurfer's (Fischl et al. 1999) and those of HCP's fs_LR mesh
(Van Essen et al. 2012); names of spaces and densities are BIDS's and TemplateFlow's.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from consortium.base.frozen_model import FieldError

MeshName = Literal["fsLR-32k", "fsaverage5", "fsaverage6"]
Pair = tuple[str, str]
"""Files of the left and of the right hemisphere."""


class MeshKind(NamedTuple):
    """Number of vertices of a mesh, and names of its files."""

    vertices: int
    """Vertices of each hemisphere."""
    space: str
    density: str
    """As the entities ``space`` and ``den`` of files that are written."""
    spaces: frozenset[str]
    densities: frozenset[str]
    """What either may be in the name of a file that is read."""


MESHES: Mapping[str, MeshKind] = {
    "fsLR-32k": MeshKind(
        32_492, "fsLR", "32k", frozenset({"fsLR"}), frozenset({"32k", "59k", "91k"})
    ),
    "fsaverage5": MeshKind(
        10_242,
        "fsaverage",
        "10k",
        frozenset({"fsaverage", "fsaverage5"}),
        frozenset({"10k"}),
    ),
    "fsaverage6": MeshKind(
        40_962,
        "fsaverage",
        "41k",
        frozenset({"fsaverage", "fsaverage6"}),
        frozenset({"41k"}),
    ),
}
"""By the name that a study gives; CIFTI files of fsLR-32k count both hemispheres or more."""
BUILT_IN: MeshName = "fsaverage5"
"""Whose surfaces nilearn carries."""


class MeshFiles(NamedTuple):
    """A mesh as a study names it: public, and known without any data."""

    mesh: MeshName
    surfaces: Pair | None
    cortex: Pair | None

    @property
    def named(self) -> tuple[str, ...]:
        """Files next to the study file."""
        return (*(self.surfaces or ()), *(self.cortex or ()))

    def check(self) -> None:
        """Raise FieldError if surfaces are not named that no package carries."""
        if self.surfaces is None and self.mesh != BUILT_IN:
            raise FieldError(
                "surfaces",
                f"those of {self.mesh} are in no package. Name a GIFTI file of each "
                "hemisphere next to the study file",
            )


def side_file_names(name: str) -> tuple[str, ...]:
    """Return a file's name, with that of the right hemisphere if it is GIFTI of the left one."""
    left = name.endswith(".gii") and "hemi-L" in name
    return (name, name.replace("hemi-L", "hemi-R")) if left else (name,)


SURFACES = (
    "GIFTI files of the left and the right surface next to the study file, such as the white or "
    "midthickness surface that TemplateFlow has; nilearn carries the white one of fsaverage5, "
    "which needs none."
)
CORTEX = (
    "GIFTI files of the left and the right hemisphere next to the study file with a number for "
    "every vertex, 0 on the medial wall; by default every vertex counts. CIFTI files must have "
    "values at exactly the vertices that are not 0."
)
