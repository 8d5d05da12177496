"""A small study, its grid, its maps and a privacy report whose figures are computed."""

from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import Result
from consortium.privacy.bounds import Bound
from consortium.privacy.cross_check import cross_check
from consortium.privacy.gdp import compose, epsilon_of, mu_of, person_loss
from consortium.report.finished import Finished, finish_result
from consortium.report.privacy_report import (
    CrossCheckRecord,
    Guarantee,
    Guarantees,
    Person,
    PrivacyReport,
    ReleaseRecord,
    SiteRecord,
)
from consortium.space.grid import Grid
from consortium.space.mesh import Mesh
from consortium.space.study_space import Space
from consortium.study.reader import parse_study
from consortium.study.spec import Study

UNITS = (80, 64, 100)
ROUNDS = 3
DAY = date(2026, 11, 1)


def sample_study(**changes: Any) -> Study:
    """Return a study of three hospitals; ``changes`` replace top-level fields."""
    study = parse_study(
        """
        study: three-hospitals
        title: Resting networks
        sites: [aachen, bergen, cork]
        data: {detrend: none}
        algorithm: average
        privacy: {epsilon: 4, delta: 1.0e-5, colluding_sites: 1}
        """
    )
    return Study.model_validate(study.model_dump() | changes)


def box_grid(edge: float = 4.0) -> Grid:
    """Return 8 x 9 x 10 voxels, a corner left out, x to the left as in many NIfTI files."""
    mask = np.ones((8, 9, 10), dtype=np.bool_)
    mask[:2, :2, :2] = False
    affine = np.diag([-edge, edge, edge, 1.0])
    affine[:3, 3] = (16.0, -20.0, -12.0)
    return Grid(mask, affine)


def blob(grid: Grid, centre: tuple[float, float, float], width: float) -> NDArray[np.float64]:
    """Return a Gaussian blob of height 1 at ``centre``, in mm."""
    distance = ((grid.coordinates - np.array(centre)) ** 2).sum(axis=1)
    return np.exp(-distance / (2 * width**2))


def guarantee(mu: float, delta: float = 1e-5) -> Guarantee:
    """Return μ and its ε."""
    return Guarantee(mu=mu, epsilon=epsilon_of(mu, delta))


def sample_report(
    study: Study, unit: Any = "subject", share: float = 0.98, **changes: Any
) -> PrivacyReport:
    """Report ``ROUNDS`` equal releases that spend ``share`` of the promised μ; symmetric noise."""
    promised = mu_of(study.privacy.epsilon, study.privacy.delta)
    coalition = promised * share / ROUNDS**0.5
    outsider = coalition / 2
    sensitivities = tuple(Bound(2.0, cone=True).sensitivity(units) for units in UNITS)
    record = ReleaseRecord(
        stage="average",
        round=1,
        statistic="mean_volume",
        entries=712,
        bound=2.0,
        sensitivity=sensitivities,
        weights=tuple(units / sum(UNITS) for units in UNITS),
        sigma_correlated=tuple(100 * s / coalition for s in sensitivities),
        sigma_local=tuple(s / outsider for s in sensitivities),
        sigma_aggregate=sensitivities[0] * UNITS[0] / sum(UNITS) / outsider,
        mu_coalition=coalition,
        mu_outsider=outsider,
        survivors=study.sites,
    )
    releases = tuple(record.model_copy(update={"round": r + 1}) for r in range(ROUNDS))
    whole = compose([coalition] * ROUNDS)
    person = person_loss(whole, 120) if unit == "timepoint" else whole
    check = cross_check([coalition] * ROUNDS, study.privacy.delta)
    values: dict[str, Any] = {
        "study": study.study,
        "unit": unit,
        "scheme": study.privacy.scheme,
        "boost": study.privacy.boost,
        "sampler": "discrete Gaussian",
        "colluding_sites": study.privacy.colluding_sites,
        "delta": study.privacy.delta,
        "promised": guarantee(promised),
        "guarantees": Guarantees(
            coalition=guarantee(whole), outsider=guarantee(compose([outsider] * ROUNDS))
        ),
        "person": Person(
            mu_coalition=person,
            epsilon_coalition=epsilon_of(person, study.privacy.delta),
            volumes=120,
        ),
        "sites": tuple(
            SiteRecord(name=name, units=units, answered=ROUNDS, mu_coalition=whole)
            for name, units in zip(study.sites, UNITS, strict=True)
        ),
        "releases": releases,
        "cross_check": CrossCheckRecord(
            library=check.library, version=check.version, epsilon_coalition=check.epsilon
        ),
        "versions": {"numpy": np.__version__},
    }
    return PrivacyReport(**(values | changes))


def finished(study: Study, space: Space, result: Result) -> Finished:
    """Return the study at its end, with a report whose figures are computed."""
    return finish_result(study, space, result, sample_report(study), DAY)


def finished_maps(study: Study, grid: Grid | Mesh, maps: NDArray[Any], **told: Any) -> Finished:
    """Return a study of images at its end, with component maps (D x R)."""
    space = Space(box_grid(), mesh=grid) if isinstance(grid, Mesh) else Space(grid)
    return finished(study, space, Result({"maps": maps}, maps="maps", **told))
