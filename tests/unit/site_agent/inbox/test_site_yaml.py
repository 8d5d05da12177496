"""Fields of site.yaml that a form changes: nothing else of the file changes."""

from pathlib import Path

import pytest

from consortium.errors import ConfigurationError
from site_agent.config import Alias, SiteConfig
from site_agent.inbox.site_yaml import set_alias, set_left_out
from site_agent.layout import CONFIG

ALIAS = Alias(column="Dx", levels={"SCZ": ("scz", "1")})
HAND = "# ours\nname: east  # our name\ndataset: bids\nexchange: ../x\n"
FORMS = {
    "missing": HAND,
    "spaces": f"aliases:   {{}} # none yet\n{HAND}",
    "deep": f"aliases:\n  sex:\n    levels:\n      M:\n      - '1'\n      - m # ours\n\n\n{HAND}",
    "flow": f"aliases: {{sex: {{column: Sex}}}}  # two\n{HAND}",
    "block": f"aliases:\n  sex:\n    column: Sex\n    levels: {{}}\n{HAND}",
    "last": f"{HAND}aliases:\n  sex:\n    column: Sex",
    "folded": f"aliases: {{sex:\n    {{column: Sex}}}}\n{HAND}",
    "quoted": f"'aliases': {{}}\n{HAND}",
}


def _nothing() -> None:
    return None


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_an_alias_is_set_and_removed_and_comments_stay(tmp_path: Path, text: str) -> None:
    path = tmp_path / CONFIG
    path.write_text(text)
    path.chmod(0o640)
    before = SiteConfig.load(tmp_path)
    set_alias(tmp_path, "diagnosis", ALIAS, _nothing)
    after = SiteConfig.load(tmp_path)
    assert after.aliases == {**before.aliases, "diagnosis": ALIAS}
    assert after.model_copy(update={"aliases": {}}) == before.model_copy(update={"aliases": {}})
    assert "# ours" in path.read_text()
    assert "name: east  # our name" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o640
    set_alias(tmp_path, "diagnosis", None, _nothing)
    set_alias(tmp_path, "not there", None, _nothing)
    assert SiteConfig.load(tmp_path) == before


def test_the_file_of_init_keeps_its_explanations(tmp_path: Path) -> None:
    SiteConfig.create("east", tmp_path / "bids", str(tmp_path / "x")).save(tmp_path)
    path = tmp_path / CONFIG
    before = path.read_text().splitlines()
    set_alias(tmp_path, "diagnosis", ALIAS, _nothing)
    set_left_out(tmp_path, "left-out.tsv")
    after = path.read_text().splitlines()
    assert len(after) == len(before)
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert changed == [
        "left_out: left-out.tsv",
        "aliases: {diagnosis: {column: Dx, levels: {SCZ: [scz, '1']}}}",
    ]


@pytest.mark.parametrize("column", ["a: b", "x\ny", "{", "&a", "!!python/object", "<<", "~", "1"])
def test_any_name_is_text(tmp_path: Path, column: str) -> None:
    SiteConfig.create("east", tmp_path / "bids", str(tmp_path / "x")).save(tmp_path)
    before = (tmp_path / CONFIG).read_text()
    alias = Alias(column=f"{column} # x", levels={column: (f"'{column}\"",)})
    try:
        set_alias(tmp_path, column, alias, _nothing)
    except ConfigurationError:
        assert (tmp_path / CONFIG).read_text() == before
        return
    assert SiteConfig.load(tmp_path).aliases == {column: alias}


def test_an_invalid_file_or_value_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / CONFIG
    path.write_text(HAND + "wrong: 1\n")
    with pytest.raises(ConfigurationError, match="wrong"):
        set_alias(tmp_path, "diagnosis", ALIAS, _nothing)
    assert path.read_text() == HAND + "wrong: 1\n"
    path.write_text(HAND)

    def stop() -> None:
        raise ConfigurationError("changed")

    with pytest.raises(ConfigurationError, match="changed"):
        set_alias(tmp_path, "diagnosis", ALIAS, stop)
    assert path.read_text() == HAND
