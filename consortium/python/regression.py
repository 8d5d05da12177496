"""A regression of every voxel on columns of one data set's participants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import nibabel as nib
import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from consortium.base.near_names import known_names
from consortium.errors import DataError, NotReleasedError, StudyError
from consortium.python.estimator import HERE, PrivateEstimator
from consortium.python.scratch import (
    MAP,
    Img,
    ParticipantTable,
    is_array,
    is_table,
    participant_table,
)
from consortium.space.grid import TEMPLATE

if TYPE_CHECKING:
    from pandas import DataFrame

_REACH = 8.0  # deviations; outcomes of images are also cut there
Limits = tuple[float, float] | Sequence[str]
"""Least and largest value of a column, or its levels."""


@dataclass(eq=False, repr=False)
class PrivateGLM(PrivateEstimator):
    """One contrast of every voxel, adjusted for other columns, from noisy sums over one data set.

    Parameters
    ----------
    formula : str
        Explanatory columns, with + between them, as ``"diagnosis + age"``.
    term : str
        The column whose effect is estimated: the second of two levels minus the first, or the slope
        of a column with limits.
    columns : mapping of str to (float, float) or sequence of str
        For every column of the formula its public limits, or its levels.
    groups : (int, int), optional
        Nominal number of participants of each level of that column. The plan is made for these;
        the true numbers are released with noise. A slope needs none.
    share : float, optional
        In place of ``groups``: fraction of the participants that is expected to be of the second
        level.
    epsilon : float
        ε of every fit, for a whole participant, against all who see the result.
    delta : float
        δ of every fit; far below one over the number of participants.
    deviation, location : float, optional
        Public norms: standard deviation of the images' values within a site and group, and their
        usual value, in the images' unit. Effects are reported in this deviation. Both are learned
        by the first release. Without them that starts from 1 and 0, and finds deviations from about
        0.05 to 5 and values within a few of them. Effects are then in the deviation that was
        learned.
    correlation : float
        Usual correlation of two voxels; a wrong one costs precision only.
    detect : float
        Smallest effect that a fit must be able to find, in standard deviations; one that can't is
        refused.
    limits : (float, float), optional
        Public limits of outcomes in an array. Values outside are moved to the nearer limit. By
        default eight stated deviations on both sides of the stated location.
    mask : {'template'}, path or nibabel.Nifti1Image
        Brain mask, which is public: never one that was computed from these participants.
    atlas : path or nibabel.Nifti1Image, optional
        Regions instead of voxels as outcomes; also public. Fewer outcomes are more precise.
    resolution : float
        Edge in mm of the voxels, if the mask is the template's.
    data : mapping, optional
        Further fields of a study's section ``data``.
    analysis : mapping, optional
        Further fields of the analysis, such as ``covariates`` or ``anyway``.
    random_state : int, optional
        Seed for the noise. For testing only: a seeded fit gives no privacy protection and issues a
        warning.

    Attributes
    ----------
    privacy_ : Privacy
        Maximum privacy loss of the fit.
    privacy_so_far_ : Privacy
        Total privacy loss of all fits of this object.
    result_ : StudyResult
        All released values.
    effects_ : pandas.DataFrame
        Effect, error, t, p, q and interval of every outcome, a row each.
    n_participants_ : int

    Examples
    --------
    Forecast for eight hundred participants and four regions, without data:

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
    >>> table = model.forecast()
    >>> table["study"][0], 0.05 < float(table["error"][0]) < 0.1, table["worth it"][0]
    ('as it is', True, 'yes')

    Images of simulated participants, the patients' a standard deviation higher everywhere. Each
    fit draws new noise, and one in fifty is withheld:

    >>> rng = np.random.default_rng(0)
    >>> diagnosis = ["control", "patient"] * 400
    >>> values = [rng.normal(who == "patient", 1.0, (2, 2, 1)) for who in diagnosis]
    >>> imgs = [nib.Nifti1Image(each, affine) for each in values]
    >>> _ = model.fit({"diagnosis": diagnosis}, imgs)
    >>> model.contrast("effect").shape
    (2, 2, 1)

    The same participants' numbers as an array:

    >>> numbers = np.reshape(values, (800, 4))
    >>> from sklearn.base import clone
    >>> model = clone(model).set_params(limits=(-8, 8)).fit({"diagnosis": diagnosis}, numbers)
    >>> [*model.effects_["entry"]]
    ['y1', 'y2', 'y3', 'y4']
    """

    _algorithm: ClassVar[str] = "glm"
    _series: ClassVar[bool] = False

    formula: str
    term: str
    columns: Mapping[str, Limits]
    groups: tuple[int, int] | None = None
    _: KW_ONLY
    deviation: float | None = None
    epsilon: float
    delta: float
    location: float | None = None
    correlation: float = 0.25
    detect: float = 0.5
    limits: tuple[float, float] | None = None
    share: float | None = None
    mask: Img = TEMPLATE
    atlas: Img | None = None
    resolution: float = 12.0
    data: Mapping[str, Any] | None = None
    analysis: Mapping[str, Any] | None = None
    random_state: int | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Release the contrast, with a loss of (epsilon, delta) at each call.

        Parameters
        ----------
        X : pandas.DataFrame, mapping of str to sequence, or array of shape (participants, columns)
            Explanatory variables: the columns of the formula, or an array's in the order of
            ``columns``, one value for each participant. Values beyond a column's limits are moved
            to them.
        y : sequence of path or nibabel.Nifti1Image, array of shape (participants, V), or DataFrame
            Outcomes: one 3-D image for each participant, such as a contrast of a first-level
            analysis; or numbers, a participant in each row, with the public ``limits``.

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
        if isinstance(y, str | Path):
            raise DataError(
                f"y: must be a sequence with one image for each participant, got the path {y}."
            )
        if not is_array(y):
            self._fit(y, self._design(X))
            return self
        outcomes = check_array(
            np.reshape(y, (-1, 1)) if np.ndim(y) == 1 else y, dtype=np.float64, input_name="y"
        )
        self._fit(participant_table(y, self._limits, "y", checked=outcomes), self._design(X))
        return self

    def _design(self, X: Any) -> dict[str, list[Any]]:
        """Return the formula's columns by name."""
        if is_table(X):
            lacking = [name for name in self.columns if name not in X]
            if lacking:
                known = known_names(lacking[0], list(map(str, X)))
                raise DataError(f"The design has no column '{lacking[0]}'. {known}")
            return {name: list(X[name]) for name in self.columns}
        checked = validate_data(self, X, dtype=None, ensure_min_samples=2)
        if checked.shape[1] != len(self.columns):
            raise ValueError(
                f"X has {checked.shape[1]} columns, and {len(self.columns)} are named in columns. "
                "Give one for each, in their order."
            )
        return {name: list(checked[:, k]) for k, name in enumerate(self.columns)}

    @property
    def _limits(self) -> tuple[float, float] | None:
        """Limits of outcomes in arrays: given, or `_REACH` deviations about the stated location."""
        if self.limits is not None or self.deviation is None or self.location is None:
            return self.limits
        reach = _REACH * self.deviation
        return self.location - reach, self.location + reach

    @property
    def effects_(self) -> DataFrame:
        """Effect, error, t, p, q and interval of every outcome, a line each."""
        check_is_fitted(self, "result_")
        names = [each for each in self.result_.tables if each.startswith("contrast")]
        if len(names) != 1:
            raise NotReleasedError("The fit was of images. Get its maps with contrast().")
        return self.result_.tables[names[0]]

    def contrast(self, stat: str = "t") -> nib.Nifti1Image:
        """Map of the contrast.

        Parameters
        ----------
        stat : {'effect', 'variance', 't', 'z', 'p', 'q'}
        """
        check_is_fitted(self, "result_")
        return self.result_.contrast(stat=stat)

    def forecast(self, participants: int | None = None) -> DataFrame:
        """Forecast a fit and similar ones, only from public numbers and without privacy loss.

        Parameters
        ----------
        participants : int, optional
            Number of participants (default: those of ``groups``).

        Returns
        -------
        pandas.DataFrame
            Standard error, smallest detectable effect and more, each with a value for this study
            first.

        Raises
        ------
        StudyError
            If it could not find the effect ``detect``, with sufficient numbers; or if neither
            ``groups`` nor ``participants`` state the number of participants.
        """
        many = sum(self.groups or ()) if participants is None else participants
        if not many:
            raise StudyError(
                "`participants`: no groups are stated. Say how many participants there would be."
            )
        return self._forecast(many, 1)

    def _own(self, table: ParticipantTable | None) -> tuple[dict[str, Any], dict[str, Any]]:
        image = {"name": "image", "source": "fmri", "measure": "image", "image": MAP}
        columns = {name: _column(given) for name, given in self.columns.items()}
        whole = {**image, "center": False, "normalize": False}
        features = [
            whole if table is None else table.view("image"),
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
        """Return the analysis's fields about the groups' sizes."""
        counted = {} if self.share is None else {"shares": self.share}
        stated = {} if self.groups is None else {"groups": {HERE: tuple(self.groups)}}
        return counted | stated


def _column(given: Limits) -> dict[str, Any]:
    if all(isinstance(each, str) for each in given):
        return {"levels": tuple(given)}
    if len(given) != 2:
        raise StudyError(
            f"columns: {given!r} are neither two limits nor words. Give (low, high) or the levels."
        )
    return {"low": given[0], "high": given[1]}
