"""Time courses with bursts: generalized autoregressive conditional heteroscedasticity.

Section 6.5 of the dissertation simulates its sources with this model. The courses are white and
of mean zero, but their variance comes in bursts, so that they are super-Gaussian, which is what
temporal ICA needs.
"""

import numpy as np
from numpy.typing import NDArray

Courses = NDArray[np.float32]

SHOCK = 0.2
"""α, weight of the last squared value; with `PERSISTENCE` it gives a kurtosis of 5.2."""
PERSISTENCE = 0.7
"""β, weight of the last variance."""
BURN_IN = 50
"""Samples thrown away at the start; a start in the mean variance is forgotten as (α + β)^50."""


def garch_courses(
    generator: np.random.Generator,
    sources: int,
    samples: int,
    *,
    shock: float = SHOCK,
    persistence: float = PERSISTENCE,
) -> Courses:
    """Draw independent GARCH(1,1) courses of one subject.

    Parameters
    ----------
    sources : int
        R.
    samples : int
        T.
    shock, persistence : float
        α and β of `garch_filter`.

    Returns
    -------
    array, shape (R, T)
        Mean 0 and variance 1 (of the model, not of the sample).
    """
    innovations = garch_innovations(generator, sources, samples)
    return garch_filter(innovations, shock=shock, persistence=persistence).T.copy()


def garch_innovations(generator: np.random.Generator, sources: int, samples: int) -> Courses:
    """Draw the white noise that drives `garch_filter`, shape (`BURN_IN` + samples, sources)."""
    return generator.standard_normal((BURN_IN + samples, sources), dtype=np.float32)


def garch_filter(
    innovations: Courses, *, shock: float = SHOCK, persistence: float = PERSISTENCE
) -> Courses:
    """Turn white noise z into x_t = s_t z_t with s²_t = (1 − α − β) + α x²_{t−1} + β s²_{t−1}.

    Parameters
    ----------
    innovations : array, shape (`BURN_IN` + T, ...)
        Standard normal; time runs along the first axis, all else is independent.
    shock : float
        α ≥ 0.
    persistence : float
        β ≥ 0, with α + β < 1.

    Returns
    -------
    array, shape (T, ...)

    Raises
    ------
    ValueError
        If the model has no finite variance.
    """
    if not (shock >= 0 and persistence >= 0 and shock + persistence < 1):
        msg = f"shock {shock} and persistence {persistence} must be at least 0 and sum below 1."
        raise ValueError(msg)
    base = np.float32(1.0 - shock - persistence)
    courses = np.empty_like(innovations)
    variance = np.ones(innovations.shape[1:], dtype=np.float32)
    for course, noise in zip(courses, innovations, strict=True):
        np.multiply(np.sqrt(variance), noise, out=course)
        variance = base + np.float32(shock) * course**2 + np.float32(persistence) * variance
    return courses[BURN_IN:]
