"""Figure 1 of data summarization under covariate shift, on simulated data with a built-in shift.

``python -m benchmarks.replication.summarize`` prints tables and writes docs/images/summarize.png.
Four owners have participants of one kind; the first also has some of another kind, which is the
kind of the consumer's participants. Every private curve is at its true ε (δ = 0.01, as in the
paper) for the consumer's participants, and once more for the summary's.
"""

import numpy as np

from benchmarks.replication.drawing import IMAGES
from benchmarks.replication.summarize_published import (
    DELTA,
    Mwem,
    Setting,
    ask_probability,
    printed_epsilon,
    protocol,
    pure_level,
)
from benchmarks.timing import show
from consortium.algorithms.base import Array
from consortium.algorithms.summarize.kernels.mean_embedding import (
    choose_points,
    draw_frequencies,
    fourier_features,
)
from consortium.privacy.gdp import mu_of

ENTRIES, OWNERS, FREQUENCIES, GAMMA = 10, 4, 70, 0.1
OTHERS, ALIKE, CONSUMER, SEED_SIZE = 4_000, 700, 300, 150
LARGEST, RUNS, STEPS = 100, 10, 5
ByMethod = dict[tuple[str, float], Array]
"""Results by method and ε."""
SIZES = (10, 20, 40, 70, 100)
EPSILONS = (1.4, 5.0, 15.0)
CURVES = {
    "greedy": ("greedy, not private", "k-"),
    "uniform": ("uniform sampling", "k--"),
    "exact": ("published, with exact hashes", "C7:"),
    "published": ("published, corrected", "C3v-"),
    "gaussian": ("the same, consumer's hash ours", "C1s-"),
    "ours": ("this project: simulated participants", "C0o-"),
}


def made(g: np.random.Generator) -> Setting:
    """Simulate two kinds of participants, mixtures of three groups with a shift between them.

    The public seed, which stays in the published protocol's hashes, is of the consumer's kind. No
    other seed harms it less: it is not in the final summary.
    """
    centres = g.uniform(-0.5, 0.5, (3, ENTRIES)) + 0.25 * g.standard_normal((2, 3, ENTRIES))

    def kind(which: int, count: int) -> Array:
        groups = centres[which, g.integers(3, size=count)]
        return np.clip(groups + 0.2 * g.standard_normal((count, ENTRIES)), -1, 1)

    persons = np.split(kind(0, OTHERS), OWNERS)
    persons[0] = np.vstack([persons[0], kind(1, ALIKE)])
    consumer = kind(1, CONSUMER)
    frequencies = draw_frequencies(ENTRIES, FREQUENCIES, (2 * GAMMA) ** -0.5, g)
    owners = [fourier_features(part.T, frequencies).T for part in persons]
    goal, seed = (
        fourier_features(part.T, frequencies).T for part in (consumer, kind(1, SEED_SIZE))
    )
    return Setting(owners, persons, consumer, goal, seed, frequencies)


def distance(one: Array, other: Array) -> float:
    """Return MMD² of equation 1 with the kernel itself."""

    def kernel(x: Array, y: Array) -> float:
        squares = np.sum(x**2, axis=1)[:, None] + np.sum(y**2, axis=1) - 2 * x @ y.T
        return float(np.exp(-GAMMA * squares).mean())

    return kernel(one, one) - 2 * kernel(one, other) + kernel(other, other)


def private(at: Setting, epsilon: float, kind: str, g: np.random.Generator) -> tuple[Array, int]:
    """Run either protocol with ε each for the consumer, the summary's hashes and the asking."""
    auction = pure_level(epsilon, LARGEST)
    first = (
        len(at.owners) / 2 + np.log(9) / auction
    )  # the best is asked nine times of ten, or more often

    def ask(rank: int) -> float:
        return ask_probability(rank, auction, first)

    if kind == "published":
        steps = min((400, 1656), key=lambda n: _mwem_error(at, epsilon, n))
        goal = Mwem(2 * FREQUENCIES, pure_level(epsilon, 2 * steps), g).release(at.goal, steps)
    else:
        goal = released_goal(at, epsilon, g)
    hashes = Mwem(2 * FREQUENCIES, 1e6, g)
    hashes.release(at.seed, 2_000)  # the seed is public
    hashes.level = pure_level(epsilon, 2 * STEPS * LARGEST)
    return protocol(at, goal, lambda s: hashes.release(s, STEPS), ask, LARGEST, g)


def released_goal(at: Setting, epsilon: float, g: np.random.Generator) -> Array:
    """Return the mean embedding of the consumer's participants as `summarize` releases it."""
    noise = 2 / mu_of(epsilon, DELTA) / len(at.goal)
    return at.goal.mean(axis=0) + noise * g.standard_normal(2 * FREQUENCIES)


def _mwem_error(at: Setting, epsilon: float, steps: int) -> float:
    """Return the distance from the true embedding; the published hash gets its best iterations."""
    g = np.random.default_rng(steps)
    mwem = Mwem(2 * FREQUENCIES, pure_level(epsilon, 2 * steps), g)
    return float(np.linalg.norm(mwem.release(at.goal, steps) - at.goal.mean(axis=0)))


def _mean(features: Array) -> Array:
    return features.mean(axis=0)


def _first(rank: int) -> float:
    return float(rank == 1)


def summaries(at: Setting, g: np.random.Generator) -> tuple[ByMethod, Array]:
    """Return the chosen participants by method and ε, and how many were asked for each of them.

    The greedy choice is without privacy, so its ε is 0.
    """
    plain = Setting(at.owners, at.persons, at.consumer, at.goal, at.seed[:0], at.frequencies)
    goal = at.goal.mean(axis=0)
    chosen = {("greedy", 0.0): protocol(plain, goal, _mean, _first, LARGEST, g)[0]}
    asked = []
    for epsilon in EPSILONS:
        count = LARGEST // len(at.owners)
        drawn = np.stack([part[g.integers(len(part), size=count)] for part in at.persons])
        chosen["uniform", epsilon] = drawn.swapaxes(0, 1).reshape(count * len(drawn), -1)
        chosen["exact", epsilon], _ = protocol(at, goal, _mean, _first, LARGEST, g)
        for kind in ("published", "gaussian"):
            chosen[kind, epsilon], seen = private(at, epsilon, kind, g)
            asked.append(seen / LARGEST)
        hidden = released_goal(at, epsilon, g)
        chosen["ours", epsilon] = choose_points(hidden, at.frequencies, LARGEST, g).T
    return chosen, np.array(asked).reshape(len(EPSILONS), 2)


def increases(chosen: ByMethod, consumer: Array) -> ByMethod:
    """Return the increase of MMD² over the greedy choice in %, at every size."""
    found = {
        key: np.array([distance(points[:p], consumer) for p in SIZES])
        for key, points in chosen.items()
    }
    base = found.pop(("greedy", 0.0))
    return {key: 100 * (values / base - 1) for key, values in found.items()}


def one_run(seed: int) -> tuple[ByMethod, Array]:
    """Increase of MMD² over the greedy choice in %, at every size, and how many were asked."""
    g = np.random.default_rng(seed)
    at = made(g)
    chosen, asked = summaries(at, g)
    return increases(chosen, at.consumer), asked


def draw(
    found: ByMethod,
    name: str = "summarize",
    ylabel: str = "increase of MMD² over greedy, %",
    yscale: str = "symlog",
) -> str:
    """Draw a panel for each ε as docs/images/NAME.png."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(EPSILONS), figsize=(4.0 * len(EPSILONS), 3.3), sharey=True)
    for axis, epsilon in zip(axes, EPSILONS, strict=True):
        for (kind, at), values in found.items():
            if at in (0.0, epsilon):
                label, style = CURVES[kind]
                axis.plot(SIZES, values, style, label=label, markersize=4, linewidth=1.2)
        if yscale == "symlog":
            axis.axhline(0, color="C7", linewidth=0.8)
        axis.set(title=f"true ε = {epsilon:g}", xlabel="points in the summary", yscale=yscale)
        axis.grid(visible=True, alpha=0.3)
    axes[0].set_ylabel(ylabel)
    axes[0].legend(fontsize=6)
    figure.tight_layout()
    path = IMAGES / f"{name}.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return str(path)


def main() -> None:
    runs = [one_run(seed) for seed in range(RUNS)]
    found = {key: np.mean([run[key] for run, _ in runs], axis=0) for key in runs[0][0]}
    asked = np.mean([seen for _, seen in runs], axis=0)
    rows = [
        [f"{epsilon:g}", kind, *(f"{value:.0f}" for value in values)]
        for (kind, epsilon), values in sorted(found.items(), key=lambda item: item[0][1])
    ]
    show("increase of MMD² over greedy in %, mean of runs", ["ε", "method", *map(str, SIZES)], rows)
    show(
        "participants asked for each that was chosen",
        ["ε", "published", "gaussian"],
        [[f"{e:g}", *(f"{x:.2f}" for x in row)] for e, row in zip(EPSILONS, asked, strict=True)],
    )
    print(f"The printed hash of the consumer's data (ε = 1.4 claimed): {printed_epsilon():.1f}")
    print(draw(found))


if __name__ == "__main__":
    main()
