"""The section of a study file that states which participants and recordings every site loads."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from consortium.base.frozen_model import FieldError, FrozenModel, Line
from consortium.views.base import BesideName
from consortium.views.meshes import CORTEX, MESHES, SURFACES, MeshFiles, MeshName

_COLUMN = re.compile(r"[A-Za-z0-9_.&-]{1,64}")
EntityLabel = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]+$")]
EntityKey = Annotated[str, StringConstraints(pattern=r"^[a-z]{1,20}$")]
SpaceLabel = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9]+(\+[A-Za-z0-9]+)?$")]
RECORDING = ("session", "run", "acquisition", "direction", "echo", "description", "entities")
"""Fields that choose among the files of a participant by the entities of their names."""
CHOICE = ("persons", *RECORDING, "runs")
"""Fields that choose participants and recordings, and don't concern their preparation."""
_FIELD_OF = {
    "task": "task",
    "ses": "session",
    "run": "run",
    "acq": "acquisition",
    "dir": "direction",
    "echo": "echo",
    "space": "space",
    "desc": "description",
}
"""Fields of the entities that have one."""
_NEVER_CHOSEN = ("sub", "hemi", "part")
_OF_VOXELS = "resolution", "mask", "maps_resolution", "maps_smoothing", "smoothing"
_LABELS = ".dlabel.nii"
"""End of an atlas's name on a mesh."""


class PersonRule(FrozenModel):
    """Values of a column with which participants are included in a study."""

    levels: tuple[Line, ...] = Field(default=(), max_length=100)
    """Values of a column of categories that are taken."""
    low: float | None = None
    """Least number that is taken."""
    high: float | None = None
    """Largest number that is taken."""

    @model_validator(mode="after")
    def _one_kind(self) -> PersonRule:
        numeric = self.low is not None or self.high is not None
        if numeric == bool(self.levels):
            raise ValueError("give either 'levels', or 'low' or 'high' or both")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low {self.low:g} is above high {self.high:g}. Correct them")
        if len(set(self.levels)) < len(self.levels):
            raise ValueError("a level appears twice. Give each once")
        return self

    def takes(self, value: str) -> bool:
        """Return whether a participant with this value is included, which requires a value."""
        if self.levels:
            return value in self.levels
        try:
            number = float(value)
        except ValueError:
            return False
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        return math.isfinite(number) and low <= number <= high


def _columns(rules: dict[str, PersonRule]) -> dict[str, PersonRule]:
    for name in rules:
        if not _COLUMN.fullmatch(name):
            raise ValueError(
                f"{name[:40]!r} is not a name of a column. Use letters, digits, _ . & -"
            )
    return rules


def _without_field(wanted: dict[str, str]) -> dict[str, str]:
    for key in wanted:
        if key in _FIELD_OF:
            raise ValueError(f"'{key}' has its own field. Write 'data: {{{_FIELD_OF[key]}: …}}'")
        if key in _NEVER_CHOSEN:
            raise ValueError(f"'{key}' can't be chosen by a study. Leave it out")
    return wanted


OtherEntities = Annotated[dict[EntityKey, EntityLabel], AfterValidator(_without_field)]
"""Labels by BIDS entities that have no field of their own."""
PersonRules = Annotated[dict[str, PersonRule], AfterValidator(_columns)]
"""Criteria by column of the site's participants.tsv; a participant must fit every criterion."""


class Section(FrozenModel):
    """A part of the study file: frozen, and an unknown field is an error."""


class DataSection(Section):
    """Data that every site loads, and their preparation."""

    task: EntityLabel = "rest"
    """BIDS task label of the functional images to load."""
    persons: PersonRules = Field(default={}, max_length=20)
    """Inclusion criteria by columns of each site's participants.tsv, such as {diagnosis: {levels:
    [control]}, age: {low: 18, high: 65}}. A participant must fit every criterion, limits included,
    and is excluded without a value. With sessions as `units` each session is judged by its own
    row."""
    missing: tuple[float, ...] = Field(default=(), max_length=20)
    """Numbers that mean a missing value in every site's tables, as [-9999, 999]. Empty cells, n/a,
    NA and NaN are also missing values."""
    session: EntityLabel | None = None
    """Only recordings of this BIDS session (ses-); all if not given."""
    run: int | None = Field(default=None, ge=0)
    """Only recordings with this BIDS run index; run-1 and run-01 are one."""
    acquisition: EntityLabel | None = None
    """Only recordings with this BIDS acquisition label (acq-)."""
    direction: EntityLabel | None = None
    """Only recordings with this BIDS phase-encoding label (dir-)."""
    echo: int | None = Field(default=None, ge=1)
    """Only recordings of this BIDS echo; images of single echoes are passed over if it is not
    given."""
    description: EntityLabel | None = None
    """Only files with this BIDS description label (desc-), such as denoised. By default preproc is
    taken first, then files without a label, then the first label by alphabet. `check` warns where
    a recording has several. A view's image or map without the label is also taken."""
    entities: OtherEntities = Field(default={}, max_length=10)
    """Only files with these labels of other BIDS entities, such as {res: '2', cohort: '5'}. A
    view's image or map without the label is also taken."""
    runs: Literal["all", "first"] = "all"
    """'all' of a participant's recordings that fit, or the 'first' by session, run and name."""
    space: SpaceLabel = "MNI152NLin2009cAsym"
    """Name of the template space that the sites' images are aligned to, with its cohort if it has
    one: MNIPediatricAsym+5 also means space-MNIPediatricAsym_cohort-5. For a mesh its own space,
    fsLR or fsaverage."""
    mesh: MeshName | None = None
    """Series on the cortex instead of voxels: 'fsLR-32k', 'fsaverage5' or 'fsaverage6'. Files are
    fMRIPrep's dense series of CIFTI (*_bold.dtseries.nii), or otherwise pairs of GIFTI (hemi-L and
    hemi-R, *_bold.func.gii). Voxels of CIFTI below the cortex are excluded. Files of another mesh
    or medial wall are refused. resolution, mask, smoothing and the fields of maps are then not
    used."""
    surfaces: tuple[BesideName, BesideName] | None = Field(
        default=None, description=f"Of the mesh: {SURFACES}"
    )
    cortex: tuple[BesideName, BesideName] | None = Field(
        default=None, description=f"Of the mesh: {CORTEX}"
    )
    resolution: float = Field(default=12.0, ge=0.5, le=30)
    """Edge of a voxel of the study's grid in mm; images are resampled to it. A second moment has a
    number for every pair of voxels. So pca and ica require a coarse grid: 12 to 16 mm for some
    hundred subjects."""
    mask: Line = "template"
    """'template' for the MNI152 brain mask of nilearn, or the path of a 3-D NIfTI mask next to the
    study file, which also defines the grid."""
    atlas: Line | None = None
    """Path of a NIfTI atlas next to the study file, 3-D labels or 4-D maps: its regions' mean time
    series, over the voxels of the grid, are then analysed instead of voxels. On a mesh a file of
    labels of CIFTI (.dlabel.nii): then series of its parcels (*_bold.ptseries.nii or
    *_timeseries.ptseries.nii) are also used, by the parcels' names. A file whose name has a
    parcellation (seg-, atlas-) is used only if the atlas's name contains it."""
    maps_resolution: float | None = Field(default=None, ge=0.5, le=30)
    """Edge in mm of the voxels of full-resolution maps (analysis.maps). By default the grid's
    own."""
    maps_smoothing: float = Field(default=0.0, ge=0, le=40)
    """Gaussian smoothing of the maps after their release, FWHM in mm: it takes the noise of privacy
    down and costs no privacy."""
    smoothing: float | None = Field(default=None, ge=0, le=40)
    """Gaussian smoothing of every volume, FWHM in mm (default: from an image's own voxels to the
    grid's size, √(grid² − own²)). A coarse grid then averages instead of sampling points. An image
    on the grid is unchanged."""
    detrend: Literal["none", "constant", "linear", "quadratic"] = "linear"
    """Polynomial trend removed from each voxel's time series, subject by subject."""
    high_pass: float | None = Field(default=None, gt=0, lt=10)
    """Frequency in Hz below which signals are removed, in one projection with trends and
    confounds."""
    low_pass: float | None = Field(default=None, gt=0, lt=10)
    """Frequency in Hz above which signals are removed, in the same projection."""
    confounds: tuple[Line, ...] = ()
    """Columns of each subject's confounds TSV to regress out. A name ending in * means all columns
    with this prefix. Participants without outlier volumes may lack motion_outlier* and
    non_steady_state_outlier*."""
    standardize: Literal["none", "subject", "voxel"] = "subject"
    """'subject': one factor per subject, which makes the mean squared norm of its volumes 1;
    'voxel': also unit variance per voxel first; 'none': original values, times scale."""
    scale: float = Field(default=1.0, gt=0)
    """Public factor applied last, for standardize: none."""
    minimum_volumes: int = Field(default=20, ge=2)
    """A subject with fewer volumes is left out, with unit subject."""
    volumes: int | None = Field(default=None, ge=2)
    """If given, every subject must have exactly this many volumes; with unit subject only."""

    @property
    def chooses(self) -> bool:
        """Whether the number of included participants reveals more than a site's size."""
        return bool(self.persons) or self.chooses_recordings

    @property
    def chooses_recordings(self) -> bool:
        """Whether it chooses some of a participant's recordings by their names."""
        return any(getattr(self, name) not in (None, {}) for name in RECORDING)

    @property
    def mixes_volumes(self) -> tuple[str, ...]:
        """Fields as they stand here by which a volume's values depend on others of its series."""
        fields = ("detrend", "standardize", "confounds", "high_pass", "low_pass")
        return tuple(name for name in fields if getattr(self, name) not in ("none", (), None))

    @property
    def of_any_recording(self) -> DataSection:
        """Return the section without its choice among a participant's recordings."""
        return self.model_copy(update={**dict.fromkeys(RECORDING), "entities": {}})

    @property
    def space_cohort(self) -> tuple[str, str | None]:
        """Labels of the entities space and cohort of the images."""
        space, _, cohort = self.space.partition("+")
        return space, cohort or None

    @property
    def mesh_files(self) -> MeshFiles | None:
        """The mesh that series are on, if they are on one."""
        return MeshFiles(self.mesh, self.surfaces, self.cortex) if self.mesh else None

    @model_validator(mode="before")
    @classmethod
    def _space_of_mesh(cls, values: Any) -> Any:
        kind = MESHES.get(str(values.get("mesh"))) if isinstance(values, dict) else None
        return values if kind is None else {"space": kind.space, **values}

    @model_validator(mode="after")
    def _fits_a_mesh(self) -> DataSection:
        if self.mesh_files is None or self.mesh is None:
            if self.surfaces or self.cortex:
                raise FieldError("mesh", "surfaces and cortex are of a mesh. Name it")
            return self
        self.mesh_files.check()
        if self.space != MESHES[self.mesh].space:
            raise FieldError("space", f"{self.mesh} has a space of its own. Leave space out")
        if self.atlas and not self.atlas.endswith(_LABELS):
            raise FieldError(
                "atlas",
                f"on a mesh it is a file of labels of CIFTI, with {_LABELS} as its name's "
                "end. Name one, or leave it out",
            )
        fields = type(self).model_fields
        named = [n for n in _OF_VOXELS if getattr(self, n) not in (fields[n].default, 0)]
        if named:
            raise FieldError(
                named[0],
                f"it is for voxels, and the series are on the mesh {self.mesh}. Leave it out",
            )
        return self

    @model_validator(mode="after")
    def _one_cohort(self) -> DataSection:
        if "+" in self.space and "cohort" in self.entities:
            raise FieldError("entities", "'cohort' is given by space. Leave it out of one of them")
        return self

    @model_validator(mode="after")
    def _leaves_a_band(self) -> DataSection:
        if self.high_pass and self.low_pass and self.high_pass >= self.low_pass:
            raise ValueError(
                f"high_pass ({self.high_pass:g} Hz) must be below low_pass ({self.low_pass:g} "
                "Hz). Correct one."
            )
        return self
