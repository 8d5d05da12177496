"""The privacy loss of the participants of a result, as a value that can be added."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from consortium.base.formatting import number
from consortium.errors import PrivacyError
from consortium.privacy.bounds import Unit
from consortium.privacy.gdp import compose, epsilon_of
from consortium.report.privacy_report import SEEDED, PrivacyReport

_UNITS = {
    "subject": "one participant with all their data",
    "timepoint": "one volume of one participant",
}


@dataclass(frozen=True)
class Privacy:
    """Maximum privacy loss of a release.

    Parameters
    ----------
    epsilon : float
        ε at ``delta``, against the centre and the sites that may join it: the larger of a
        report's two. Infinite if no participant is protected.
    delta : float
        δ.
    mu : float
        μ of Gaussian differential privacy, from which ε is computed.
    unit : {'subject', 'timepoint'}
        Difference of neighbouring data sets: a participant, or one volume.
    seeded : bool
        Whether the noise can be drawn again from a seed. It then protects no participant.
    report : PrivacyReport, optional
        The whole account of a study: both guarantees, every release, every site.

    Examples
    --------
    >>> one = Privacy(epsilon=1.0, delta=1e-5, mu=0.2654, unit="subject")
    >>> print(one)
    ε = 1 at δ = 1e-05 (μ = 0.265) for one participant with all their data
    >>> print(one.plus(one))
    ε = 1.45 at δ = 1e-05 (μ = 0.375) for one participant with all their data
    """

    epsilon: float
    delta: float
    mu: float
    unit: Unit
    seeded: bool = False
    report: PrivacyReport | None = field(default=None, repr=False, compare=False)

    @property
    def protects(self) -> bool:
        """Whether it is a promise at all."""
        return math.isfinite(self.epsilon)

    def plus(self, *others: Privacy) -> Privacy:
        """Return what several releases over the same participants cost together.

        The composition is exact and adaptive: μ is the root of the sum of squares, whatever the
        order, and whether or not a later release was chosen after an earlier one was seen.

        Parameters
        ----------
        *others : Privacy
            Of the same unit and δ.

        Raises
        ------
        PrivacyError
            If units or δ differ.

        Examples
        --------
        >>> one = Privacy(epsilon=1.0, delta=1e-5, mu=0.2654, unit="subject")
        >>> round(one.plus(one, one).mu / one.mu, 3)
        1.732
        """
        parts = (self, *others)
        if len({(part.unit, part.delta) for part in parts}) > 1:
            raise PrivacyError(
                "Releases of different units or δ can't be added. Make them with one unit and "
                "one delta."
            )
        mu = compose(part.mu for part in parts)
        epsilon = epsilon_of(mu, self.delta)
        return Privacy(epsilon, self.delta, mu, self.unit, any(part.seeded for part in parts))

    def __str__(self) -> str:
        who = _UNITS[self.unit]
        if self.seeded:
            return (
                "The noise comes from a seed and can be drawn again: it protects no participant "
                f"({who})"
            )
        if not self.protects:
            return f"No privacy: it protects no participant ({who})"
        text = f"ε = {number(self.epsilon)} at δ = {self.delta:g} (μ = {number(self.mu)})"
        return f"{text} for {who}"


def privacy_of(report: PrivacyReport) -> Privacy:
    """Return the loss of a privacy report, which is infinite for seeded noise.

    Parameters
    ----------
    report : PrivacyReport
    """
    seeded = report.sampler.startswith(SEEDED)
    coalition = report.guarantees.coalition
    epsilon, mu = (math.inf, math.inf) if seeded else (coalition.epsilon, coalition.mu)
    return Privacy(
        epsilon=epsilon, delta=report.delta, mu=mu, unit=report.unit, seeded=seeded, report=report
    )
