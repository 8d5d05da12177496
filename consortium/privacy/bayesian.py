"""From the level of one coordinate alone to what it tells when coordinates depend on each other.

A mechanism that keeps the coordinate i alone at (c, δ) and the whole person at (ε, δ) is, for
every prior with

    TV(law of the other coordinates | x_i in S, the same | x_i in S') <= q for all S and S',

Bayesian coordinate private (Aliakbarpour et al. 2024, Definition 4, with a δ): for all S, S', R

    P(M in R | x_i in S) <= e^L P(M in R | x_i in S') + δ,    e^L = (1 - q) e^c + q e^ε.

Proof. The two laws of the others share a part ν of weight 1 - q (or more). Over that part the two
laws of M are mixtures over x_i alone, hence (c, δ)-close; what is left is (ε, δ)-close to anything
that a person can cause. Advanced joint convexity (Balle, Barthe and Gaboardi 2018, Theorem 2)
joins the two, with δ = (1 - q) δ + q δ. For δ = 0 the published Proposition 4 states the larger
c + log(1 - q + q e^ε), and nothing for δ > 0.
"""

import math

from consortium.errors import PrivacyError


def bayesian_level(alone: float, whole: float, dependence: float) -> float:
    """L, what an observer may learn of a coordinate through all that depends on it.

    Raises PrivacyError if the levels or q are out of range.

    Parameters
    ----------
    alone : float
        c >= 0, the coordinate's level with all others held.
    whole : float
        ε >= c of the whole person; both at one δ.
    dependence : float
        q from 0 (the others tell nothing of it) to 1.
    """
    _check(whole, dependence)
    if not 0 <= alone <= whole:
        raise PrivacyError(
            f"A coordinate's level of {alone} is not between 0 and the participant's {whole}; "
            "lower it."
        )
    # Relative to e^ε, which may be large.
    return whole + math.log1p((1.0 - dependence) * math.expm1(alone - whole))


def alone_level(bayesian: float, whole: float, dependence: float) -> float:
    """c, which keeps a coordinate at a wanted Bayesian level: the inverse of `bayesian_level`.

    Raises PrivacyError if no level does, because the others tell too much of the coordinate.
    """
    _check(whole, dependence)
    if bayesian >= whole:
        return whole
    inner = math.exp(bayesian - whole) - dependence
    if dependence == 1.0 or inner < (1.0 - dependence) * math.exp(-whole):
        raise PrivacyError(
            f"A Bayesian level of {bayesian} can't be kept with ε = {whole} for the participant "
            f"and a dependence of {dependence}; lower the participant's ε."
        )
    return max(0.0, whole + math.log(inner / (1.0 - dependence)))


def _check(whole: float, dependence: float) -> None:
    if not (math.isfinite(whole) and whole >= 0):
        raise PrivacyError(f"ε = {whole} is no promise for a participant; give a finite number.")
    if not 0 <= dependence <= 1:
        raise PrivacyError(f"A dependence of {dependence} is not between 0 and 1; correct it.")
