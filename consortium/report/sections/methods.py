"""The methods section of a report, with parameters, numbers and versions."""

from typing import Any

from consortium.algorithms import REGISTRY
from consortium.base.formatting import count
from consortium.report.finished import Finished
from consortium.report.privacy_report import PrivacyReport
from consortium.report.references import citation_keys, cite_sentences
from consortium.report.sections.base import PageSection
from consortium.report.statement import UNITS
from consortium.report.tables import cell_text
from consortium.space.grid import Grid
from consortium.space.mesh import Mesh
from consortium.study.data_section import DataSection, PersonRule
from consortium.study.spec import Study

EXACT = (
    "Each site added noise of which one part cancels in the sum over the sites and one part stays "
    "(CAPE). The part that cancels was the mask of a secure aggregation, uniform on its ring."
)
SCHEMES = {
    "cape": "Each site added noise of which one part cancels in the sum over the sites and one "
    "part stays (CAPE); the cancelling part was summed by secure aggregation.",
    "local": "Each site added all of the noise that protects it, by itself.",
    "none": "No noise was added.",
}
EACH = {
    "some": "Of some rounds (statistic {names}) each site's own answer was released instead, with "
    "all of the noise that protects it.",
    "all": "Each site's own answers were released, with all of the noise that protects them.",
}

SCALED = {
    "subject": "scaled to the same mean squared norm for every participant",
    "voxel": "standardized to unit variance in each voxel",
}
_OVER_REGIONS = "averaged for the analysis over the regions of an atlas"


def section(run: Finished) -> PageSection:
    """Describe how the data were prepared and analysed, with parameters and software."""
    sentences, listed = cite_sentences(citation_keys(run.study, run.report, images=run.has_images))
    tables = {
        "Parameters of the analysis": {
            name.replace("_", " "): value for name, value in _parameters(run.study).items()
        },
        "Numbers of the analysis": {
            name.replace("_", " "): value for name, value in run.result.numbers.items()
        },
        "Software": run.report.versions,
    }
    texts = [*paragraphs(run), *([sentences] if sentences else [])]
    values = {"paragraphs": texts, "tables": tables, "references": listed}
    return PageSection("methods", values, "Methods")


def paragraphs(run: Finished) -> list[str]:
    """Describe how the data were prepared and analysed."""
    grid = run.components.grid if run.components else run.space.domain
    chosen = chosen_methods(run.study.data)
    return [
        *([chosen] if chosen else []),
        *([_views_methods(run)] if run.space.views else []),
        *([image_methods(run.study.data, grid)] if _has_series(run) else []),
        *([single_image_methods(run.study.data, grid)] if _has_single_images(run) else []),
        *([run.result.captions.methods] if run.result.captions.methods else []),
        analysis_methods(run.study, run.report),
        f"{takers(run.report)} {software_sentence(run.report)}",
    ]


def takers(report: PrivacyReport) -> str:
    """State in the report how many took part, by site."""
    what = UNITS[report.unit]
    total = sum(site.units for site in report.sites)
    by_site = ", ".join(f"{site.name} {site.units:,}" for site in report.sites)
    return f"{count(total, what)} at {count(len(report.sites), 'site')} took part ({by_site})."


def software_sentence(report: PrivacyReport) -> str:
    """Return the report's sentence on the software and its versions."""
    named = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    return f"Software: {named}."


def _has_series(run: Finished) -> bool:
    return not run.space.views or any(view.view.is_series for view in run.space.views)


def _has_single_images(run: Finished) -> bool:
    return any(view.view.is_image and not view.view.is_series for view in run.space.views)


def _views_methods(run: Finished) -> str:
    description = "; ".join(view.view.methods_sentence(view.size) for view in run.space.views)
    return f"Each site described every participant who had all views by one vector: {description}."


def _parameters(study: Study) -> dict[str, Any]:
    """List the parameters of the analysis that are set, with those of views written out."""
    given = study.analysis.model_dump(mode="json", exclude_none=True)
    return {name: _written(value) for name, value in given.items() if value != {}}


def _written(value: Any) -> str:
    """Write a parameter as text: lists with commas, and values behind their names."""
    if isinstance(value, dict):
        parts = [f"{name} {_inner(each)}" for name, each in value.items()]
        return ", ".join(parts)
    if isinstance(value, list | tuple):
        return ", ".join(_inner(each) for each in value)
    return cell_text(value)


def _inner(value: Any) -> str:
    """Write a part of a parameter, in brackets if it has parts itself."""
    many = isinstance(value, dict | list | tuple) and len(value) > 0
    return f"({_written(value)})" if many else _written(value)


def chosen_methods(data: DataSection) -> str:
    """State the inclusion criteria of the study, if it has any."""
    rules = "; ".join(f"{name}: {_rule(rule)}" for name, rule in data.persons.items())
    return f"Participants were included by {rules}." if rules else ""


def _rule(rule: PersonRule) -> str:
    """Write levels with commas, or limits, which are included."""
    if rule.low is not None and rule.high is not None:
        return f"{rule.low:g} to {rule.high:g}"
    limits = [("at least", rule.low), ("at most", rule.high)]
    return ", ".join([*rule.levels, *(f"{which} {x:g}" for which, x in limits if x is not None)])


def series_methods(data: DataSection) -> str:
    """State which series were used and how long they are, if the study states it."""
    entities = ("session", "run", "acquisition", "direction", "echo", "description")
    named = [f"{name} {value}" for name in entities if (value := getattr(data, name)) is not None]
    named += [f"{key}-{label}" for key, label in data.entities.items()]
    named += ["the first recording that fits"] if data.runs == "first" else []
    which = f"Recordings were chosen by name ({', '.join(named)}). " if named else ""
    length = (
        f"Every participant's series has {data.volumes:,} volumes"
        if data.volumes
        else f"Participants with fewer than {data.minimum_volumes:,} volumes were left out"
    )
    return f"{which}{length}; repetition times are those of the sites and are not released."


def image_methods(data: DataSection, grid: Grid | Mesh) -> str:
    """Describe in the report how images were loaded."""
    where = f"in {data.space} space"
    if data.mesh:
        where = f"on the cortex (mesh {data.mesh})"
    steps = [f"Functional images (task {data.task}) {where} were read at each site"]
    if data.mesh:
        steps.append("without voxels of the files below the cortex")
    elif data.smoothing is None:
        steps.append("smoothed to the study's voxel size")
    elif data.smoothing:
        steps.append(f"smoothed ({data.smoothing:g} mm FWHM)")
    if data.detrend != "none":
        steps.append(f"detrended ({data.detrend})")
    if data.high_pass:
        steps.append(f"high-pass filtered ({data.high_pass:g} Hz)")
    if data.low_pass:
        steps.append(f"low-pass filtered ({data.low_pass:g} Hz)")
    if data.confounds:
        steps.append(f"with the confounds {', '.join(data.confounds)} regressed out")
    if data.standardize != "none":
        steps.append(SCALED[data.standardize])
    if data.atlas:
        steps.append(_OVER_REGIONS)
    after = f" Maps were smoothed after their release ({data.maps_smoothing:g} mm FWHM)."
    loaded = f"{', '.join(steps)}, {_within(data, grid)}{after if data.maps_smoothing else ''}"
    return f"{loaded} {series_methods(data)}"


def single_image_methods(data: DataSection, grid: Grid | Mesh) -> str:
    """Describe how single images of participants were loaded."""
    over = f", {_OVER_REGIONS}" if data.atlas else ""
    return (
        f"Each participant's image in {data.space} space was read at its site, interpolated "
        f"linearly at the study's voxels without smoothing or scaling{over}, {_within(data, grid)}"
    )


def _within(data: DataSection, grid: Grid | Mesh) -> str:
    if isinstance(grid, Mesh):
        wall = " outside the medial wall" if data.cortex else ""
        return f"and restricted to its {grid.features:,} vertices{wall}."
    place = "the MNI152 template's brain" if data.mask == "template" else "the study's mask"
    edge = grid.edge
    return f"and restricted to the {grid.features:,} voxels of {edge:g} mm in {place}."


def analysis_methods(study: Study, report: PrivacyReport) -> str:
    """Describe how the sites' data were analysed."""
    rounds = len(report.releases)
    return (
        f"The sites' data were analysed together by {REGISTRY[study.algorithm].title} in "
        f"{count(rounds, 'round')}, without leaving the sites. In each round every site computed "
        f"one statistic, which one {UNITS[report.unit]} changes by at most a preset bound. "
        f"{_noise(report)} Privacy losses were composed exactly (Gaussian differential privacy) "
        "and converted to ε."
    )


def _noise(report: PrivacyReport) -> str:
    """Describe how noise was added."""
    scheme = EXACT if report.exact else SCHEMES[report.scheme]
    own = sorted({release.statistic for release in report.releases if release.each})
    if not own or report.scheme == "none":
        return scheme
    if all(release.each for release in report.releases):
        return EACH["all"]
    return f"{scheme} {EACH['some'].format(names=', '.join(own))}"
