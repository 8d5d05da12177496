"""A site's folder as one value."""

from pathlib import Path

import pytest

from consortium.errors import ConfigurationError
from consortium.space.study_space import study_space
from site_agent.approval.folder import SiteFolder
from tests.support.membership_files import give_scans, papers


def test_series_are_prepared_in_the_cache_that_the_site_names(tmp_path: Path) -> None:
    place, _ = papers(tmp_path / "all")
    give_scans(place)
    folder, elsewhere = place.site("east"), tmp_path / "fast disk"
    settings = folder / "site.yaml"
    text = settings.read_text(encoding="utf-8")
    assert "\ncache: " in text
    lines = [f"cache: {elsewhere}" if x.startswith("cache: ") else x for x in text.splitlines()]
    settings.write_text("\n".join(lines) + "\n", encoding="utf-8")
    site = SiteFolder.open(folder)
    signed = site.papers(place.files.study, place.files.roster).signed
    space = study_space(signed.study, signed.folder)
    site.series(signed.study.data, space, signed.study.privacy.unit).prepare(0)
    assert any(path.is_file() for path in elsewhere.rglob("*"))
    assert not any(path.is_file() for path in (folder / "cache").rglob("*"))


def test_a_folder_without_settings_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="Make it with 'site-agent init'"):
        SiteFolder.open(tmp_path)
