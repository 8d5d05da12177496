"""``python -m benchmarks.glm_outcomes [PERSONS OUTCOMES]``: `glm` of very many outcomes.

Four sites in one process, without the protocol, are compared with nilearn's least squares on one
table of the same size. Each runs in a process of its own, whose peak memory is reported with the
table's size. The same rows are also analysed as units of two, and a smooth basis is compared with
its matrix products.
"""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np

from benchmarks.by_persons import resident
from benchmarks.glm_runs import TableData, Trial, noise_of, run_trial
from benchmarks.table import Row
from benchmarks.timing import command, processor, show
from consortium.algorithms.base import Shape, SurfacePlaces
from consortium.algorithms.glm.parameters import GlmParameters
from consortium.base.one_thread import one_thread
from consortium.kernels.surface_modes import SurfaceModes

SITES = 4
MODES, PERSONS, VERTICES = 500, 1000, 40_000  # modes of a hemisphere
Cost = tuple[float, float, float]


def table(persons: int, columns: int, seed: int) -> np.ndarray:
    """Return simulated participants in row-major order by participant; columns x participants."""
    return np.random.default_rng(seed).standard_normal((persons, columns)).T


def many_outcomes(persons: int, outcomes: int) -> Trial:
    """Return a study of two groups and one covariate."""
    views = (("x", outcomes), ("dx", 1), ("age", 1))
    sizes = (persons // SITES,) * SITES
    tables = [table(size, outcomes + 2, seed) for seed, size in enumerate(sizes)]
    for each in tables:
        each[outcomes] = np.where(np.arange(each.shape[1]) % 2, 1.0, -1.0)
        each[outcomes + 1] = np.clip(each[outcomes + 1] / 8, -1, 1)
    half = sizes[0] // 2
    groups = {f"s{number}": [sizes[0] - half, half] for number in range(SITES)}
    parameters = GlmParameters.model_validate(
        {
            "outcomes": "x",
            "formula": "dx1 + age1",
            "contrasts": {"patients": "dx1"},
            "groups": groups,
            "norms": {"location": 0.0, "deviation": 1.0},
            "covariates": {"age1": {"mean": 0, "deviation": 0.125}},
            "anyway": True,
        }
    )
    shape = Shape(
        features=outcomes + 2,
        subjects=sizes,
        samples=sizes,
        unit="subject",
        voxels=0,
        views=views,
        sites=tuple(groups),
    )
    return Trial(parameters, tuple(TableData(each, views) for each in tables), shape)


def in_pairs(trial: Trial) -> Trial:
    """Return the same participants in units of privacy of two; every tenth unit has one row."""
    sites = list[TableData]()
    many = trial.shape.features
    for site in trial.sites:
        rows = site.table().T
        table = rows[: len(rows) // 2 * 2].reshape(-1, 2 * many).T
        table[many:, ::10] = np.nan
        sites.append(TableData(table, trial.shape.views))
    sizes = tuple(len(site.lengths) for site in sites)
    groups = {name: [part / 2 for part in own] for name, own in trial.parameters.groups.items()}
    units = {"family": "family_id", "most_rows": 2, "usual_rows": 1.9, "differ": 0.9}
    asked = trial.parameters.model_dump(exclude_unset=True) | {"groups": groups, "units": units}
    shape = replace(trial.shape, subjects=sizes, samples=sizes)
    return Trial(GlmParameters.model_validate(asked), tuple(sites), shape)


def on_vertices(trial: Trial, vertices: int) -> Trial:
    """Return the same outcomes as vertices of a simulated mesh, with nearly all modes released."""
    sides = made_up_modes(vertices // 2, 0), made_up_modes(vertices // 2, 1)
    places = {"x": SurfacePlaces(np.zeros((vertices, 3)), lambda: sides)}
    for site in trial.sites:
        site.extent = replace(site.extent, surface_places=places)
    smooth = {"basis": "smooth", "smoothness": 15.0, "cutoff": 20.01}
    asked = trial.parameters.model_dump(exclude_unset=True) | smooth
    shape = replace(trial.shape, surface_places=places)
    return Trial(GlmParameters.model_validate(asked), trial.sites, shape)


def made_up_modes(vertices: int, seed: int) -> SurfaceModes:
    """Return simulated modes of a hemisphere, with waves of 20 mm and longer."""
    vectors = np.random.default_rng(seed).standard_normal((vertices, MODES)) / np.sqrt(vertices)
    values = np.linspace(0.0, (2 * np.pi / 20.001) ** 2, MODES)
    return SurfaceModes(values, vectors, np.arange(MODES), 4.0 * vertices)


def ours(persons: int, outcomes: int) -> Cost:
    """Return processor seconds of a study, and MB before it and at the peak."""
    return cost_of(lambda: many_outcomes(persons, outcomes))


def pairs(persons: int, outcomes: int) -> Cost:
    """Return the same for units of two rows."""
    return cost_of(lambda: in_pairs(many_outcomes(persons, outcomes)))


def smooth(persons: int, outcomes: int) -> Cost:
    """Return the same for a smooth basis."""
    return cost_of(lambda: on_vertices(many_outcomes(persons, outcomes), outcomes))


def products(persons: int, outcomes: int) -> Cost:
    """Return the same for only the products with such a basis, as the two rounds compute them."""
    one_thread()
    sides = [made_up_modes(outcomes // 2, seed).vectors for seed in (0, 1)]
    values = table(persons, outcomes // 2, 0)
    before = resident("VmRSS")

    def once() -> None:
        for side in sides:
            for _ in range(2):
                sums = side.T @ values
            np.matmul(side, sums)

    return processor(once, 1), before, resident("VmHWM")


def cost_of(maker: Callable[[], Trial]) -> Cost:
    """Return processor seconds of a study, and MB before it and at the peak."""
    one_thread()
    trial = maker()
    noise = noise_of(8.0, SITES)
    before = resident("VmRSS")
    seconds = processor(lambda: run_trial(trial, noise, np.random.default_rng(0)), 1)
    return seconds, before, resident("VmHWM")


def nilearn(persons: int, outcomes: int) -> Cost:
    """Return the same for nilearn's `run_glm`."""
    from nilearn.glm.first_level import run_glm

    one_thread()
    # In the memory layout that nilearn requires: participants of an outcome are contiguous.
    values = np.ascontiguousarray(table(persons, outcomes, 0).T)
    design = np.ones((persons, 6))
    design[:, :5] = table(persons, 5, 1).T
    before = resident("VmRSS")
    seconds = processor(lambda: run_glm(values, design, noise_model="ols"), 1)
    return seconds, before, resident("VmHWM")


def alone(maker: Callable[[int, int], Cost], persons: int, outcomes: int) -> Cost:
    """Return the cost of one of them in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(maker, persons, outcomes).result()


def outcomes(persons: int = 100, many: int = 1_000_000) -> list[Row]:
    """Return rows of time and memory."""
    own = alone(ours, persons, many)
    least = alone(nilearn, persons, many)
    work = f"glm, {persons} participants, {many:,} outcomes"
    held = 8e-6 * persons * many
    two = alone(pairs, persons, many)
    waves = alone(smooth, PERSONS, VERTICES)
    bare = alone(products, PERSONS, VERTICES)
    units = f"{work}, units of two"
    basis = f"glm in a smooth basis, {PERSONS:,} participants, {VERTICES:,} vertices"
    return [
        Row(work, 1e3 * own[0], "nilearn run_glm", 1e3 * least[0], "≤ 2"),
        Row(
            work=f"{work}: memory at the most",
            ours=own[2],
            beside="the table",
            peer=held,
            reach="≤ 2",
            unit="MB",
        ),
        Row(units, 1e3 * two[0], "single participants", 1e3 * own[0], "≤ 3"),
        Row(
            work=f"{units}: memory at the most",
            ours=two[2],
            beside="the table",
            peer=held,
            reach="≤ 2",
            unit="MB",
        ),
        Row(basis, 1e3 * waves[0], "its products with the basis", 1e3 * bare[0], "≤ 2"),
        Row(
            work=f"{basis}: memory at the most",
            ours=waves[2],
            beside="before it",
            peer=waves[1],
            reach="≤ 1.5",
            unit="MB",
        ),
    ]


def main(persons: int = 100, outcomes: int = 1_000_000) -> None:
    """Print the table."""
    makers: dict[str, Callable[[int, int], Cost]] = {
        **{"glm": ours, "glm of units of two": pairs, "nilearn run_glm": nilearn}
    }
    rows = []
    for name, maker in makers.items():
        seconds, before, most = alone(maker, persons, outcomes)
        rows.append([name, f"{seconds:.2f}", f"{before:.0f}", f"{most:.0f}"])
    size = f"{persons} x {outcomes:,}, a table of {8 * persons * outcomes / 1e6:.0f} MB"
    show(size, ["", "processor s", "MB before", "MB at the most"], rows)


if __name__ == "__main__":
    command(main)
