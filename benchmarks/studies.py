"""The dissertation's simulation (section 6.5) as a study."""

from typing import Any

import yaml

from consortium.privacy.gdp import epsilon_of, mu_of
from consortium.simulation.simulation import Simulation
from consortium.study.reader import parse_study
from consortium.study.spec import Study
from tests.support.chapter import Chapter
from tests.support.gain_index import gain_index

SITES = ["north", "east", "south", "west"]
DELTA = 1e-5


def study(unit: str, epsilon: float | None, colluding: int = 1, **analysis: object) -> Study:
    """An ICA study; ``epsilon`` None is without privacy."""
    privacy = {
        "unit": unit,
        "epsilon": epsilon or 8.0,
        "delta": DELTA,
        "scheme": "cape" if epsilon else "none",
        "colluding_sites": colluding,
    }
    content = {
        "study": "chapter",
        "sites": SITES,
        "data": {"detrend": "none", "standardize": "none"},
        "privacy": privacy,
        "algorithm": "ica",
        "analysis": {"components": 20, **analysis},
    }
    return parse_study(yaml.safe_dump(content))


def simulation(data: Chapter, made: Study, seed: int = 0) -> Simulation:
    """All four sites in this process."""
    sites = [data.site(index, made.privacy.unit) for index in range(len(SITES))]
    return Simulation(made, sites, seed)


def ica_alone(data: Chapter, unit: str, epsilon: float, seed: int, **analysis: Any) -> float:
    """Gain index when PCA is exact and the ICA stage alone costs ``epsilon``."""
    whole = epsilon_of(mu_of(epsilon, DELTA) * 2**0.5, DELTA)  # half of μ² is the ICA's
    private = simulation(data, study(unit, whole, pca_share=0.5, **analysis), seed)
    exact = simulation(data, study(unit, None, **analysis))
    first = exact.step()
    private.session.accept(first.values, first.survivors)
    return gain_index(private.run().arrays["unmixing"] @ data.mixing)
