"""A simulated participant's resting scan: networks, motion, drift and noise on a grey brain.

Time courses with bursts: generalized autoregressive conditional heteroscedasticity.

Section 6.5 of the dissertation simulates its sources with this model. The time series are white and
of mean zero, but their variance comes in bursts. So they are super-Gaussian, as temporal ICA
requires.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, signal, sparse

from consortium.simulation.networks import Blob, sum_of_blobs
from consortium.space.grid import Grid

Array = NDArray[np.float32]

BASELINE = 1000.0
"""Scanner units in the middle of the brain."""
MOTION = ("trans_x", "trans_y", "trans_z", "rot_x", "rot_y", "rot_z")
"""Confound columns: mm and radians, as fMRIPrep names them."""
STEP = np.array([0.015, 0.015, 0.02, 3e-4, 2e-4, 2e-4])
"""Standard deviation of one step of the head's random walk."""
RESTORING = 0.05
"""Share of the way back to its place that the head goes in each step."""
HEAD_RADIUS = 50.0
"""In mm; turns a rotation into a displacement (J. D. Power et al., NeuroImage 59, 2012)."""
VENTRICLES = (Blob(-10, -26, 20, 9), Blob(10, -26, 20, 9))
TRENDS = 2
"""Slow courses: a line and a parabola, each with its own smooth pattern in space."""


@dataclass(frozen=True)
class SignalLevels:
    """Strengths of the networks, motion, drift and noise of simulated scans."""

    signal: float = 0.02
    """Standard deviation of a network at its peak, as a part of the baseline."""
    variability: float = 0.2
    """Standard deviation of the logarithm of each subject's own network strengths."""
    noise: float = 0.01
    """Standard deviation of a voxel's noise, as a part of the baseline."""
    drift: float = 0.01
    """Size of the slow trends, as a part of the baseline."""
    motion: float = 1.0
    """Factor on the head's random walk."""
    shock: float = 0.2
    persistence: float = 0.7
    """α and β of the networks' GARCH courses; a larger α makes them more super-Gaussian."""
    autocorrelation: float = 0.0
    """If not 0, courses are Gaussian instead, and each value has this correlation with the next."""
    weakest: float = 1.0
    """Strength of the last network over that of the first; between them it falls evenly."""


@dataclass(frozen=True, eq=False)
class MadeUpAnatomy:
    """Anatomy that all simulated participants share, on D voxels."""

    grid: Grid
    baseline: Array
    """Shape (D,). Mean intensity, fainter towards the edge of the brain."""
    maps: Array
    """Shape (D, R). Networks."""
    edges: Array
    """Shape (D, 6). Change of intensity per mm of translation and per radian of rotation."""
    fluid: Array
    """Shape (D,). Ventricles."""
    smoother: Any
    """Turns white noise into noise that neighbours share, of the same variance."""


@dataclass(frozen=True, eq=False)
class Scan:
    """A simulated participant's scan and its true networks."""

    volumes: Array
    """Shape (D, T)."""
    courses: Array
    """Shape (R, T). What multiplies the maps, in units of ``volumes``."""
    confounds: dict[str, NDArray[Any]]
    """Columns of length T; NaN where fMRIPrep writes n/a."""


def anatomy(grid: Grid, maps: Array) -> MadeUpAnatomy:
    """Compute the arrays that all subjects' scans share."""
    smooth = ndimage.gaussian_filter(grid.mask.astype(np.float32), sigma=1.0) * grid.mask
    volume: Array = BASELINE * smooth / smooth.max()
    fluid = sum_of_blobs(grid.coordinates, VENTRICLES).astype(np.float32)
    baseline = volume[grid.mask]
    return MadeUpAnatomy(
        grid=grid,
        baseline=baseline,
        maps=maps,
        edges=_edges(grid, volume),
        fluid=fluid,
        smoother=_smoother(grid.mask),
    )


def scan(
    generator: np.random.Generator,
    anatomy: MadeUpAnatomy,
    volumes: int,
    levels: SignalLevels,
    weights: NDArray[np.float64] | None = None,
) -> Scan:
    """Simulate the scan of one participant.

    Parameters
    ----------
    generator : numpy.random.Generator
        The subject's own.
    volumes : int
        T.
    weights : array, shape (R,), optional
        Factors of this participant's network strengths.
    """
    features, rank = anatomy.maps.shape
    courses = _courses(generator, rank, volumes, levels)
    strength = np.exp(levels.variability * generator.standard_normal((rank, 1)))
    strength *= np.linspace(1.0, levels.weakest, rank)[:, None]
    if weights is not None:
        strength *= weights[:, None]
    courses = (levels.signal * BASELINE * strength * courses).astype(np.float32)
    motion = levels.motion * random_walk(generator, volumes)
    pulse = generator.standard_normal((1, volumes))
    trends = levels.drift * BASELINE * slow_trends(volumes)
    patterns = _patterns(generator, anatomy.grid)
    space = np.column_stack([anatomy.maps, anatomy.edges, anatomy.fluid, patterns])
    time = np.vstack([courses, motion, levels.drift * BASELINE * pulse, trends])
    white = generator.standard_normal((features, volumes), dtype=np.float32)
    data = anatomy.baseline[:, None] + space @ time.astype(np.float32)
    data += np.float32(levels.noise * BASELINE) * (anatomy.smoother @ white)
    return Scan(data, courses, confound_table(motion, data, anatomy.fluid))


def _courses(
    generator: np.random.Generator, rank: int, volumes: int, levels: SignalLevels
) -> NDArray[np.floating[Any]]:
    """Draw the networks' courses, shape (R, T), of variance 1."""
    if not levels.autocorrelation:
        return garch_courses(
            generator, rank, volumes, shock=levels.shock, persistence=levels.persistence
        )
    return autocorrelated_courses(generator, rank, volumes, levels.autocorrelation)


def autocorrelated_courses(
    generator: np.random.Generator, rank: int, volumes: int, correlation: float
) -> NDArray[np.float64]:
    """Draw Gaussian courses of first-order autoregression, shape (R, T), of variance 1."""
    fresh = generator.standard_normal((rank, volumes))
    fresh[:, 1:] *= np.sqrt(1.0 - correlation**2)
    return np.asarray(signal.lfilter([1.0], [1.0, -correlation], fresh, axis=1))


def random_walk(generator: np.random.Generator, volumes: int) -> NDArray[np.float64]:
    """Simulate head motion: a random walk that is drawn back, (6, T), in mm and radians."""
    steps = STEP[:, None] * generator.standard_normal((6, volumes))
    path = np.zeros((6, volumes))
    for now in range(1, volumes):
        path[:, now] = (1 - RESTORING) * path[:, now - 1] + steps[:, now]
    return path


def slow_trends(volumes: int) -> NDArray[np.float64]:
    """Return a simulated scan's drift: a line and a parabola of variance about 1, (`TRENDS`, T)."""
    time = np.linspace(-1, 1, volumes)
    degrees = np.arange(1, TRENDS + 1)
    trends = np.polynomial.legendre.legvander(time, TRENDS)[:, 1:] * np.sqrt(2 * degrees + 1)
    return np.asarray(trends.T)


def confound_table(
    motion: NDArray[np.float64], data: Array, fluid: Array
) -> dict[str, NDArray[Any]]:
    """Return the confounds that a preprocessing pipeline would have measured.

    They are the motion parameters, their differences and the framewise displacement. The latter two
    have no first value.
    """
    steps = np.diff(motion, axis=1, prepend=np.nan)
    table = dict(zip(MOTION, motion, strict=True))
    table |= {f"{name}_derivative1": step for name, step in zip(MOTION, steps, strict=True)}
    length = np.where(np.arange(6) < 3, 1.0, HEAD_RADIUS)
    table["framewise_displacement"] = length @ np.abs(steps)
    table["csf"] = fluid @ data / fluid.sum()
    table["global_signal"] = data.mean(axis=0)
    return table


def _edges(grid: Grid, volume: Array) -> Array:
    """Return the first-order change of the image by head motion: −∇I · d and −∇I · (ω × r)."""
    by_index = np.stack([np.gradient(volume, axis=axis)[grid.mask] for axis in range(3)], axis=1)
    slope = by_index @ np.linalg.inv(grid.affine[:3, :3])
    turning = np.cross(grid.coordinates, slope)
    return -np.column_stack([slope, turning]).astype(np.float32)


def _patterns(generator: np.random.Generator, grid: Grid) -> Array:
    """Draw one smooth pattern in space per slow trend, shape (D, `TRENDS`), of variance 1."""
    coarse = generator.standard_normal((TRENDS, 4, 4, 4))
    places = np.argwhere(grid.mask).T * 3.0 / (np.array(grid.shape)[:, None] - 1.0)
    drawn = [ndimage.map_coordinates(values, places, order=1) for values in coarse]
    patterns = np.stack(drawn, axis=1)
    return np.asarray(patterns / patterns.std(axis=0), dtype=np.float32)


def _smoother(mask: NDArray[np.bool_]) -> Any:
    """Add half of each of the six neighbours to a voxel; rows have Euclidean norm 1."""
    index = np.full(np.add(mask.shape, 2), -1)
    inner = index[1:-1, 1:-1, 1:-1]
    inner[mask] = np.arange(np.count_nonzero(mask))
    matrix = sparse.eye_array(np.count_nonzero(mask), dtype=np.float32, format="csr")
    for axis in range(3):
        for shift in (-1, 1):
            neighbour = np.roll(index, shift, axis)[1:-1, 1:-1, 1:-1][mask]
            rows = np.flatnonzero(neighbour >= 0)
            half = np.full(len(rows), 0.5, dtype=np.float32)
            matrix = matrix + sparse.csr_array((half, (rows, neighbour[rows])), shape=matrix.shape)
    norms = np.sqrt(matrix.multiply(matrix).sum(axis=1))
    return sparse.diags_array(1.0 / norms, dtype=np.float32) @ matrix


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

    Raises ValueError if the model has no finite variance.

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
