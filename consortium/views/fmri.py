"""Views made of a participant's functional images."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, Literal

from pydantic import Field, model_validator

from consortium.base.formatting import count
from consortium.base.frozen_model import FieldError
from consortium.errors import StudyError
from consortium.views.base import BaseView, BesideName, Label

MEASURES = {
    "amplitude": "the standard deviation over time",
    "alff": "the amplitude of slow fluctuations",
    "components": "the strength of given component maps",
    "image": "one image per participant",
    "connectivity": "how the time series of every two regions or components go together",
}
MOST_EDGES = 1_000_000
"""Most edges of a view: those of fourteen hundred regions."""
_FISHER_Z = 0.3
USUAL_GAPS = 0.2
"""Fraction of an image's voxels that may be missing where the study states none."""
"""Standard deviation of an edge among participants."""


class FmriView(BaseView):
    """One number per voxel, region or component, from a participant's functional images."""

    source: Literal["fmri"]
    """Functional images, prepared as `data` says."""
    measure: Literal["amplitude", "alff", "components", "image", "connectivity"] = "amplitude"
    """'amplitude': standard deviation over time; 'alff': that of a band of frequencies;
    'components': standard deviation of each public component's time series; 'image': a 3-D image
    per participant, such as a contrast, which is taken as it is: of `data` only the space, the grid
    and what chooses files count, and not the task; 'connectivity': Fisher's z of the correlation of
    every two regions' time series of `data.atlas`, or every two maps' of `components`, where these
    are given."""
    band: tuple[float, float] = (0.01, 0.08)
    """For alff: lowest and highest frequency in Hz."""
    components: BesideName | None = None
    """For components and connectivity: 4-D NIfTI of public component maps next to the study file,
    such as templates or the output of 'consortium templates' for an earlier run."""
    image: Label | None = None
    """For image: end of the files' names before .nii.gz, as desc-faces_statmap."""
    center: bool = True
    """Take a participant's own mean over all entries away; of connectivity only if it is said."""
    normalize: bool = True
    """Scale every participant's vector to Euclidean norm 1; of connectivity only if it is said."""
    gaps: float | None = Field(default=None, ge=0, le=0.5)
    """For image only: fraction of the voxels or regions in which a participant may have no value
    (default: 0.2). A participant who lacks more is left out. In `average` and for outcomes of `glm`
    the share of participants who have each voxel is released with the rest, and results are
    computed from those participants. In other analyses, and with 0, a missing value counts as 0."""
    zero_is_missing: bool = False
    """For image only: count a value of exactly 0 as missing, as pipelines write 0 outside their own
    mask. Leave it false for thresholded images, whose zeros are values."""

    @model_validator(mode="before")
    @classmethod
    def _edges_as_they_are(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("measure") == "connectivity":
            return {"center": False, "normalize": False, **values}
        return values

    @model_validator(mode="after")
    def _complete(self) -> FmriView:
        has = self.components is not None
        if self.measure != "connectivity" and (self.measure == "components") != has:
            raise FieldError(
                "components", "names a file of maps, for measure: components or connectivity only"
            )
        if (self.measure == "image") != (self.image is not None):
            raise FieldError("image", "names the end of file names, for measure: image only")
        if self.measure != "image" and (self.gaps or self.zero_is_missing):
            raise FieldError(
                "gaps",
                f"gaps and zero_is_missing require measure: image, got {self.measure}. Leave "
                "them out.",
            )
        if not 0 <= self.band[0] < self.band[1]:
            raise FieldError("band", "give the lower frequency first")
        return self

    @property
    def labels(self) -> tuple[str, ...]:
        """Return none: entries are voxels, regions or maps."""
        return ()

    @property
    def is_of_edges(self) -> bool:
        """Whether its entries are pairs of regions or of maps."""
        return self.measure == "connectivity"

    def names_of(self, size: int) -> tuple[str, ...]:
        """Return pairs as ``region1-region2`` or ``network1-network2``; none of places or maps."""
        if not self.is_of_edges:
            return ()
        nodes = round((1 + (1 + 8 * size) ** 0.5) / 2)
        kind = "network" if self.components else "region"
        return tuple(f"{kind}{a}-{kind}{b}" for a, b in combinations(range(1, nodes + 1), 2))

    def known_sums(self, size: int) -> Iterator[tuple[range, float]]:
        """Yield all entries if the participant's own mean is subtracted."""
        if self.center:
            yield range(size), 0.0

    def size(self, image_features: int, maps: int) -> int:
        """Return the number of component maps, or of rows of an image without maps, or of pairs.

        Raises StudyError if the number of pairs is 0, or more than `MOST_EDGES`.
        """
        nodes = maps if self.components else image_features
        if not self.is_of_edges:
            return nodes
        edges = nodes * (nodes - 1) // 2
        if not 0 < edges <= MOST_EDGES:
            raise StudyError(
                f"View '{self.name}' has {edges:,} pairs, and may have 1 to {MOST_EDGES:,}. Give "
                "an atlas or maps with another number of regions."
            )
        return edges

    @property
    def heading(self) -> str:
        """Name and measure."""
        return f"{self.name} (images: {MEASURES[self.measure]})"

    def methods_sentence(self, size: int) -> str:
        """State the measure and the scaling."""
        scaled = ", scaled to norm 1" if self.normalize else ""
        what = f"{MEASURES[self.measure]} of functional images"
        if self.is_of_edges:
            nodes = f"maps of {self.components}" if self.components else "regions of the atlas"
            what = f"Fisher's z of the correlation of the time series of every two {nodes}"
        if not self.is_series:
            what = f"one image per participant ({self.image})"
        return f"{self.name} ({count(size, 'number')}), {what}{scaled}"

    @property
    def is_image(self) -> bool:
        """Whether values are at voxels, vertices or regions, and not at pairs of them."""
        return not self.is_of_edges

    @property
    def is_series(self) -> bool:
        """Whether participants have time series, and not one image each."""
        return self.measure != "image"

    @property
    def stated_gaps(self) -> float:
        """Fraction of an image that the study states a participant may lack."""
        return self.gaps or 0.0

    @property
    def most_missing(self) -> float:
        """Fraction of an image that a participant may lack."""
        if self.measure != "image":
            return 0.0
        return USUAL_GAPS if self.gaps is None else self.gaps

    @property
    def maps_file(self) -> str | None:
        """File of the component maps."""
        return self.components

    def usual(self, size: int) -> tuple[float, float]:
        """Return those of vectors of norm 1, or of any others."""
        if self.is_of_edges:
            return 0.0, size**-0.5 if self.normalize else _FISHER_Z
        strengths = self.is_series and not self.center
        scale = size**-0.5
        if self.normalize:
            return (scale, scale / 4) if strengths else (0.0, scale)
        return (0.5, 0.125) if strengths else super().usual(size)

    def unfit(self, standardize: str, atlas: bool) -> FieldError | None:
        """Return why amplitudes would all be one, or pairs of voxels too many."""
        if self.measure == "amplitude" and standardize == "voxel" and not atlas:
            return FieldError(
                "data.standardize", "'voxel' makes every amplitude one. Set subject or none"
            )
        if self.is_of_edges and not (self.components or atlas):
            return FieldError(
                "features",
                f"view '{self.name}' measures connectivity, which is between regions or "
                "maps. Name data.atlas, or the view's components",
            )
        return None
