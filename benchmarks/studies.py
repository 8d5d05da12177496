"""Studies of benchmarks, their runs without protocol, and the dissertation's simulation."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from consortium.algorithms.base import Query, Release, Result
from consortium.privacy.gdp import epsilon_of, mu_of
from consortium.simulation.simulation import Simulation
from consortium.study.spec import Study
from tests.support.chapter import Chapter
from tests.support.gain_index import gain_index

SITES = ["north", "east", "south", "west"]
DELTA = 1e-5
PLAIN = {"detrend": "none", "standardize": "none"}


def study_of(
    algorithm: str,
    analysis: Mapping[str, Any],
    sites: int | Sequence[str],
    epsilon: float,
    data: Mapping[str, Any] = PLAIN,
    views: Sequence[tuple[str, int]] = (),
    **privacy: Any,
) -> Study:
    """Return a study of some sites; one may collude, unless ``privacy`` states otherwise."""
    names = [f"site{n + 1}" for n in range(sites)] if isinstance(sites, int) else sites
    features = [
        {"name": name, "source": "table", "columns": {f"{name}[1-{size}]": {"low": -1, "high": 1}}}
        for name, size in views
    ]
    promise = {
        "epsilon": epsilon,
        "delta": DELTA,
        "colluding_sites": 1,
        "boost": "exact",
        **privacy,
    }
    return Study.model_validate(
        {
            "study": "benchmark",
            "sites": list(names),
            "data": dict(data),
            "features": features,
            "privacy": promise,
            "algorithm": algorithm,
            "analysis": dict(analysis),
        }
    )


def result_of(analysis: Any, answer: Callable[[Query], Release]) -> Result:
    """Carry an analysis out, each of its questions answered with a release."""
    run = analysis.run()
    query = next(run)
    try:
        while True:
            query = run.send(answer(query))
    except StopIteration as stop:
        result: Result = stop.value
        return result


def study(unit: str, epsilon: float | None, colluding: int = 1, **analysis: object) -> Study:
    """Return an ICA study; without privacy if ``epsilon`` is None."""
    scheme = "cape" if epsilon else "none"
    return study_of(
        *("ica", {"components": 20, **analysis}, SITES, epsilon or 8.0),
        unit=unit,
        scheme=scheme,
        colluding_sites=colluding,
    )


def simulation(data: Chapter, made: Study, seed: int = 0) -> Simulation:
    """Simulate all four sites in this process."""
    sites = [data.site(index, made.privacy.unit) for index in range(len(SITES))]
    return Simulation(made, sites, seed)


def ica_alone(data: Chapter, unit: str, epsilon: float, seed: int, **analysis: Any) -> float:
    """Return the gain index if PCA is exact and only the ICA stage costs ``epsilon``."""
    whole = epsilon_of(mu_of(epsilon, DELTA) * 2**0.5, DELTA)  # half of μ² is the ICA's
    private = simulation(data, study(unit, whole, pca_share=0.5, **analysis), seed)
    exact = simulation(data, study(unit, None, **analysis))
    first = exact.step()
    private.session.accept(first.values, first.survivors)
    return gain_index(private.run().arrays["unmixing"] @ data.mixing)
