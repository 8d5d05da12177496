"""Summary of everything that a study reads at a site, by the kind of each view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from consortium.errors import DataError
from consortium.space.study_space import ViewSpace
from consortium.study.spec import Study
from site_agent.data.survey import Subject
from site_agent.data.table_summary import summarize_tables
from site_agent.data.understood import Fact, Understanding
from site_agent.images.coverage import summarize_coverage
from site_agent.images.series import SiteDataset
from site_agent.images.summary import summarize_images, summarize_maps, summarize_series
from site_agent.loading.feature_vectors import FeatureDataset
from site_agent.loading.open import coverage_of

if TYPE_CHECKING:
    from consortium.views.eeg import EegView
    from consortium.views.fmri import FmriView
    from consortium.views.surface import SurfaceView


def understand(data: SiteDataset | FeatureDataset, study: Study) -> Understanding:
    """Return the summary of the files that a study reads at a site.

    Files that can't be read lead to no fact, since loading the data reports them.

    Parameters
    ----------
    data : SiteDataset or FeatureDataset
        The site's data, loaded.
    study : Study
        Its views name the files.
    """
    found = Understanding()
    if not isinstance(data, SiteDataset) or not isinstance(data.source, list | tuple):
        found += summarize_tables(data.source, study, data.tables)  # type: ignore[arg-type]
    if isinstance(data, SiteDataset):
        found += summarize_series(data.survey.subjects, data.data, data.space.target)
    else:
        for view in data.space.views:
            found += _apart(found, SUMMARIES[view.view.source](data, view), view.name)
        found += _of_series(data)
    with suppress(DataError):
        found += summarize_coverage(coverage_of(data, study))
    return Understanding(found.facts, tuple(dict.fromkeys(found.notes)))


def _apart(before: Understanding, found: Understanding, view: str) -> Understanding:
    """Name the view in topics that another view has with another finding."""
    known = dict(before.facts)
    new = [fact for fact in found.facts if known.get(fact.topic) != fact.finding]
    facts = (Fact(f"{t}, view '{view}'" if t in known else t, finding) for t, finding in new)
    return Understanding(tuple(facts), found.notes)


def scanned(data: SiteDataset | FeatureDataset) -> tuple[Subject, ...]:
    """Return the participants whose image series a study takes, whole or measured."""
    if isinstance(data, SiteDataset):
        return data.survey.subjects
    if not any(view.view.is_series for view in data.space.views):
        return ()
    own = data.source, data.study.data, data.space, data.unit, data.cache
    images = SiteDataset(*own, tables=data.tables)
    taken = set(data.people)
    return tuple(each for each in images.survey.subjects if each.label in taken)


def _of_series(data: FeatureDataset) -> Understanding:
    try:
        subjects = scanned(data)
    except DataError:
        return Understanding()
    if not subjects:
        return Understanding()
    timed = any(getattr(view.view, "measure", "") == "alff" for view in data.space.views)
    uses_time = True if timed else None
    return summarize_series(subjects, data.study.data, data.space.target, uses_time=uses_time)


def _of_table(data: FeatureDataset, view: ViewSpace[Any]) -> Understanding:
    """Return nothing: `summarize_tables` covers all tables of a study."""
    del data, view
    return Understanding()


def _of_images(data: FeatureDataset, view: ViewSpace[FmriView]) -> Understanding:
    if view.view.is_series:
        return Understanding()
    return summarize_images(data.source, view, data.study.data)


def _of_maps(data: FeatureDataset, view: ViewSpace[SurfaceView]) -> Understanding:
    return summarize_maps(data.source, view, data.study.data)


def _of_recordings(data: FeatureDataset, view: ViewSpace[EegView]) -> Understanding:
    from site_agent.eeg.summary import summarize_recordings  # MNE

    return summarize_recordings(data.source, view.view, data.study.data)


SUMMARIES: Mapping[str, Callable[[FeatureDataset, ViewSpace[Any]], Understanding]] = {
    "table": _of_table,
    "fmri": _of_images,
    "surface": _of_maps,
    "eeg": _of_recordings,
}
"""Summary of each kind of view, by the view's ``source``."""
