"""ICA on the dissertation's simulation: the cost of a round, the whole run, and accuracy."""

import warnings
from collections.abc import Callable

import numpy as np

from benchmarks.peers import installed
from benchmarks.studies import SITES, ica_alone, simulation, study
from benchmarks.table import Row, alternate
from benchmarks.timing import best, show
from consortium.simulation.simulation import Simulation
from tests.support.chapter import chapter
from tests.support.gain_index import gain_index

SUBJECTS = 1024
OF_A_ROUND, FEW = 1024, 64


def one_round() -> list[Row]:
    """Time a private round over four sites, and the bare products and tanh that it requires."""
    data, rows = chapter(1, subjects=OF_A_ROUND), []
    for unit in ("timepoint", "subject"):
        sim = simulation(data, study(unit, 8.0, rounds=60, score="tanh"))
        sim.step()  # PCA
        sim.step()  # the first ICA round reduces the data
        whitening = _whitening(sim)
        blocks = [site.reduced(whitening) for site in sim._data]
        unmixing = np.eye(20, dtype=np.float32)

        def bare(blocks: list[np.ndarray], unmixing: np.ndarray) -> None:
            for block in blocks:
                z = unmixing @ block
                np.tanh(z) @ z.T

        wide = [block.astype(np.float64) for block in blocks]
        ours, double, single = alternate(
            sim.step,
            lambda: bare(wide, np.eye(20)),  # noqa: B023 - called in this turn
            lambda: bare(blocks, unmixing),  # noqa: B023
            repeats=15,
        )
        work = f"private ICA round, S = 4, N = {250 * OF_A_ROUND:,}, R = 20, unit {unit}"
        rows += [
            Row(work, ours, "its products and tanh, float64", double, "≤ 1.15"),
            Row(work, ours, "its products and tanh, float32", single, ""),
        ]
    return rows


def beside_peers() -> list[Row]:
    """Time the run without privacy from whitened data to its end, and peers on the pooled data."""
    data = chapter(1, subjects=FEW)
    sim = simulation(data, study("subject", None, score="tanh"))
    sim.step()
    whitening = _whitening(sim)
    for site in sim._data:
        site.reduced(whitening)
    pooled = np.hstack([site.reduced(whitening) for site in sim._data]).astype(float)
    (ours,) = alternate(sim.run, repeats=1)
    assert sim.session.result is not None
    gain = gain_index(sim.session.result.arrays["unmixing"] @ data.mixing)
    work = f"ICA to its end, N = {pooled.shape[1]:,}, R = 20, no noise: gain index {gain:.3f}"
    rows = []
    for name, peer in (("MNE", _infomax), ("scikit-learn", _fast_ica)):
        if installed(name) is None:
            rows.append(Row(work, ours, name, None, "≤ 1.15"))
            continue
        seconds, unmixing = _once(peer, pooled)
        gain = gain_index(unmixing @ whitening.T @ data.mixing)
        rows.append(Row(work, ours, f"{name}, pooled: {gain:.3f}", seconds, "≤ 1.15"))
    return rows


def _once(peer: Callable[[np.ndarray], np.ndarray], pooled: np.ndarray) -> tuple[float, np.ndarray]:
    found: list[np.ndarray] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (each,) = alternate(lambda: found.append(peer(pooled)), repeats=1)
    return each, found[0]


def _infomax(pooled: np.ndarray) -> np.ndarray:
    import mne

    return np.asarray(mne.preprocessing.infomax(pooled.T, random_state=0, verbose="error"))


def _fast_ica(pooled: np.ndarray) -> np.ndarray:
    from sklearn.decomposition import FastICA

    return np.asarray(FastICA(whiten=False, random_state=0).fit(pooled.T).components_)


def _whitening(sim: Simulation) -> np.ndarray:
    """Return the whitening of the present query to the sites."""
    assert sim.session.pending is not None
    return np.asarray(sim.session.pending.arguments["whitening"])


def whole_run() -> None:
    """Time the non-private run to its end, and MNE's infomax on the pooled data."""
    import mne

    data = chapter(1, subjects=SUBJECTS)
    sites, rows = [data.site(i, "subject") for i in range(len(SITES))], []
    for score in ("volatility", "tanh"):
        sim = simulation(data, study("subject", None, score=score))
        sim.step()
        whitening = _whitening(sim)
        sites[0].reduced(whitening)
        for site in sim._data:  # the same start as the peer: data reduced and whitened
            site.reduced(whitening)
        seconds = best(sim.run, 1)
        assert sim.session.result is not None
        gain = gain_index(sim.session.result.arrays["unmixing"] @ data.mixing)
        rows.append([f"ours, {score}", f"{seconds:.2f}", f"{gain:.4f}"])
    pooled = np.hstack([site.reduced(whitening) for site in sim._data]).astype(float)
    found: list[np.ndarray] = []

    def peer() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(mne.preprocessing.infomax(pooled.T, random_state=0, verbose="error"))

    seconds = best(peer, 1)
    gain = gain_index(found[0] @ whitening.T @ data.mixing)
    rows.append(["MNE infomax, pooled", f"{seconds:.2f}", f"{gain:.4f}"])
    show(
        "Whole ICA without privacy, whitened data to end, M = 1024",
        ["", "seconds", "gain index"],
        rows,
    )


def private() -> None:
    """Measure the gain index against ε of the ICA stage, with exact PCA, against the coalition."""
    data, rows = chapter(1, subjects=SUBJECTS), []
    for unit, epsilons in (("timepoint", (1.0, 0.5, 0.1)), ("subject", (8.0, 4.0, 2.0, 1.0))):
        for epsilon in epsilons:
            gains = [ica_alone(data, unit, epsilon, seed) for seed in range(3)]
            rows.append([unit, f"{epsilon:g}", ", ".join(f"{gain:.4f}" for gain in gains)])
    show(
        "Private ICA stage, M = 1024, δ = 1e-5, S = 4, one colluding site; three seeds",
        ["unit", "ε against the coalition", "gain index"],
        rows,
    )


def optimizers() -> None:
    """Compare the three optimizers at one budget."""
    data, rows = chapter(1, subjects=SUBJECTS), []
    for unit, optimizer, rounds, epsilon in (
        ("timepoint", "rotation", 30, 1.0),
        ("timepoint", "gradient", 150, 1.0),
        ("subject", "rotation", 20, 4.0),
        ("subject", "fixed-point", 8, 4.0),
        ("subject", "gradient", 60, 4.0),
    ):
        gain = ica_alone(data, unit, epsilon, 0, optimizer=optimizer, rounds=rounds)
        rows.append([unit, optimizer, str(rounds), f"{epsilon:g}", f"{gain:.4f}"])
    show("Optimizers", ["unit", "optimizer", "rounds", "ε", "gain index"], rows)
