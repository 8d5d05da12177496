"""A site's data in the form that a study requires: image series, or feature vectors."""

from pathlib import Path

from consortium.algorithms.average_parameters import AverageParameters
from consortium.errors import DataError
from consortium.opened_study import OpenedStudy
from consortium.study.spec import Study
from site_agent.data.cap import NO_CAP, Cap
from site_agent.data.survey import Without, excludes_nobody
from site_agent.data.wording import PLAIN_TABLES, SiteTables
from site_agent.engines.base import Engine
from site_agent.images.coverage import Coverage
from site_agent.images.series import SiteDataset
from site_agent.loading.feature_vectors import FeatureDataset


def open_dataset(
    source: Path,
    opened: OpenedStudy,
    cache: Path,
    engine: Engine | None = None,
    without: Without = excludes_nobody,
    tables: SiteTables = PLAIN_TABLES,
    cap: Cap = NO_CAP,
) -> SiteDataset | FeatureDataset:
    """Make the data set of a study; nothing is read yet.

    Participants are prepared and summed on the ``engine``. ``without`` returns the participants to
    exclude. ``tables`` are the settings of the site's own tables, and ``cap`` its maximum number of
    participants.
    """
    study = opened.study
    if study.features:
        return FeatureDataset(
            source=source,
            opened=opened,
            cache=cache,
            engine=engine,
            without=without,
            tables=tables,
            cap=cap,
        )
    unit = study.privacy.unit
    return SiteDataset(
        source=source,
        data=study.data,
        space=opened.space,
        unit=unit,
        cache=cache,
        engine=engine,
        without=without,
        tables=tables,
        cap=cap,
    )


def check_anybody(data: SiteDataset | FeatureDataset) -> None:
    """Raise DataError with the reason if a study's loading finds no qualified participant."""
    if not data.lengths:
        raise DataError(data.nobody)


def coverage_of(data: SiteDataset | FeatureDataset, study: Study) -> tuple[Coverage, ...]:
    """Return the coverage of the study's images and surfaces by the site's participants.

    Raises DataError if a file of those who take part can't be used.
    """
    if isinstance(data, FeatureDataset):
        return data.coverage
    kept = isinstance(study.analysis, AverageParameters) and study.analysis.gaps > 0
    return data.coverage(kept=kept)
