"""A regression of every voxel on what is known of one data set's persons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import nibabel as nib
from sklearn.utils.validation import check_is_fitted

from consortium.errors import DataError, StudyError
from consortium.python.estimator import HERE, PrivateEstimator
from consortium.python.renamed import renamed
from consortium.python.scratch import MAP, Img, Imgs
from consortium.space.grid import TEMPLATE

if TYPE_CHECKING:
    from pandas import DataFrame

Limits = tuple[float, float] | Sequence[str]
"""Least and largest value of a column, or its levels."""


@renamed(seed="random_state", foretell="forecast")
class PrivateGLM(PrivateEstimator):
    """One contrast of every voxel, adjusted for other columns, from noisy sums over one data set.

    Parameters
    ----------
    formula : str
        Columns that explain, with + between them, as ``"diagnosis + age"``.
    term : str
        The column whose effect is asked for: of two levels the second against the first, or the
        slope of a column with limits.
    columns : mapping of str to (float, float) or sequence of str
        For every column of the formula its public limits, or its levels.
    groups : (int, int), optional
        Persons of each level of that column. They become public, and hold exactly. Without them,
        and with ``share``, they are counted: released with noise, and paid for like all the rest.
        A slope needs neither.
    share : float, optional
        Without ``groups``: part of the persons that is publicly expected to be of the second level.
    epsilon : float
        ε of every fit, for a whole person, against all who see the result.
    delta : float
        δ of every fit; far below one over the number of persons.
    deviation, location : float, optional
        Public norms: standard deviation of the images' values among persons, and their usual value,
        in the images' unit. Effects are told in this deviation. Both are learned by the first
        release; without them that starts from 1 and 0, and finds deviations from about 0.05 to 5
        and values within a few of them. Effects are then in the deviation that was learned.
    correlation : float
        Usual correlation of two voxels; a wrong one costs precision only.
    detect : float
        Smallest effect that a fit must be able to find, in standard deviations; one that can't is
        refused.
    mask : {'template'}, path or nibabel.Nifti1Image
        Brain mask, which is public: never one that was computed from these persons.
    atlas : path or nibabel.Nifti1Image, optional
        Regions to explain instead of voxels; public, too. Fewer outcomes are known better.
    resolution : float
        Edge in mm of the voxels, if the mask is the template's.
    data : mapping, optional
        Further fields of a study's section ``data``.
    analysis : mapping, optional
        Further fields of the analysis, such as ``covariates`` or ``anyway``.
    random_state : int, optional
        Of the noise, for trying out: a seeded fit protects nobody, and says so.

    Attributes
    ----------
    privacy_ : Privacy
        What the fit cost, at most.
    privacy_so_far_ : Privacy
        What all fits of this object cost together.
    result_ : StudyResult
        All that was released; ``result_.tables`` has effects, errors and q of every outcome.
    n_persons_ : int

    Examples
    --------
    Without data: what would eight hundred persons and four regions show?

    >>> import nibabel as nib
    >>> import numpy as np
    >>> affine = np.diag([40.0, 40.0, 40.0, 1.0])
    >>> mask = nib.Nifti1Image(np.ones((2, 2, 1), dtype=np.float32), affine)
    >>> model = PrivateGLM(
    ...     "diagnosis",
    ...     "diagnosis",
    ...     {"diagnosis": ["control", "patient"]},
    ...     groups=(400, 400),
    ...     deviation=1.0,
    ...     epsilon=4.0,
    ...     delta=1e-6,
    ...     mask=mask,
    ... )
    >>> told = model.forecast()
    >>> told["study"][0], 0.05 < float(told["error"][0]) < 0.1, told["worth it"][0]
    ('as it is', True, 'yes')

    Images of made-up persons, the patients' a standard deviation higher everywhere:

    >>> rng = np.random.default_rng(0)
    >>> diagnosis = ["control", "patient"] * 400
    >>> values = [rng.normal(who == "patient", 1.0, (2, 2, 1)) for who in diagnosis]
    >>> imgs = [nib.Nifti1Image(each, affine) for each in values]
    >>> _ = model.fit(imgs, {"diagnosis": diagnosis})
    >>> effect = model.contrast("effect").get_fdata()
    >>> bool(np.abs(effect.mean() - 1.0) < 0.4)
    True
    """

    _algorithm: ClassVar[str] = "glm"
    _series: ClassVar[bool] = False

    def __init__(
        self,
        formula: str,
        term: str,
        columns: Mapping[str, Limits],
        groups: tuple[int, int] | None = None,
        *,
        deviation: float | None = None,
        epsilon: float,
        delta: float,
        location: float | None = None,
        correlation: float = 0.25,
        detect: float = 0.5,
        share: float | None = None,
        mask: Img = TEMPLATE,
        atlas: Img | None = None,
        resolution: float = 12.0,
        data: Mapping[str, Any] | None = None,
        analysis: Mapping[str, Any] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.formula = formula
        self.term = term
        self.columns = columns
        self.groups = groups
        self.deviation = deviation
        self.epsilon = epsilon
        self.delta = delta
        self.location = location
        self.correlation = correlation
        self.detect = detect
        self.share = share
        self.mask = mask
        self.atlas = atlas
        self.resolution = resolution
        self.data = data
        self.analysis = analysis
        self.random_state = random_state

    def fit(self, imgs: Imgs, design: Mapping[str, Sequence[Any]]) -> Self:
        """Release the contrast's maps; it costs (epsilon, delta), again every time.

        Parameters
        ----------
        imgs : sequence of path or nibabel.Nifti1Image
            One 3-D image for each person, such as a contrast of a first-level analysis.
        design : mapping of str to sequence, or pandas.DataFrame
            The columns of the formula, one value for each person in the images' order. What lies
            beyond a column's limits is moved to them.

        Returns
        -------
        self

        Raises
        ------
        StudyError
            If a parameter is out of range, or the fit could not find what ``detect`` says.
        DataError
            If an image can't be used, or a column is missing.
        """
        if isinstance(imgs, str | Path):
            raise DataError(f"{imgs} is one path; give a sequence with one image for each person.")
        lacking = [name for name in self.columns if name not in design]
        if lacking:
            raise DataError(f"The design has no column '{lacking[0]}'; add it.")
        self._fit(imgs, {name: list(design[name]) for name in self.columns})
        return self

    def contrast(self, stat: str = "t") -> nib.Nifti1Image:
        """Map of the contrast.

        Parameters
        ----------
        stat : {'effect', 'variance', 't', 'z', 'p', 'q'}
        """
        check_is_fitted(self, "result_")
        return self.result_.contrast(stat=stat)

    def forecast(self, persons: int | None = None) -> DataFrame:
        """Say what a fit would see, and what others near it, from public numbers alone.

        Parameters
        ----------
        persons : int, optional
            How many; by default those of ``groups``.

        Returns
        -------
        pandas.DataFrame
            Standard error, least detectable effect and more, each with a value for this study
            first; it costs nothing.

        Raises
        ------
        StudyError
            If it could not find what ``detect`` says, with what would be enough; or if neither
            ``groups`` nor ``persons`` say how many persons there are.
        """
        many = sum(self.groups or ()) if persons is None else persons
        if not many:
            raise StudyError("persons: no groups are stated; say how many persons there would be.")
        return self._forecast(many, 1)

    def _own(self) -> tuple[dict[str, Any], dict[str, Any]]:
        image = {"name": "image", "source": "fmri", "measure": "image", "image": MAP}
        columns = {name: _column(given) for name, given in self.columns.items()}
        features = [
            {**image, "center": False, "normalize": False},
            {"name": "person", "source": "table", "columns": columns},
        ]
        norms = {
            "location": self.location,
            "deviation": self.deviation,
            "correlation": self.correlation,
        }
        analysis = {
            "outcomes": "image",
            "formula": self.formula,
            "contrasts": {self.term: self.term},
            "norms": norms,
            "detect": self.detect,
            **self._of_groups(),
        }
        return {"features": features}, analysis

    def _of_groups(self) -> dict[str, Any]:
        """What the analysis is told of the groups' numbers of persons."""
        counted = {} if self.share is None else {"counts": "released", "shares": self.share}
        stated = {} if self.groups is None else {"groups": {HERE: tuple(self.groups)}}
        return counted | stated


def _column(given: Limits) -> dict[str, Any]:
    if all(isinstance(each, str) for each in given):
        return {"levels": tuple(given)}
    if len(given) != 2:
        raise StudyError(
            f"columns: {given!r} are neither two limits nor words; give (low, high) or the levels."
        )
    return {"low": given[0], "high": given[1]}
