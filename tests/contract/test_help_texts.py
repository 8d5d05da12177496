"""Every command's help begins with a verb, every option's is a noun phrase with its default."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from consortium.coordinator.cli import app as centre
from site_agent.cli import app as site

VERBS = frozenset(
    (Path(__file__).parents[1] / "support" / "verbs.txt").read_text(encoding="utf-8").split()
)
APPS = {"consortium": centre, "site-agent": site}


def commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Yield a command and all commands below it, with the names by which they are called."""
    yield name, command
    for inner, each in getattr(command, "commands", {}).items():
        yield from commands(f"{name} {inner}", each)


COMMANDS = dict(
    pair for name, app in APPS.items() for pair in commands(name, typer.main.get_command(app))
)
NO_NOUN = re.compile(
    r"^(?:Also|After|As|By|Decides|Do|Don't|Else|For|From|How|If|In|Instead|It|Its|Not|On|Only|So|Such"
    r"|Then|This|To|What|When|Where|Whether|Which|Who|With|Without)\b"
)
"""First words of help that is no noun phrase."""
NOUNS = {"Name", "Place", "Time"}
"""Verbs that are nouns as well."""


def options() -> list[tuple[str, bool, str]]:
    """Return every option and argument: its name, whether it is a switch, and its help."""
    return [
        (f"{name} {each.opts[0]}", getattr(each, "is_flag", False), getattr(each, "help", "") or "")
        for name, command in COMMANDS.items()
        for each in command.params
    ]


def wrong_help(switch: bool, text: str) -> bool:
    """Return whether the help of an option is neither a noun phrase nor a switch's verb."""
    (first, *_) = text.split() or [""]
    noun = first not in VERBS - NOUNS and not NO_NOUN.match(text)
    return not text.endswith((".", "\u2026", ")")) or not (first in VERBS if switch else noun)


def test_the_help_of_a_command_begins_with_a_verb() -> None:
    said = {name: (each.help or "?").split()[0] for name, each in COMMANDS.items()}
    programs = {name: said.pop(name) for name in APPS}
    assert len(said) > 35
    assert len(programs) == 2
    assert {name: word for name, word in said.items() if word not in VERBS} == {}


def test_the_help_of_an_option_is_a_noun_phrase_and_of_a_switch_a_verb() -> None:
    found = options()
    assert len(found) > 150
    assert [(name, text) for name, switch, text in found if wrong_help(switch, text)] == []


def test_a_default_in_words_is_in_brackets() -> None:
    told = [(name, text) for name, _, text in options() if "default" in text]
    assert len(told) > 10
    assert [(name, text) for name, text in told if "(default: " not in text] == []


@pytest.mark.parametrize(
    ("switch", "text"),
    [
        (False, "Also list the releases."),
        (False, "Check a file."),
        (False, "Where people are served."),
        (False, "A place without a stop"),
        (True, "The page."),
        (False, ""),
    ],
)
def test_help_of_another_form_is_found(switch: bool, text: str) -> None:
    assert wrong_help(switch, text)


def test_the_page_of_study_fields_has_no_chain_of_kinds() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "study-fields.md"
    kinds = [
        line.split("|")[2] for line in page.read_text("utf-8").splitlines() if line[:3] == "| `"
    ]
    assert len(kinds) > 150
    assert [each for each in kinds if re.search(r"(\w+) and \1", each)] == []
