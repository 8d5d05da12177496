"""Privacy level of one coordinate if the coordinates of a participant depend on each other.

A mechanism that is (c, δ)-private for a change of coordinate i only and (ε, δ)-private for the
whole participant is, for every prior with

    TV(law of the other coordinates | x_i in S, the same | x_i in S') <= q for all S and S',

Bayesian coordinate private (Aliakbarpour et al. 2024, Definition 4, with a δ): for all S, S', R

    P(M in R | x_i in S) <= e^L P(M in R | x_i in S') + δ,    e^L = (1 - q) e^c + q e^ε.

Proof. The two laws of the others share a component ν of weight 1 - q (or more). Over ν the two
laws of M are mixtures over x_i only, hence (c, δ)-close. The rest is (ε, δ)-close to any law that a
participant can cause. Advanced joint convexity (Balle, Barthe and Gaboardi 2018, Theorem 2)
combines the two, with δ = (1 - q) δ + q δ. For δ = 0 the published Proposition 4 states the larger
c + log(1 - q + q e^ε), and nothing for δ > 0.
"""

import math

from consortium.errors import PrivacyError


def bayesian_level(alone: float, whole: float, dependence: float) -> float:
    """Return L, the level of a coordinate together with all coordinates that depend on it.

    Raises PrivacyError if the levels or q are out of range.

    Parameters
    ----------
    alone : float
        c >= 0, the coordinate's level with all others fixed.
    whole : float
        ε >= c of the whole participant; both at one δ.
    dependence : float
        q from 0 (the others are independent of it) to 1.
    """
    _check(whole, dependence)
    if not 0 <= alone <= whole:
        raise PrivacyError(
            f"A coordinate's level must be between 0 and the participant's {whole}, got {alone}. "
            "Correct it."
        )
    # Relative to e^ε, which may be large.
    return whole + math.log1p((1.0 - dependence) * math.expm1(alone - whole))


def alone_level(bayesian: float, whole: float, dependence: float) -> float:
    """Return c for a required Bayesian level of a coordinate: the inverse of `bayesian_level`.

    Raises PrivacyError if no level is low enough, because the others depend on it too strongly.
    """
    _check(whole, dependence)
    if bayesian >= whole:
        return whole
    inner = math.exp(bayesian - whole) - dependence
    if dependence == 1.0 or inner < (1.0 - dependence) * math.exp(-whole):
        raise PrivacyError(
            f"A Bayesian level of {bayesian} can't be kept with ε = {whole} for the participant "
            f"and a dependence of {dependence}. Lower the participant's ε."
        )
    return max(0.0, whole + math.log(inner / (1.0 - dependence)))


def _check(whole: float, dependence: float) -> None:
    if not (math.isfinite(whole) and whole >= 0):
        raise PrivacyError(
            f"The participant's ε must be a finite number of at least 0, got {whole}."
        )
    if not 0 <= dependence <= 1:
        raise PrivacyError(f"The dependence must be between 0 and 1, got {dependence}. Correct it.")
