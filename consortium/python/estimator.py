"""The common base of the estimators of one data set: a study of one site, fitted here.

They follow scikit-learn: parameters are the constructor's and are stored unchanged, `fit` checks
them, and the names of fitted attributes end in an underscore. They store only released values.

A plan of one site carried out here, with the noise, and by the steps, of a study.

The participants are protected only from readers of the result, so no vector is masked. Everything
else is as at a site and a centre with the scheme ``local``.
"""

from __future__ import annotations

import math
import sys
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import ValidationError
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from consortium.base.formatting import count
from consortium.errors import StudyError
from consortium.opened_study import open_study
from consortium.python.privacy import Privacy
from consortium.python.result import data_frame
from consortium.python.scratch import (
    Img,
    Imgs,
    ParticipantTable,
    copy_beside,
    copy_surfaces,
    lay_out,
    scratch_folder,
    write_participants,
)
from consortium.python.simulated import publish
from consortium.report.privacy_report import SEEDED
from consortium.report.tables import plain_table
from consortium.space.grid import TEMPLATE
from consortium.study.nominal import nominal_size
from consortium.study.outlook import Outlook
from consortium.study.plan import Plan, make_plan
from consortium.study.reader import study_problem
from consortium.study.spec import Study
from site_agent.images.series import SiteDataset
from site_agent.loading.feature_vectors import FeatureDataset
from site_agent.loading.open import check_anybody, open_dataset

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame
import secrets
from collections.abc import Callable

import numpy as np

from consortium.algorithms.base import SiteData
from consortium.engine.session import Session
from consortium.errors import PrivacyError
from consortium.privacy.noise import GaussianSampler

HERE = "here"
"""Name of the one site."""


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A study of one data set whose participants are protected from all who see the result.

    Attributes
    ----------
    privacy_ : Privacy
        Maximum privacy loss of each participant by the last fit.
    result_ : StudyResult
        All that was released.
    n_participants_ : int
        Nominal number of participants of the fit, which is public: the true number rounded to a
        multiple of 10 below 100, and to two significant digits above.
    """

    _algorithm: ClassVar[str]
    _series: ClassVar[bool] = True
    epsilon: float
    delta: float
    mask: Img
    atlas: Img | None
    resolution: float
    data: Mapping[str, Any] | None
    analysis: Mapping[str, Any] | None
    random_state: int | None

    @property
    def privacy_so_far_(self) -> Privacy:
        """Total privacy loss of all fits of this object; clones and copies count separately.

        A fit is counted before its noise is drawn. So one that fails later is also counted.
        """
        if not self._charged:
            check_is_fitted(self, "privacy_")
        mine, *others = self._charged
        return mine.plus(*others)

    def plot(self, most: int = 10) -> Figure:
        """Draw the maps that stand out of the noise; see `StudyResult.plot`."""
        check_is_fitted(self, "result_")
        return self.result_.plot(most)

    @abstractmethod
    def _own(self, table: ParticipantTable | None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the fields of the study and of the analysis, for images or a table."""

    def _fit(
        self,
        given: Imgs | ParticipantTable,
        columns: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        """Plan, charge, release, and store only released values."""
        _warn_of_steps(self)
        table = given if isinstance(given, ParticipantTable) else None
        with scratch_folder() as scratch:
            study = self._study(scratch, table)
            opened = open_study(study, scratch)
            if isinstance(given, ParticipantTable):
                together = {**given.columns, **(columns or {})}
                folder = write_participants(scratch / "bids", together, len(given.values))
            else:
                folder = lay_out(scratch / "bids", given, study.data, columns, series=self._series)
            data = open_dataset(folder, opened, scratch / "cache")
            check_anybody(data)
            participants = nominal_size(len(data.lengths))
            volumes = round(sum(data.lengths) / max(len(data.lengths), 1))
            plan = make_plan(
                study, data.extent.shape([participants], [participants * volumes], "subject")
            )
            self._tell(plan, data)
            self._charge(plan)
            keys = system_keys if self.random_state is None else seeded_keys(self.random_state)
            sampler = None if self.random_state is None else f"{SEEDED} (seed {self.random_state})"
            session = carry_out(plan, data, keys)
            self.result_ = publish(scratch, opened, session, sampler)
        self.privacy_ = self.result_.privacy
        self.n_participants_ = plan.shape.subjects[0]

    def _forecast(self, participants: int, volumes: int) -> DataFrame:
        """Tabulate the forecast of a fit, which requires no data."""
        with scratch_folder() as scratch:
            study = self._study(scratch)
            extent = open_study(study, scratch).space.extent
        plan = make_plan(study, extent.shape([participants], [participants * volumes], "subject"))
        table = Outlook(plan).nearby
        assert table is not None  # noqa: S101 - for the type checker
        plain = plain_table(table)
        return data_frame(plain.columns, plain.rows)

    def _study(self, folder: Path, table: ParticipantTable | None = None) -> Study:
        """Return the study of one site for the parameters, with its public files in a folder."""
        fields, analysis = self._own(table)
        given = copy_surfaces(folder, self.data or {})
        voxels = {"resolution": self.resolution, "mask": TEMPLATE}
        data: dict[str, Any] = {} if given.get("mesh") else voxels
        if not (isinstance(self.mask, str) and self.mask == TEMPLATE):
            data["mask"] = copy_beside(folder, self.mask, "mask")
        if self.atlas is not None:
            data["atlas"] = copy_beside(folder, self.atlas, "atlas")
        values = {
            "study": type(self).__name__.lower(),
            "sites": [HERE],
            "data": _joined("data", data, given),
            "privacy": {
                "unit": "subject",
                "epsilon": self.epsilon,
                "delta": self.delta,
                "scheme": "local",
                "colluding_sites": 0,
            },
            "algorithm": self._algorithm,
            "analysis": _joined("analysis", analysis, self.analysis),
            **fields,
        }
        try:
            return Study.model_validate(values)
        except ValidationError as error:
            raise StudyError(f"{type(self).__name__}: {study_problem(error, values)}") from error

    def _tell(self, plan: Plan, data: SiteDataset | FeatureDataset) -> None:
        """Warn the data's owner of excluded participants and of wrong stated numbers."""
        sentences = list[str]()
        left_out = data.survey.skipped
        if left_out:
            sentences.append(
                f"{count(len(left_out), 'participant')} left out: {left_out[0].detail}"
            )
        sentences += plan.analysis.compare(0, data)
        for sentence in sentences:
            warnings.warn(f"Only for you, not released: {sentence}", stacklevel=4)

    def _charge(self, plan: Plan) -> None:
        """Count the loss of the fit in advance, and warn of a fit without protection."""
        privacy = plan.study.privacy
        planned = Privacy(plan.epsilon, privacy.delta, plan.mu, privacy.unit)
        if self.random_state is not None:
            planned = Privacy(math.inf, privacy.delta, math.inf, privacy.unit, seeded=True)
            warnings.warn(
                "This fit protects no participant: its noise comes from a seed and can be drawn "
                "again. Set random_state=None for a release.",
                stacklevel=4,
            )
        before = [each for each in self._charged if each.delta == privacy.delta]
        self._charged = (*self._charged, planned)
        if before:
            together = planned.plus(*before)
            warnings.warn(
                f"This is fit {len(self._charged)} of this estimator, and each one costs: if all "
                f"are over the same participants, they cost together: {together}.",
                stacklevel=4,
            )

    _charged: tuple[Privacy, ...] = ()


def _warn_of_steps(estimator: PrivateEstimator) -> None:
    """Warn if a pipeline that calls `fit` has earlier steps that learn without noise.

    scikit-learn gives a step no reference to its pipeline, so it is searched among the callers.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        pipeline = frame.f_locals.get("self")
        if isinstance(pipeline, Pipeline):
            names = [*_learning(pipeline, estimator)]
            if names:
                warnings.warn(
                    f"The pipeline's steps {', '.join(names)} learn from the participants without "
                    "noise, so what it returns is not private, although this fit is. Fit them on "
                    "public data, or state their numbers.",
                    stacklevel=5,
                )
            return
        frame = frame.f_back


def _learning(pipeline: Pipeline, last: PrivateEstimator) -> Iterator[str]:
    """Yield the names of the steps before one that learn from data and are not private."""
    for name, step in pipeline.steps:
        if step is last or isinstance(step, PrivateEstimator):
            return
        if step not in (None, "passthrough") and get_tags(step).requires_fit:
            yield f"'{name}'"


def _joined(name: str, own: Mapping[str, Any], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Merge further fields of a study with those that are parameters."""
    twice = sorted(own.keys() & (given or {}).keys())
    if twice:
        raise StudyError(
            f"{name}: '{twice[0]}' is set by a parameter of its own. Give it only there."
        )
    return {**own, **(given or {})}


Keys = Callable[[], bytes]
"""Returns 32 bytes for one round's noise."""


def system_keys() -> bytes:
    """Yield keys from the operating system's random numbers, each used once and never stored."""
    return secrets.token_bytes(32)


def seeded_keys(seed: int) -> Keys:
    """Yield keys from a seed, which any party can make again: they protect no participant.

    Parameters
    ----------
    seed : int
    """
    generator = np.random.default_rng(seed)
    return lambda: generator.bytes(32)


def carry_out(plan: Plan, data: SiteData, keys: Keys) -> Session:
    """Carry out every round of an estimator; the result contains only released values.

    Parameters
    ----------
    plan : Plan
        Plan of one site, with the scheme ``local``.
    data : SiteData
    keys : callable
        Returns a fresh key for each round.

    Raises
    ------
    PrivacyError
        If the plan is of another kind.
    """
    privacy = plan.study.privacy
    if len(plan.study.sites) != 1 or privacy.scheme != "local":
        raise PrivacyError(
            f"A plan of {len(plan.study.sites)} sites with scheme {privacy.scheme} can't be "
            "carried out in one place. Plan one site with scheme local."
        )
    statistics = plan.analysis.statistics
    session = Session(plan)
    while session.pending is not None:
        query = session.pending
        mechanism = session.stage.mechanism
        local = statistics[query.statistic]
        statistic = local(plan.analysis, data, query, mechanism.bound)
        part = data.units / plan.shape.units[0]
        share = mechanism.protect(0, statistic, GaussianSampler(keys()), part)
        session.accept(mechanism.release(share.masked, [share.opened]), [0])
    return session
