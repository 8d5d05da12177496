"""A whole fusion study: 1,000 simulated participants, 800 of them with both modalities.

``python -m benchmarks.fusion_study FOLDER`` writes hospitals' files, runs configs/fusion.yaml as
`consortium simulate` does, and compares maps and time series with those of the true profiles.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.timing import command, show
from consortium.coordinator.simulate import simulate_study
from consortium.opened_study import open_study
from consortium.simulation.simulation import Simulation
from consortium.study.reader import read_study
from site_agent.loading.open import open_dataset
from tests.support.fusion_bids import FusionMade, make_fusion_consortium
from tests.support.fusion_person import FusionRecipe

STUDY = Path(__file__).parents[1] / "configs" / "fusion.yaml"
RECIPE = FusionRecipe(
    ("north", "east", "south", "west"),
    250,
    1,
    correlations=(0.95, 0.1, 0.7),
    volumes=0,
    trials=40,
    rate=125,
    modulation=0.4,
)


def fusion_study(folder: Path) -> None:
    """Make, run and judge."""
    made = make_fusion_consortium(folder / "hospitals", RECIPE)
    out = folder / "output"
    report = simulate_study(STUDY, made.sites, out, 0, Console())
    study = read_study(STUDY)
    opened = open_study(study, STUDY.parent)
    data = [
        open_dataset(made.sites[s], opened, out / ".cache" / s)  # as simulate left it
        for s in study.sites
    ]
    simulation = Simulation(study, data, 0)
    arrays = simulation.run().arrays
    profiles = both(made)
    deviations = np.hstack([site.table() for site in data])
    deviations -= deviations.mean(axis=1, keepdims=True)
    size = opened.space.views[0].size
    rows = []
    for pair, correlation in enumerate(arrays["correlations"]):
        likeness = []
        for part, values in zip((slice(0, size), slice(size, None)), profiles, strict=True):
            truth = np.linalg.lstsq(values.T - values.mean(axis=1), deviations[part].T)[0]
            table = np.corrcoef(arrays["patterns"][part, pair], truth)[0, 1:]
            likeness.append(np.abs(table))
        source = int(np.argmax(likeness[0] + likeness[1]))
        limits = (arrays["low"][pair], arrays["high"][pair])
        alike = (likeness[0][source], likeness[1][source])
        numbers = (RECIPE.correlations[source], correlation, *limits, *alike)
        rows.append([str(pair + 1), *(f"{x:.3f}" for x in numbers)])
    epsilon = report.guarantees.coalition.epsilon
    columns = ["pair", "population", "found", "low", "high", "map", "course"]
    show(f"ε = {epsilon:.3g}, planned {simulation.plan.epsilon:.3g}", columns, rows)


def both(made: FusionMade) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the profiles (K x M) of participants who have images and EEG, in the data's order."""
    with np.load(made.truth / "profiles.npz") as profiles:
        found = [
            profiles[f"{site}_{person.name}"]
            for site in RECIPE.sites
            for person in sorted(made.sites[site].glob("sub-*"))
            if (person / "eeg").is_dir() and (person / "func").is_dir()
        ]
    stacked = np.array(found)
    return stacked[:, 0].T, stacked[:, 1].T


if __name__ == "__main__":
    command(fusion_study)
