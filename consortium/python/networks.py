"""Maps of one data set's participants: brain networks, and principal components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import nibabel as nib
import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from consortium.errors import NotReleasedError
from consortium.python.estimator import PrivateEstimator
from consortium.python.scratch import Img, Imgs, ParticipantTable, is_array, participant_table
from consortium.space.grid import TEMPLATE

if TYPE_CHECKING:
    from nilearn.surface import SurfaceImage
    from pandas import DataFrame


class _Components(TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """An analysis of series whose result is a set of maps."""

    _sklearn_output_config: dict[str, str]

    def __init_subclass__(cls, **more: Any) -> None:
        # scikit-learn would wrap `transform`, but can't wrap a list of series.
        super().__init_subclass__(**{**more, "auto_wrap_output_keys": None})

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns of `transform`, such as 'privatepca0'.

        Parameters
        ----------
        input_features : None
            Not used.
        """
        del input_features
        name = type(self).__name__.lower()
        return np.array([f"{name}{k}" for k in range(self.n_components_)], dtype=object)

    def set_output(self, *, transform: Literal["default", "pandas"] | None = None) -> Self:
        """Choose the type of what `transform` returns.

        Parameters
        ----------
        transform : {'default', 'pandas'}, optional
            Arrays, or pandas.DataFrames with the names of `get_feature_names_out`. For a list of
            series each becomes one (default: leave the choice unchanged).
        """
        if transform is not None:
            if transform not in ("default", "pandas"):
                raise ValueError(f"transform must be 'default' or 'pandas', got {transform!r}.")
            self._sklearn_output_config = {"transform": transform}
        return self

    def _as_chosen(self, values: Any, given: Any) -> Any:
        """Return an array, or each of several, in the type that `set_output` chose."""
        usual = {"transform": get_config()["transform_output"]}
        if getattr(self, "_sklearn_output_config", usual)["transform"] != "pandas":
            return values
        from pandas import DataFrame as Frame  # only who asks for it should pay

        names = self.get_feature_names_out()
        if isinstance(values, list):
            return [Frame(each, columns=names) for each in values]
        return Frame(values, columns=names, index=getattr(given, "index", None))

    @property
    def components_img_(self) -> nib.Nifti1Image | SurfaceImage:
        """Released maps, 4-D, or on a mesh of shape (vertices, maps)."""
        check_is_fitted(self, "result_")
        return self.result_.components_img_

    @property
    def n_components_(self) -> int:
        """Released maps, found or not."""
        return len(self.found_)

    @property
    def found_(self) -> tuple[bool, ...]:
        """Whether each map stands out of the noise; one that does not means nothing."""
        check_is_fitted(self, "result_")
        return self.result_.found_

    def fit(self, X: Any, y: None = None) -> Self:
        """Release the maps of these participants, with a loss of (epsilon, delta) at each call.

        Parameters
        ----------
        X : path, or sequence of a participant each
            A BIDS data set; or for each participant a 4-D series, a NIfTI file, an image in memory
            or nilearn's SurfaceImage, or a list of such if there are several runs. A participant
            with two entries would have half the protection.
        y : None
            Not used.

        Returns
        -------
        self

        Raises
        ------
        StudyError
            If a parameter is out of range, or there are too few participants to find any map.
        DataError
            If an image can't be used.
        """
        del y
        self._fit(X)
        return self

    def transform(self, X: Any) -> Any:
        """Return time series of the released maps in given series; as private as these.

        See `StudyResult.transform`.
        """
        check_is_fitted(self, "result_")
        return self._as_chosen(self.result_.transform(X), X)


@dataclass(eq=False, repr=False)
class PrivateGroupICA(_Components):
    """Brain networks that one data set's participants have in common, from one noisy release.

    Parameters
    ----------
    n_components : int or 'auto'
        Maximum number of networks. If 'auto', every component that exceeds the noise is kept.
    epsilon : float
        ε of every fit, for a whole participant, against all who see the result.
    delta : float
        δ of every fit; far below one over the number of participants.
    mask : {'template'}, path or nibabel.Nifti1Image
        Brain mask, which is public: never one that was computed from these participants.
    atlas : path or nibabel.Nifti1Image, optional
        Regions to analyse instead of voxels; also public.
    resolution : float
        Edge in mm of the analysed voxels, if the mask is the template's.
    data : mapping, optional
        Further fields of a study's section ``data``, such as ``high_pass``; ``mesh`` for images on
        the cortex.
    analysis : mapping, optional
        Further fields of the analysis, such as ``cutoff`` or ``global_signal``.
    random_state : int, optional
        Seed for the noise. For testing only: a seeded fit gives no privacy protection and issues a
        warning.

    Attributes
    ----------
    components_img_ : nibabel.Nifti1Image
        Maps, 4-D, in standard deviations over the brain.
    expected_ : tuple of float
        Expected correlation of each map with the true network of the population, at the map's
        resolution; NaN where none can be estimated.
    found_ : tuple of bool
        Whether each map exceeds the noise.
    privacy_ : Privacy
        Maximum privacy loss of the fit.
    privacy_so_far_ : Privacy
        Total privacy loss of all fits of this object.
    result_ : StudyResult
        All released values.
    n_components_, n_participants_ : int

    Examples
    --------
    Forecast for three hundred participants at this ε, without data:

    >>> model = PrivateGroupICA(10, epsilon=8.0, delta=1e-5)
    >>> print(model.forecast(300)["forecast"][1])  # doctest: +ELLIPSIS
    If networks have their usual strengths, about ... of 10 components are found: ...

    Too few participants are refused before their images are read:

    >>> model.forecast(20)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    consortium.errors.StudyError: ...the noise over 20 participants hides nearly all...
    """

    _algorithm: ClassVar[str] = "group_ica"

    n_components: int | Literal["auto"] = "auto"
    _: KW_ONLY
    epsilon: float
    delta: float
    mask: Img = TEMPLATE
    atlas: Img | None = None
    resolution: float = 8.0
    data: Mapping[str, Any] | None = None
    analysis: Mapping[str, Any] | None = None
    random_state: int | None = None

    @property
    def expected_(self) -> tuple[float, ...]:
        """Expected correlation of each map with the true network of the population.

        At the map's resolution; NaN where none can be estimated.
        """
        check_is_fitted(self, "result_")
        return self.result_.expected_

    def forecast(self, participants: int, volumes: int = 200) -> DataFrame:
        """Forecast a fit, only from public numbers and without privacy loss.

        Parameters
        ----------
        participants, volumes : int
            Participants, and volumes of each.

        Returns
        -------
        pandas.DataFrame
            ``forecast``: sentences.

        Raises
        ------
        StudyError
            If no network would be found, with sufficient numbers.
        """
        return self._forecast(participants, volumes)

    def _own(self, table: ParticipantTable | None) -> tuple[dict[str, Any], dict[str, Any]]:
        del table
        return {}, {"components": self.n_components}


@dataclass(eq=False, repr=False)
class PrivatePCA(_Components):
    """Leading principal components of one data set's participants.

    Parameters
    ----------
    n_components : int
        Dimensions to keep.
    epsilon : float
        ε of every fit, for a whole participant, against all who see the result.
    delta : float
        δ of every fit; far below one over the number of participants.
    solver : {'moment', 'power', 'subspace'}, optional
        As in a study's ``analysis.solver`` (default: by the number of features).
    limits : (float, float), optional
        Public limits of an array's columns, to which values beyond them are moved.
    mask, atlas, resolution, data, analysis, random_state
        As in `PrivateGroupICA`.

    Attributes
    ----------
    components_img_ : nibabel.Nifti1Image
        Maps, 4-D, as robust z-scores; by descending share of the variance.
    components_ : array, shape (K, D)
        Directions of an array's columns, likewise.
    found_ : tuple of bool
        Whether each map exceeds the noise.
    privacy_, privacy_so_far_, result_, n_components_, n_participants_
        As in `PrivateGroupICA`.

    Examples
    --------
    Series of twenty simulated participants on a grid of 27 voxels:

    >>> import nibabel as nib
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> affine = np.diag([20.0, 20.0, 20.0, 1.0])
    >>> mask = nib.Nifti1Image(np.ones((3, 3, 3), dtype=np.float32), affine)
    >>> imgs = [nib.Nifti1Image(rng.random((3, 3, 3, 24)), affine) for _ in range(20)]
    >>> model = PrivatePCA(2, epsilon=2.0, delta=1e-5, mask=mask).fit(imgs)
    >>> model.components_img_.shape, model.n_participants_
    ((3, 3, 3, 2), 20)
    >>> print(model.privacy_)
    ε = 2 at δ = 1e-05 (μ = 0.502) for one participant with all their data

    Series on the cortex, on the public mesh fsaverage5:

    >>> from nilearn.datasets import load_fsaverage
    >>> from nilearn.surface import SurfaceImage
    >>> shapes = load_fsaverage("fsaverage5")["white_matter"]
    >>> def on_cortex():
    ...     sides = {side: rng.random((10242, 24)) for side in ("left", "right")}
    ...     return SurfaceImage(shapes, sides)
    >>> of_mesh = {"data": {"mesh": "fsaverage5"}, "solver": "subspace"}
    >>> model = PrivatePCA(2, epsilon=8.0, delta=1e-5, **of_mesh)
    >>> model = model.fit([on_cortex() for _ in range(20)])
    >>> type(model.components_img_).__name__, model.components_img_.shape
    ('SurfaceImage', (20484, 2))

    Numbers, a participant in each line:

    >>> X = rng.normal(size=(500, 1)) * [1.0, 1.0, 0.0] + 0.1 * rng.normal(size=(500, 3))
    >>> model = PrivatePCA(1, epsilon=8.0, delta=1e-5, limits=(-4, 4)).fit(X)
    >>> bool(np.abs(model.components_[0, :2]).min() > 0.6), model.transform(X).shape
    (True, (500, 1))
    """

    _algorithm: ClassVar[str] = "pca"

    n_components: int
    _: KW_ONLY
    epsilon: float
    delta: float
    solver: Literal["moment", "power", "subspace"] | None = None
    limits: tuple[float, float] | None = None
    mask: Img = TEMPLATE
    atlas: Img | None = None
    resolution: float = 12.0
    data: Mapping[str, Any] | None = None
    analysis: Mapping[str, Any] | None = None
    random_state: int | None = None

    @property
    def components_(self) -> NDArray[np.float64]:
        """Released directions of an array's columns, of norm one: K x D."""
        table = self._loadings
        if table is None:
            raise NotReleasedError("The fit was of images, so its maps are in components_img_.")
        return np.asarray(table.drop(columns="entry").to_numpy(dtype=np.float64).T)

    @property
    def found_(self) -> tuple[bool, ...]:
        """Whether each component stands out of the noise; one that does not means nothing."""
        if self._loadings is None:
            return super().found_
        states = self.result_.tables["components"]["state"]
        return tuple(state == "found" for state in states[: len(self.components_)])

    @property
    def _loadings(self) -> DataFrame | None:
        """Released directions of an array's columns; None for images."""
        check_is_fitted(self, "result_")
        names = [name for name in self.result_.tables if name.endswith("_loadings")]
        return self.result_.tables[names[0]] if names else None

    def fit(self, X: Imgs | NDArray[Any] | DataFrame, y: None = None) -> Self:
        """Release these participants' components, with a loss of (epsilon, delta) at each call.

        Parameters
        ----------
        X : path, sequence of series, array of shape (participants, D), or DataFrame
            Images as in `PrivateGroupICA.fit`; or numbers, a participant in each line, of columns
            with the public ``limits``. Their directions are reported about the middle of the
            limits, since no mean is subtracted: choose limits around usual values.
        y : None
            Not used.

        Raises
        ------
        StudyError
            If a parameter is out of range, or an array has no ``limits``.
        DataError
            If an image can't be used.
        ValueError
            If an array has values that are not finite, or fewer than two participants.
        """
        if not is_array(X):
            return super().fit(X, y)
        checked = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        self._fit(participant_table(X, self.limits, "x", checked=checked))
        return self

    def transform(self, X: Sequence[Img] | NDArray[Any] | DataFrame) -> Any:
        """Return time series of the maps in given series, or scores of rows; as private as these.

        Returns
        -------
        list of array, shape (T, K); or array, shape (participants, K)
            For an array each row times the components, about the middle of the limits and in units
            of half their width.
        """
        if not is_array(X):
            return super().transform(X)
        check_is_fitted(self, "result_")
        checked = validate_data(self, X, dtype=np.float64, reset=False)
        low, high = self.limits or (-1.0, 1.0)
        scaled = 2.0 * (np.clip(checked, low, high) - low) / (high - low) - 1.0
        return self._as_chosen(scaled @ self.components_.T, X)

    def _own(self, table: ParticipantTable | None) -> tuple[dict[str, Any], dict[str, Any]]:
        fields = {} if table is None else {"features": [table.view("x")]}
        return fields, {"components": self.n_components, "solver": self.solver}
