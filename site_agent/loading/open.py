"""A site's data as a study asks for them: image series, or feature vectors."""

from pathlib import Path

from consortium.space.study_space import Space
from consortium.study.spec import Study
from site_agent.data.survey import Without, excludes_nobody
from site_agent.data.wording import NO_ALIASES, Aliases
from site_agent.engines.base import Engine
from site_agent.images.series import SiteDataset
from site_agent.loading.feature_vectors import FeatureDataset


def open_dataset(
    source: Path,
    study: Study,
    space: Space,
    cache: Path,
    engine: Engine | None = None,
    without: Without = excludes_nobody,
    late: Without = excludes_nobody,
    aliases: Aliases = NO_ALIASES,
    *,
    accept_unoriented: bool = False,
) -> SiteDataset | FeatureDataset:
    """Make the data set of a study; nothing is read yet.

    Persons are prepared and summed on the ``engine``; ``without`` tells whom to leave out, and
    ``late`` whom of those who would then take part; ``aliases`` are the site's own words.
    ``accept_unoriented`` states whether images without a stated orientation are used.
    """
    given = engine, without, late, aliases
    if study.features:
        return FeatureDataset(
            *(source, study, space, cache, *given), accept_unoriented=accept_unoriented
        )
    return SiteDataset(
        *(source, study.data, space, study.privacy.unit, cache, *given),
        accept_unoriented=accept_unoriented,
    )
