"""Sentences of the page that depend on the study: verdict, methods, how to read the maps."""

from __future__ import annotations

from statistics import NormalDist

from consortium.algorithms import REGISTRY
from consortium.formatting import count, number, power_of_ten
from consortium.report.components import Components
from consortium.report.privacy_report import PrivacyReport
from consortium.space.grid import Grid
from consortium.study.spec import DataSection, Study

SCHEMES = {
    "cape": "Each site added noise of which one part cancels in the sum over the sites and one "
    "part stays (CAPE); the cancelling part was summed under masks that only the sites know.",
    "secure-sum": "Each site added its share of the noise, and the sites' messages were summed "
    "under masks that only the sites know.",
    "local": "Each site added all of the noise that protects it, by itself.",
    "none": "No noise was added.",
}
EACH = {
    "some": "Of some rounds (statistic {names}) each site's own answer was released instead, with "
    "all of the noise that protects it.",
    "all": "Each site's own answers were released, with all of the noise that protects them.",
}
READING = (
    (
        "A map shows how strongly each voxel takes part in one component. In a temporal "
        "decomposition (temporal ICA, PCA) it is the component's column of the mixing matrix, and "
        "the component's time courses, which stay at the sites, are made independent or "
        "uncorrelated; networks may therefore overlap in space."
    ),
    (
        "Sign and order of components are arbitrary in such an analysis. Here the heavier tail of "
        "each map is positive (red), voxels in blue go the other way, and the components are in "
        "the order of the variance they explain. The explained share is of all components "
        "together, not of all data."
    ),
    (
        "Values are robust z-scores: distance from the map's median in units of its noise floor "
        "(1.4826 times the median absolute deviation). They describe how far a voxel stands out "
        "of its own map; they are not test statistics over persons, and carry no p-value. Voxels "
        "with |z| below {threshold:g} are not drawn; of pure Gaussian noise, {beyond:.2g} % of "
        "the voxels would be."
    ),
    (
        "Slices cut at the map's peak, in millimetres of the template space; the left of the "
        "picture is the left of the brain. Pictures are interpolated between the voxels of the "
        "study's grid, {edges}; the image file holds the voxels as they are, without a threshold."
    ),
)
"""How to read the maps; ``threshold``, ``beyond`` and ``edges`` are filled in."""
PRIVACY_NOISE = (
    "Of these maps it is known how much of a voxel's value privacy noise alone makes: its standard "
    "deviation is beside each map, voxel by voxel in the image that ends in _noise, and is part of "
    "the noise floor. Voxels below {threshold:g} times it are not drawn, whatever their z."
)
"""Follows what is said about values, if the maps were released with noise of their own."""
UNITS = {"subject": "person", "timepoint": "volume"}


def verdict(components: Components, report: PrivacyReport) -> str:
    """Tell the whole report in two sentences."""
    unit = UNITS[report.unit]
    units = sum(site.units for site in report.sites)
    found = (
        f"{count(len(components), 'component')} from {count(units, unit)} "
        f"at {count(len(report.sites), 'site')}."
    )
    return f"{found} {guarantee_text(report)}"


def guarantee_text(report: PrivacyReport) -> str:
    """Tell the guarantees in one sentence."""
    unit = UNITS[report.unit]
    if report.scheme == "none":
        return f"Nothing protects the {unit}s: this run added no noise."
    guarantees = report.guarantees
    many = report.colluding_sites
    helpers = f" with {count(many, 'colluding site')}" if many else ""
    return (
        f"One {unit}'s privacy loss is at most "
        f"ε = {number(guarantees.coalition.epsilon)} against the centre{helpers}, and "
        f"ε = {number(guarantees.outsider.epsilon)} against an outsider "
        f"(δ = {power_of_ten(report.delta)})."
    )


def methods(study: Study, grid: Grid, report: PrivacyReport) -> list[str]:
    """Tell what was done, in the words of a methods section."""
    return [image_methods(study.data, grid), analysis_methods(study, report)]


def reading(threshold: float, edges: str, noise: bool = False) -> list[str]:
    """Tell how to read the maps; ``noise`` if that of each voxel is known."""
    beyond = 200 * NormalDist().cdf(-threshold)
    *before, last = READING
    paragraphs = [*before, *([PRIVACY_NOISE] if noise else []), last]
    return [p.format(threshold=threshold, beyond=beyond, edges=edges) for p in paragraphs]


def image_methods(data: DataSection, grid: Grid) -> str:
    """Tell how images were loaded."""
    steps = [f"Images of the task {data.task} in {data.space} space were read at each site"]
    if data.smoothing:
        steps.append(f"smoothed ({data.smoothing:g} mm FWHM)")
    if data.detrend != "none":
        steps.append(f"freed of a {data.detrend} trend in each voxel")
    if data.confounds:
        steps.append(f"freed of the confounds {', '.join(data.confounds)}")
    if data.standardize != "none":
        steps.append(f"scaled (standardize: {data.standardize})")
    if data.atlas:
        steps.append("averaged for the analysis over the regions of an atlas")
    place = "the MNI152 template's brain" if data.mask == "template" else "the study's mask"
    after = f" Maps were smoothed after their release ({data.maps_smoothing:g} mm FWHM)."
    return (
        f"{', '.join(steps)}, and restricted to the {grid.features:,} voxels of {place}."
        f"{after if data.maps_smoothing else ''}"
    )


def analysis_methods(study: Study, report: PrivacyReport) -> str:
    """Tell how the sites' data were analysed."""
    rounds = len(report.releases)
    return (
        f"The sites' data were analysed together by {REGISTRY[study.algorithm].title} in "
        f"{count(rounds, 'round')}, without leaving the sites. In each round every site computed "
        f"one statistic, which one {UNITS[report.unit]} can move by no more than a bound fixed "
        f"beforehand. {_noise(report)} The loss was added up exactly as Gaussian "
        "differential privacy and converted to ε at the end."
    )


def _noise(report: PrivacyReport) -> str:
    """Tell how noise was added."""
    scheme = SCHEMES[report.scheme]
    own = sorted({release.statistic for release in report.releases if release.each})
    if not own or report.scheme == "none":
        return scheme
    if all(release.each for release in report.releases):
        return EACH["all"]
    return f"{scheme} {EACH['some'].format(names=', '.join(own))}"
