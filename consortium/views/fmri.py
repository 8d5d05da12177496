"""Views made of a person's functional images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field, model_validator

from consortium.base.formatting import count
from consortium.views.base import BaseView, BesideName, Label

MEASURES = {
    "amplitude": "the standard deviation over time",
    "alff": "the amplitude of slow fluctuations",
    "components": "the strength of given component maps",
    "image": "one image per person",
}


class FmriView(BaseView):
    """One number per voxel, region or component, from a person's functional images."""

    source: Literal["fmri"] = Field(description="Functional images, prepared as `data` says.")
    measure: Literal["amplitude", "alff", "components", "image"] = Field(
        default="amplitude",
        description="'amplitude': standard deviation over time; 'alff': that of a band of "
        "frequencies; 'components': standard deviation of each public component's course; 'image': "
        "a 3-D image per person, such as a contrast, which is taken as it is: of `data` only the "
        "space, the grid and what chooses files count, and not the task.",
    )
    band: tuple[float, float] = Field(
        default=(0.01, 0.08), description="For alff: lowest and highest frequency in Hz."
    )
    components: BesideName | None = Field(
        default=None,
        description="For components: 4-D NIfTI of public component maps beside the study file.",
    )
    image: Label | None = Field(
        default=None,
        description="For image: end of the files' names before .nii.gz, as desc-faces_statmap.",
    )
    center: bool = Field(
        default=True, description="Take a person's own mean over all entries away."
    )
    normalize: bool = Field(
        default=True, description="Scale every person's vector to Euclidean norm 1."
    )

    @model_validator(mode="after")
    def _complete(self) -> FmriView:
        if (self.measure == "components") != (self.components is not None):
            raise ValueError("'components' names a file of maps, for measure: components only")
        if (self.measure == "image") != (self.image is not None):
            raise ValueError("'image' names the end of file names, for measure: image only")
        if not 0 <= self.band[0] < self.band[1]:
            raise ValueError("band: give the lower frequency first")
        return self

    @property
    def labels(self) -> tuple[str, ...]:
        """Return none: entries are voxels, regions or maps."""
        return ()

    def known_sums(self, size: int) -> Iterator[tuple[range, float]]:
        """All entries, if a person's own mean is taken away."""
        if self.center:
            yield range(size), 0.0

    def size(self, image_features: int, maps: int) -> int:
        """As many as there are component maps, or else rows of an image."""
        return maps if self.components else image_features

    @property
    def heading(self) -> str:
        """Name, and what is measured."""
        return f"{self.name} (images: {MEASURES[self.measure]})"

    def methods_sentence(self, size: int) -> str:
        """Say what was measured, and how it was scaled."""
        scaled = ", scaled to norm 1" if self.normalize else ""
        what = f"{MEASURES[self.measure]} of functional images"
        if not self.is_series:
            what = f"one image per person ({self.image})"
        return f"{self.name} ({count(size, 'number')}), {what}{scaled}"

    @property
    def is_image(self) -> bool:
        """Yes."""
        return True

    @property
    def is_series(self) -> bool:
        """Unless each person has one image, which is taken as it is."""
        return self.measure != "image"

    @property
    def maps_file(self) -> str | None:
        """File of the component maps."""
        return self.components

    def usual(self, size: int) -> tuple[float, float]:
        """Of vectors of norm 1, which strengths share about equally; of any others."""
        strengths, scale = self.is_series and not self.center, size**-0.5
        if self.normalize:
            return (scale, scale / 4) if strengths else (0.0, scale)
        return (0.5, 0.125) if strengths else super().usual(size)

    def is_flattened(self, standardize: str, atlas: bool) -> bool:
        """Whether every amplitude becomes one, since each voxel's was made one."""
        return self.measure == "amplitude" and standardize == "voxel" and not atlas
