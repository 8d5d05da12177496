"""Sentences of a feature study's page: verdict, methods, how to read it."""

from __future__ import annotations

from consortium.algorithms.base import Result
from consortium.formatting import count
from consortium.report.privacy_report import PrivacyReport
from consortium.report.prose import analysis_methods, guarantee_text, image_methods
from consortium.space.study_space import Space, ViewSpace
from consortium.study.spec import Study
from consortium.views.eeg import EegView
from consortium.views.fmri import FmriView
from consortium.views.table import TableView

MEASURES = {
    "amplitude": "the standard deviation over time",
    "alff": "the amplitude of slow fluctuations",
    "components": "the strength of given component maps",
    "image": "one image per person",
}
IMAGES = (
    "Maps are drawn as robust z-scores: distance from the map's median in units of 1.4826 times "
    "the median absolute deviation. Voxels with |z| below {threshold:g} are not drawn. These are "
    "not test statistics over persons. The image files hold the values as they are."
)
POTENTIALS = (
    "Of a potential every channel's course is drawn, and those that reach furthest are named. "
    "Heads are seen from above with the nose up, at the peaks of the global field power."
)


def feature_verdict(study: Study, result: Result, report: PrivacyReport) -> str:
    """Tell the whole report in a few sentences."""
    persons = count(sum(site.units for site in report.sites), "person")
    views = ", ".join(view.name for view in study.features)
    found = f"{persons} at {count(len(report.sites), 'site')}, described by {views}."
    headline = f"{result.captions.headline} " if result.captions.headline else ""
    return f"{headline}{found} {guarantee_text(report)}"


def feature_methods(study: Study, space: Space, report: PrivacyReport) -> list[str]:
    """Tell what was done, in the words of a methods section."""
    images = any(isinstance(view, FmriView) for view in study.features)
    return [
        "Each site described every person who had all views by one vector: "
        + "; ".join(_view_text(view) for view in space.views)
        + ".",
        *([image_methods(study.data, space.grid)] if images else []),
        analysis_methods(study, report),
    ]


def feature_reading(space: Space, result: Result, threshold: float) -> list[str]:
    """Tell how to read the findings."""
    sources = {type(view.view) for view in space.views}
    sign = f"The sign of a {result.captions.column} is arbitrary, but the same in all views."
    return [
        f"{result.captions.meaning} {sign}" if result.captions.sign else result.captions.meaning,
        *([IMAGES.format(threshold=threshold)] if FmriView in sources else []),
        *([POTENTIALS] if EegView in sources else []),
    ]


def view_heading(space: ViewSpace) -> str:
    """Name of a view, and what it is."""
    view = space.view
    if isinstance(view, TableView):
        return f"{view.name} (columns of {view.file})"
    if isinstance(view, FmriView):
        return f"{view.name} (images: {MEASURES[view.measure]})"
    return f"{view.name} (EEG: {'mean over epochs' if view.measure == 'erp' else 'band power'})"


def _view_text(space: ViewSpace) -> str:
    view, size = space.view, count(space.size, "number")
    if isinstance(view, TableView):
        return f"{view.name} ({size}) from the columns of {view.file}"
    scaled = ", scaled to norm 1" if view.normalize else ""
    if isinstance(view, FmriView):
        return f"{view.name} ({size}), {MEASURES[view.measure]} of functional images{scaled}"
    band = f"{view.filter[0]:g} to {view.filter[1]:g} Hz"
    what = "the potential" if view.measure == "erp" else "band power"
    after = f" after {', '.join(view.events)}" if view.events else ""
    return f"{view.name} ({size}), {what}{after} on {len(view.channels)} channels ({band}){scaled}"
