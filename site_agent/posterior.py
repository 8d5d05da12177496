"""A hospital's networks from its own data and a release, which stay at the hospital.

See `consortium.kernels.home_posterior` for their definition, and why they must not be shared. Their
page shows the hospital's own, the release's and the combined networks, in rows.
"""

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import cast

import numpy as np

from consortium import __version__
from consortium.algorithms.base import Array, Release, Result
from consortium.algorithms.findings import DRAWN, Finding
from consortium.algorithms.group_ica.at_home import WEIGHTS, results_at_home
from consortium.algorithms.group_ica.centre import GroupIca
from consortium.algorithms.subspace import directions_of
from consortium.algorithms.worth import worth_sentence
from consortium.base.atomic import DAMAGED, path_in_folder, write_bytes, write_json, write_text
from consortium.base.formatting import count, percent
from consortium.engine.session import per_statistic_unit
from consortium.engine.transcript import TRANSCRIPT, Transcript
from consortium.engine.unit_counts import UnitCounts
from consortium.errors import DataError, OutputError, StudyError
from consortium.kernels.home_posterior import Posterior, ReleaseShare, combine_projectors
from consortium.kernels.moments import unpack_symmetric
from consortium.membership.signed_study import SignedStudy
from consortium.opened_study import open_signed
from consortium.report.as_templates import HOME_PAGE
from consortium.report.bids import about_image, label, resolution_label
from consortium.report.brain_figures import draw_slices, draw_surface
from consortium.report.dataset import BIDS_VERSION, GENERATOR
from consortium.report.image_sets import image_set_grid, on_grid, surface_folder, write_surface
from consortium.report.pictures import Picture
from consortium.report.templating import plain_environment
from consortium.space.grid import Grid
from consortium.space.mesh import Mesh
from consortium.space.nifti import mark_kept
from consortium.space.study_space import Space
from consortium.study.plan import Plan
from consortium.verification.agreement import read_agreement
from consortium.verification.record import EVIDENCE, EvidenceRecord
from consortium.verification.rounds import read_round
from site_agent.approval.folder import SiteFolder
from site_agent.images.series import SiteDataset
from site_agent.networks import check_target

RUN = "run.json"
_LEAST = 2
_README = files("site_agent.page") / "templates" / "posterior.md"
NAMES = {
    "own": "This hospital only",
    "release": "The consortium's release",
    "posterior": "Combined, at home",
}
_UNCOUNTED = (
    "Warning: the study assumes that no hospital works against the others (colluding_sites: 0). "
    "These networks were made without removing this hospital's own noise, to keep the promise. "
    "Anyone who subtracts that noise from the release sees more than was promised."
)
_ALIKE = 0.3
"""Correlation below which a map of another set is not matched."""


def study_file(output: Path) -> Path:
    """Return the path of the signed study in the output folder of a finished run.

    Raises OutputError if it has none.
    """
    path = output / EVIDENCE / "study" / "study.yaml"
    if not path.is_file():
        raise OutputError(
            f"{output} is not an output folder of a run with its evidence. Ask the coordinator "
            "for the whole folder."
        )
    return path


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """A finished run of one release, whose posterior a hospital computes."""

    run: str
    plan: Plan
    """Plan of the sites with which it started."""
    space: Space
    release: Release
    """Release in the statistic's units."""

    def persons(self, site: str) -> tuple[int, int]:
        """Return the estimated participants of a site in the release, and of all sites.

        Raises StudyError if the site is not in it.
        """
        sites = self.plan.study.sites
        present = self.release.sites
        if site not in sites or sites.index(site) not in present:
            raise StudyError(f"{site} took no part in the release of {self.run}. Name another run.")
        units = self.plan.analysis.units_in(self.release)
        return round(units[present.index(sites.index(site))]), round(units.sum())


def read_finished(output: Path, signed: SignedStudy) -> FinishedRun:
    """Read the first release of a run, as its centre signed it.

    Raises OutputError if a file is missing or damaged. Raises ContradictionError if messages and
    numbers don't fit each other, or are of another study. Raises ConfigurationError if the run was
    announced with another version of this software.
    """
    run = _run(output)

    def read(name: str) -> bytes | None:
        try:
            return path_in_folder(output / EVIDENCE, name).read_bytes()
        except (OSError, ValueError):
            return None

    opened = open_signed(signed)
    record = EvidenceRecord(run, signed.keys, read)
    context = opened.context(run)
    agreement = read_agreement(record, context)
    kept = next(Transcript(output / TRANSCRIPT).rounds(), None)
    if kept is None:
        raise OutputError(f"{output} has no release. Ask the coordinator for the whole folder.")
    mechanism = read_round(record, agreement, kept).stage.mechanism
    values = mechanism.lattice.decode(kept.ring)
    plan = agreement.plan
    counts = UnitCounts(plan.shape.units)
    release = per_statistic_unit(mechanism, values, kept.survivors, plan, counts)
    return FinishedRun(run, plan, opened.space, release)


def _run(output: Path) -> str:
    try:
        return str(json.loads((output / RUN).read_text(encoding="utf-8"))["run"])
    except (OSError, *DAMAGED) as error:
        raise OutputError(
            f"{output / RUN} can't be read. Ask the coordinator for the whole folder."
        ) from error


def write_posterior(
    folder: Path,
    output: Path,
    roster: Path,
    target: Path,
    *,
    own_patients: bool = False,
    tell: Callable[[str], None] = lambda _line: None,
) -> tuple[str, ...]:
    """Write a hospital's own networks, the release's, and the posterior's.

    Raises ConsortiumError if run, data or folder can't be used.

    Parameters
    ----------
    folder : Path
        The site's.
    output : Path
        Output folder of a finished run of ``group_ica`` in which the site took part.
    target : Path
        A folder that is empty or new.
    own_patients : bool
        Whether maps are to be those of this hospital's patients, and not those of all hospitals'.
    tell : callable
        Is called with a message after each participant.

    Returns
    -------
    tuple of str
        Summary of the result, in sentences.
    """
    site = SiteFolder.open(folder)
    check_target(target, site.config)
    if target.resolve().is_relative_to(output.resolve()):
        raise DataError(f"{target} is in the published folder. Name another folder.")
    signed = site.papers(study_file(output), roster).signed
    if signed.study.algorithm != "group_ica":
        raise StudyError(
            f"{output} is of a run of {signed.study.algorithm}; only group_ica has releases that "
            "a hospital can combine with its own networks."
        )
    finished = read_finished(output, signed)
    persons, everybody = finished.persons(site.config.name)
    dataset = site.series(signed.study.data, finished.space, "subject")
    _check_people(len(dataset.lengths), persons, everybody, finished.run)
    release = finished.release
    taken = ReleaseShare(persons, everybody, len(release.sites), release.deviation)
    plan = cast("GroupIca", finished.plan.analysis)
    posterior = combine_projectors(
        _directions(dataset, plan, tell),
        unpack_symmetric(release.values),
        taken,
        at_home=own_patients,
    )
    tell("maps")
    results = results_at_home(posterior, release, plan, own_patients=own_patients)
    return _write(target, finished, posterior, results, own_patients)


def _check_people(here: int, then: int, everybody: int, run: str) -> None:
    """Refuse if the own part of the release can't be subtracted, is too small, or is the whole."""
    if here != then:
        raise DataError(
            f"{count(then, 'participant')} of this hospital took part in {run}, and {here} would "
            "now, so its part can't be subtracted from the release. Exclude participants who "
            "were added later, by left_out of site.yaml, or restore the missing ones."
        )
    if then < _LEAST or then == everybody:
        raise DataError(
            f"{count(then, 'participant')} of {everybody} in the release are of this hospital; at "
            "least two must be, and other participants in addition."
        )


def _directions(
    dataset: SiteDataset, plan: GroupIca, tell: Callable[[str], None]
) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    asked = (plan.for_series, plan.asked.global_signal, plan.asked.kept)
    found = []
    for directions in directions_of(dataset.blocks(), *asked):
        found.append(directions)
        tell(f"{len(found)} of {len(dataset.lengths)} participants")
    return found


def _write(
    target: Path,
    finished: FinishedRun,
    posterior: Posterior,
    results: Mapping[str, Result],
    own_patients: bool,
) -> tuple[str, ...]:
    study = finished.plan.study
    space = finished.space
    sentences = posterior_summary(posterior, results, study.privacy.colluding_sites, own_patients)
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    target.chmod(0o700)  # also of an existing one
    images = {name: _write_maps(target, finished, name, each) for name, each in results.items()}
    about = {
        "Name": f"Networks at home, of {study.study}",
        "BIDSVersion": BIDS_VERSION,
        "DatasetType": "derivative",
        "GeneratedBy": [{"Name": GENERATOR, "Version": __version__}],
    }
    write_json(target / "dataset_description.json", about)
    write_text(target / ".bidsignore", f"{HOME_PAGE}\ntpl-*/func/*_components.*\n")
    readme = _README.read_text(encoding="utf-8").format(
        study=study.study,
        page=HOME_PAGE,
        own=count(posterior.taken.persons, "participant"),
        space=study.data.space,
        image=images["posterior"] or "IMAGE",
        told="\n".join(sentences),
    )
    write_text(target / "README.md", readme)
    write_text(target / HOME_PAGE, posterior_html(study.study, space, results, sentences))
    return sentences


def _write_maps(target: Path, finished: FinishedRun, name: str, result: Result) -> Path | None:
    """Write a set's maps, marked as kept except those of the release; none if there are none."""
    if "components" not in result.images:
        return None
    study = finished.plan.study
    space = finished.space
    images = result.images["components"]
    grid = image_set_grid(space, images)
    about = {
        "Description": f"{NAMES[name]}. {images.caption}",
        "Units": images.units,
        "ExpectedCorrelation": [each.value if each.reported else None for each in images.accuracy],
    }
    if isinstance(grid, Mesh):
        front = f"tpl-{grid.kind.space}_den-{grid.kind.density}"
        content = grid, on_grid(space, images, images.values), images.labels, about
        stem = f"{front}_desc-{label(study.study + name)}"
        place = surface_folder(target, grid)
        kept = name != "release"
        return write_surface(place, stem, "components", *content, kept=kept)[0]
    resolution = resolution_label(grid)
    parts = (f"tpl-{study.data.space}", f"res-{resolution}" if resolution else "")
    stem = "_".join([*filter(None, parts), f"desc-{label(study.study + name)}_components"])
    place = target / f"tpl-{study.data.space}" / "func"
    place.mkdir(parents=True, exist_ok=True)
    image = grid.image(on_grid(space, images, images.values).astype(np.float32))
    if name != "release":
        mark_kept(image)
    write_json(place / f"{stem}.json", about | about_image(study, grid))
    return write_bytes(place / f"{stem}.nii.gz", gzip.compress(image.to_bytes(), mtime=0))


@dataclass(frozen=True)
class Cell:
    """One map in a row of the posterior's page."""

    picture: Picture | None
    """None if no map of the set is similar."""
    caption: str
    """Its certainty, and its similarity to the posterior's."""


def posterior_summary(
    posterior: Posterior, results: Mapping[str, Result], colluding: int, own_patients: bool
) -> tuple[str, ...]:
    """Return a summary of the posterior, in sentences."""
    spreads = posterior.spreads
    taken = posterior.taken
    whose = "this hospital's own patients" if own_patients else "all hospitals' participants"
    found = {name: int(result.numbers["found"]) for name, result in results.items()}
    own = count(taken.persons, "participant")
    numbers = results["posterior"].numbers
    sources = "all three sources" if numbers.get("open_weight") else "both"
    together = f"{found['posterior']} of {sources} together, for the networks of {whose}"
    networks = (
        f"Networks that were found: {found['own']} of this hospital's {own} alone, "
        f"{found['release']} of the release, {together}."
    )
    worth = worth_sentence(spreads.worth(taken.everybody), "the networks found here and by all")
    weights = _weights_sentence(posterior, numbers)
    if colluding:
        return networks, worth, weights
    return networks, worth, weights, _UNCOUNTED


def _weights_sentence(posterior: Posterior, numbers: Mapping[str, float | int | str]) -> str:
    if "open_weight" not in numbers:
        shares = percent(posterior.share), percent(1.0 - posterior.share)
        return (
            f"The combination weights its own data by {shares[0]}, and the others' by {shares[1]}."
        )
    own, others, openly = (percent(float(numbers[name])) for name in WEIGHTS)
    if not numbers["open_weight"]:
        return (
            f"The combination weights its own data by {own}, and the others' by {others}. Nothing "
            "was taken from the study's open cohort, because it differs too much or shows no map."
        )
    return (
        f"The combination weights its own data by {own}, the others' by {others}, and the study's "
        f"open cohort by {openly}. A map is found only if the hospitals' data confirm it."
    )


def posterior_html(
    study: str, space: Space, results: Mapping[str, Result], sentences: tuple[str, ...]
) -> str:
    """Return the page of a hospital's networks at home, as HTML."""
    template = plain_environment("site_agent.page", "consortium.report").get_template(
        "posterior.html.j2"
    )
    drawn = {name: each for name, result in results.items() if (each := _maps(space, result))}
    empty = [NAMES[name] for name in results if name not in drawn]
    return template.render(
        study=study, names=NAMES, sentences=sentences, rows=_rows(drawn), empty=empty
    )


@dataclass(frozen=True, eq=False)
class _Maps:
    """A set's maps on the voxels of its grid, or on a mesh."""

    grid: Grid | Mesh
    values: Array
    threshold: Array
    accuracy: tuple[Finding, ...]


def _rows(sets: Mapping[str, _Maps]) -> list[dict[str, Cell]]:
    """Return a row for each map of the posterior, or of the first set that there is."""
    base = next((sets[name] for name in ("posterior", "release", "own") if name in sets), None)
    if base is None:
        return []
    rows = []
    for k in range(base.values.shape[1]):
        peak = base.grid.coordinates[int(np.abs(base.values[:, k]).argmax())]
        rows.append({name: _cell(each, base, k, peak, name) for name, each in sets.items()})
    return rows


def _maps(space: Space, result: Result) -> _Maps | None:
    images = result.images.get("components")
    if images is None:
        return None
    values, least = (
        on_grid(space, images, np.asarray(v)) for v in (images.values, images.threshold)
    )
    return _Maps(image_set_grid(space, images), values, least, images.accuracy)


def _cell(maps: _Maps, base: _Maps, k: int, peak: Array, name: str) -> Cell:
    own = base.values[:, k] - base.values[:, k].mean()
    others = maps.values - maps.values.mean(axis=0)
    cosines = own @ others / (np.linalg.norm(own) * np.linalg.norm(others, axis=0))
    best = int(np.abs(cosines).argmax())
    if abs(cosines[best]) < _ALIKE:
        return Cell(None, "no similar map")
    values = maps.values[:, best] * np.sign(cosines[best])
    shown = np.where(np.abs(values) >= maps.threshold[:, best], values, 0.0)
    least = float(np.abs(shown)[shown != 0].min(initial=DRAWN))
    if isinstance(maps.grid, Mesh):
        picture = draw_surface(maps.grid, shown, least, NAMES[name])
    else:
        picture = draw_slices(maps.grid, shown, peak, least, NAMES[name])
    sure = maps.accuracy[best]
    state = "not found"
    if sure.reported:
        likely = f"{sure.value:.2f} ({sure.low:.2f} to {sure.high:.2f})"
        state = f"found, expected correlation {likely}"
    alike = "" if maps is base else f"; correlation with the map of both {abs(cosines[best]):.2f}"
    return Cell(picture, state + alike)
