"""Named attacks on the real code: each meets its guard, and would do harm without it."""

import re
from pathlib import Path

import pytest

from consortium.errors import ConsortiumError
from tests.attacks.attack_kinds import ATTACKERS, Attack, Stage
from tests.attacks.catalogue import UNGUARDED, attacks, markdown

ATTACKS = {each.name: each for each in attacks()}


def _harmed(attack: Attack, stage: Stage) -> bool:
    """Attack; an error that the software declares is a clean stop."""
    try:
        return attack.act(stage)
    except ConsortiumError as error:
        stage.said.append(str(error))
        return False


@pytest.mark.parametrize("name", ATTACKS)
def test_the_guard_holds(name: str, tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    assert not _harmed(ATTACKS[name], stage)
    assert re.search(ATTACKS[name].stops, "\n".join(stage.said)), stage.said


@pytest.mark.parametrize("name", ATTACKS)
def test_without_its_guard_it_succeeds(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path)
    with monkeypatch.context() as patch:
        ATTACKS[name].disarm(patch)
        assert _harmed(ATTACKS[name], stage), stage.said


def test_the_catalogue_is_whole() -> None:
    assert len(ATTACKS) == len(attacks()) >= 24, "two attacks have one name, or some are missing"
    assert {each.attacker for each in ATTACKS.values()} == set(ATTACKERS)
    for each in ATTACKS.values():
        assert each.sentence.endswith("."), each.name
        assert f"`{each.guard}`" in markdown()
    assert not {row.name for row in UNGUARDED} & set(ATTACKS)
