"""A study with all its sites in this process, on data that one may see."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from consortium.algorithms.base import SiteData
from consortium.coordinator.outputs import Publisher
from consortium.engine.session import Session
from consortium.errors import StudyError
from consortium.opened_study import OpenedStudy, open_study
from consortium.python.result import StudyResult, read_result
from consortium.python.scratch import Imgs, lay_out, scratch_folder
from consortium.report.privacy_report import SEEDED
from consortium.simulation.simulation import Simulation
from consortium.space.grid import TEMPLATE
from consortium.study import reader
from consortium.study.spec import Study
from site_agent.loading.open import open_dataset

SiteSource: TypeAlias = "Imgs | SiteData"
"""A site's participants: a BIDS data set, images, or blocks that are in memory already."""


def load_study(path: str | Path) -> Study:
    """Read a study file.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    Study
        Frozen; ``study.model_copy(update=...)`` makes another.

    Raises
    ------
    StudyError
        If it is missing, or a field is unknown, missing or out of range.

    Examples
    --------
    >>> load_study("nowhere.yaml")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    consortium.errors.StudyError: nowhere.yaml: must be a study file in UTF-8, ...
    """
    return reader.read_study(Path(path))


def simulate(
    study: Study | str | Path, data: Mapping[str, SiteSource], *, seed: int
) -> StudyResult:
    """Run a study with all its sites in this process, as ``consortium simulate`` does.

    The noise is as large as that of a real run, and comes from the seed: a simulation forecasts the
    findings of a study, and protects no participant.

    Parameters
    ----------
    study : Study, str or Path
        A study, or its file, which is required if it names other files, such as a mask.
    data : mapping of str to data set
        For every site a BIDS data set, a sequence of 4-D series, or a `SiteData`, such as
        `consortium.simulation.array_data.ArrayData`.
    seed : int
        Decides all noise and every key.

    Raises
    ------
    StudyError
        If a site has no data, or a study that names files is not given as a file.
    ConsortiumError
        As a run would.

    Examples
    --------
    >>> import numpy as np
    >>> from consortium.simulation.array_data import ArrayData
    >>> from consortium.study.reader import parse_study
    >>> study = parse_study('''
    ... study: ages
    ... sites: [north, south]
    ... features: [{name: age, source: table, columns: {age: {low: 18, high: 90}}}]
    ... privacy: {unit: subject, epsilon: 4, delta: 1.0e-5, colluding_sites: 0}
    ... algorithm: average
    ... ''')
    >>> participants = [np.array([[0.5]])] * 300
    >>> site = ArrayData(participants, views=[("age", 1)])
    >>> result = simulate(study, {"north": site, "south": site}, seed=1)
    >>> abs(float(result.tables["means"]["mean"][0]) - 0.5) < 0.05
    True
    >>> result.privacy.protects
    False
    """
    parsed, folder = _parsed(study)
    missing = [site for site in parsed.sites if site not in data]
    if missing:
        raise StudyError(f"{missing[0]}: no data set. Add it to data, as data['{missing[0]}'].")
    opened = open_study(parsed, folder)
    with scratch_folder() as scratch:
        sites = [_open(data[site], opened, scratch / "sites" / site) for site in parsed.sites]
        simulation = Simulation(parsed, sites, seed)
        simulation.run()
        return publish(scratch, opened, simulation.session, f"{SEEDED} (seed {seed})")


def publish(
    scratch: Path, opened: OpenedStudy, session: Session, sampler: str | None
) -> StudyResult:
    """Write the output folder of a simulated run, and open it."""
    assert session.result is not None  # noqa: S101 - for the type checker
    out = scratch / "out"
    publisher = Publisher(out, opened, sampler, pages=False)
    publisher.publish(session.plan, session.rounds, session.result)
    of_views = (view.mesh for view in opened.space.views if view.mesh is not None)
    return read_result(out, opened.space.mesh or next(of_views, None))


def _parsed(study: Study | str | Path) -> tuple[Study, Path]:
    if isinstance(study, str | Path):
        return load_study(study), Path(study).parent
    named = [study.data.mask if study.data.mask != TEMPLATE else None, study.data.atlas]
    files = [name for name in (*named, *study.map_files) if name]
    if files:
        raise StudyError(
            f"The study names {files[0]}, which is stored next to its file. Give the file's path "
            "instead of the study."
        )
    return study, Path()


def _open(source: SiteSource, opened: OpenedStudy, scratch: Path) -> SiteData:
    if hasattr(source, "blocks"):
        return source  # type: ignore[return-value]
    folder = lay_out(scratch / "bids", source, opened.study.data)
    return open_dataset(folder, opened, scratch / "cache")
