"""Appendix B.1 of Bayesian coordinate differential privacy: the mean of dependent entries.

``python -m benchmarks.replication.coordinate`` prints a table and writes
docs/images/coordinate.png. Everybody keeps ε = 2 for a participant and a Bayesian level of 0.2 for
the first two of ten entries. The published mechanisms do so without δ, ours at δ = 1e-5.
"""

from functools import cache

import numpy as np
from scipy.special import gammaln

from benchmarks.replication.drawing import IMAGES
from benchmarks.studies import result_of, study_of
from benchmarks.timing import show
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Array, Extent, Release
from consortium.errors import PrivacyError
from consortium.privacy.bayesian import alone_level, bayesian_level
from consortium.study.plan import make_plan

ENTRIES, SECRET, PERSONS = 10, 2, 10_000
STRICT, WHOLE = 0.2, 2.0
SITES, TRIALS = 4, 200
DEPENDENCES = (0.0, 0.001, 0.003, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1.0)
VIEWS = (("secret", SECRET), ("open", ENTRIES - SECRET))
CURVES = {
    "ldp": ("everything at 0.2, locally", "C7:"),
    "printed": ("published, as printed", "C3v-"),
    "corrected": ("published, corrected", "C1s-"),
    "tight": ("published, our conversion", "C4x-"),
    "record": ("this project, randomize: record", "C2^-"),
    "mean": ("this project, randomize: mean", "C0o-"),
}


def persons(q: float, generator: np.random.Generator) -> Array:
    """Draw from equation 60: entries of -1 and 1 that are all one with probability q."""
    x = generator.integers(0, 2, (PERSONS, ENTRIES)) * 2.0 - 1
    equal = generator.random(PERSONS) < q
    x[equal] = x[equal, :1]
    return x


def channel_radius(alpha: float, radius: float, size: int, *, printed: bool = False) -> float:
    """Return B of Mechanism 2, which as printed is twice that of an unbiased output."""
    sphere = np.sqrt(np.pi) / 2 * size * np.exp(gammaln((size + 1) / 2) - gammaln(size / 2 + 1))
    return float((2 if printed else 1) * radius * sphere / np.tanh(alpha / 2))


def channel(x: Array, alpha: float, g: np.random.Generator, *, printed: bool = False) -> Array:
    """Apply Mechanism 2 (Duchi et al.) to the rows of x, whose norms are at most √D."""
    count, size = x.shape
    radius, norms = np.sqrt(size), np.linalg.norm(x, axis=1)
    toward = np.where(g.random(count) < 0.5 + norms / (2 * radius), 1.0, -1.0)
    honest = np.where(g.random(count) < 1 / (1 + np.exp(-alpha)), 1.0, -1.0)
    z = g.standard_normal((count, size))
    side = np.sign(np.einsum("ij,ij->i", z, x)) * toward * honest
    lengths = channel_radius(alpha, radius, size, printed=printed) / np.linalg.norm(z, axis=1)
    return z * (side * lengths)[:, None]


def mean_mechanism(
    x: Array, levels: Array, g: np.random.Generator, *, printed: bool = False
) -> Array:
    """Average Mechanism 1 over participants in rows, within [-1, 1]; steps of zero are skipped."""
    size = x.shape[1]
    total, weights = np.zeros(size), np.zeros(size)
    for k, step in enumerate(np.diff(levels, prepend=0.0)):
        if step > 0:
            weight = step**2 / (size - k)
            total[k:] += weight * channel(x[:, k:], step, g, printed=printed).mean(axis=0)
            weights[k:] += weight
    return np.clip(total / weights, -1, 1)


def published_levels(q: float) -> Array:
    """Return Theorem 2's c with ζ = (1 + q)/2."""
    highest = np.log((np.exp((1 + q) / 2 * STRICT) + q - 1) / q) if q else WHOLE
    last = min(highest, WHOLE)
    first = last if last <= STRICT else STRICT - np.log(1 + q * np.exp(last) - q)
    return np.repeat([first, last], [SECRET, ENTRIES - SECRET])


def published_error(levels: Array) -> float:
    """Return the sum in equation 17."""
    steps = np.diff(levels, prepend=0.0) ** 2 / np.arange(ENTRIES, 0, -1)
    return float(np.sum(1 / np.cumsum(steps)))


def tight_levels(q: float) -> Array:
    """Return levels of Mechanism 1 by the conversion of `privacy.bayesian`, at its least error."""
    candidates = []
    for whole in np.linspace(STRICT, WHOLE, 200):
        first = _alone(float(whole), q)
        if first is not None:
            candidates.append(np.repeat([first, whole], [SECRET, ENTRIES - SECRET]))
    return min(candidates, key=published_error)


def _alone(whole: float, q: float) -> float | None:
    try:
        level = alone_level(STRICT, whole, q)
    except PrivacyError:
        return None
    return level if level > 0.01 else None


@cache
def deviations(q: float, randomize: str) -> tuple[float, ...]:
    """Return the noise of every entry in our release, with the best ε per participant for q."""
    found = []
    for whole in np.linspace(STRICT, WHOLE, 60):
        level = _alone(float(whole), q)
        if level is not None:
            found.append(_planned(float(whole), min(level, float(whole)), randomize))
    return tuple(min(found, key=lambda row: float(np.sum(np.square(np.array(row))))))


def _planned(whole: float, level: float, randomize: str) -> Array:
    asked = {"levels": {"secret": level}, "protects": "entry", "randomize": randomize}
    study = study_of("coordinate", asked, SITES, whole, data={}, views=VIEWS)
    sizes = (PERSONS // SITES,) * SITES
    shape = Extent(ENTRIES, 0, VIEWS).shape(sizes, sizes, "subject")
    (stage,) = make_plan(study, shape).stages
    noise = stage.mechanism.noise
    entries, sites = stage.release.entries, tuple(range(SITES))
    release = Release(np.zeros(entries), noise.aggregate(), sites)
    if stage.mechanism.each:
        release = Release(np.zeros((SITES, entries)), SITES * noise.local[0], sites)
    found = result_of(REGISTRY["coordinate"](study.analysis, shape), lambda _: release)
    return found.arrays["noise"][:, 0]


def errors(q: float, seed: int) -> dict[str, float]:
    """Return the squared distance of every method's mean from the participants' own."""
    g = np.random.default_rng([seed, round(1e6 * q)])
    x = persons(q, g)
    mean = x.mean(axis=0)
    levels = published_levels(q)
    found = {
        "ldp": np.clip(channel(x, STRICT, g).mean(axis=0), -1, 1),
        "printed": mean_mechanism(x, levels, g, printed=True),
        "corrected": mean_mechanism(x, levels, g),
        "tight": mean_mechanism(x, tight_levels(q), g),
    }
    for randomize in ("record", "mean"):
        noise = np.array(deviations(q, randomize)) * g.standard_normal(ENTRIES)
        found[randomize] = np.clip(mean + noise, -1, 1)
    return {key: float(np.sum((estimate - mean) ** 2)) for key, estimate in found.items()}


def draw(curves: dict[str, Array]) -> str:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(5.5, 3.6))
    for key, (label, style) in CURVES.items():
        low, middle, high = np.quantile(curves[key], [0.25, 0.5, 0.75], axis=1)
        axis.plot(DEPENDENCES, middle, style, label=label, markersize=4, linewidth=1.2)
        axis.fill_between(DEPENDENCES, low, high, color=style[:2], alpha=0.2, linewidth=0)
    axis.set(xlabel="dependence q", ylabel="squared error, median of runs", yscale="log")
    axis.set_xscale("symlog", linthresh=1e-3, linscale=0.3)
    axis.set_xlim(-1e-4, 1.1)
    axis.grid(visible=True, alpha=0.3)
    axis.legend(fontsize=6, loc="center left")
    figure.tight_layout()
    path = IMAGES / "coordinate.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return str(path)


def main() -> None:
    curves: dict[str, list[list[float]]] = {key: [] for key in CURVES}
    rows = []
    for q in DEPENDENCES:
        runs = [errors(q, seed) for seed in range(TRIALS)]
        for key, values in curves.items():
            values.append([run[key] for run in runs])
        first, last = published_levels(q)[[0, -1]]
        true = bayesian_level(float(first), float(last), q)
        cells = [f"{np.median(curves[key][-1]):.2g}" for key in CURVES]
        rows.append([f"{q:g}", f"{first:.3f}", f"{last:.3f}", f"{true:.3f}", *cells])
    show(
        f"squared error, median of {TRIALS} runs, d = 10, n = 10,000; Bayesian level 0.2, ε = 2",
        ["q", "c_1", "c_d", "true level of c", *CURVES],
        rows,
    )
    print(draw({key: np.array(values) for key, values in curves.items()}))


if __name__ == "__main__":
    main()
