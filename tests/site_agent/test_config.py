"""The site's configuration: what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from consortium.errors import ConfigurationError
from site_agent.config import CONFIG, Limits, SiteConfig

GOOD = "name: east\ndataset: data\nexchange: mail\n"


def test_saved_and_loaded_is_the_same(tmp_path: Path) -> None:
    config = SiteConfig.create("east", tmp_path / "data", tmp_path / "mail")
    config = config.model_copy(update={"limits": Limits(subject=3.5)})
    config.save(tmp_path)
    assert SiteConfig.load(tmp_path) == config


def test_relative_paths_are_meant_from_the_folder(tmp_path: Path) -> None:
    (tmp_path / CONFIG).write_text(GOOD)
    assert SiteConfig.load(tmp_path).dataset == tmp_path / "data"


WRONG = {
    "": "field 'it'",
    "- a\n": "field 'it'",
    "name: [\n": "can't be read",
    GOOD.replace("east", "East!"): "field 'name'",
    GOOD.replace("exchange: mail\n", ""): "field 'exchange'",
    GOOD + "limit: 3\n": "field 'limit'",
    GOOD + "limits: {subject: -1}\n": "field 'limits.subject'",
    GOOD + "limits: {subject: .inf}\n": "field 'limits.subject'",
    GOOD + "limits: {delta: 0.7}\n": "field 'limits.delta'",
}


@pytest.mark.parametrize("text", WRONG)
def test_the_field_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / CONFIG).write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        SiteConfig.load(tmp_path)
    assert WRONG[text] in str(caught.value)
    assert str(tmp_path / CONFIG) in str(caught.value)


def test_not_text_or_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="can't be read"):
        SiteConfig.load(tmp_path)
    (tmp_path / CONFIG).write_bytes(b"\xff\xfe name")
    with pytest.raises(ConfigurationError, match="can't be read"):
        SiteConfig.load(tmp_path)


def test_a_name_that_no_study_could_use(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="field 'name'"):
        SiteConfig.create("../east", tmp_path, tmp_path)
