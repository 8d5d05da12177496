"""Words and code agree: each sentence that promises something has tests that show it."""

from pathlib import Path

import pytest

from tests.attacks.catalogue import attacks as catalogued
from tests.support.promises import (
    Entry,
    attacks,
    changed,
    missing,
    proven,
    sentences,
    unproven,
)

ROOT = Path(__file__).parents[2]
PROMISING_PAGES = [
    "README.md",
    "docs/explanation/privacy.md",
    "docs/explanation/privacy-bounds.md",
    "docs/explanation/privacy-published.md",
    "docs/explanation/integers.md",
    "docs/explanation/coarse-grid.md",
    "docs/explanation/ledger.md",
    "docs/explanation/ledger-output.md",
    "docs/explanation/threat-model.md",
    "docs/guides/site.md",
    "docs/guides/inbox.md",
    "docs/guides/site-data.md",
    "docs/guides/site-operation.md",
    "docs/guides/site-speed.md",
]
"""Pages each of whose promises needs an entry."""
HERE = "tests/end_to_end/test_docs_promises.py::test_every_promise_is_shown_by_something"


@pytest.mark.parametrize("page", PROMISING_PAGES)
def test_every_promise_is_shown_by_something(page: str) -> None:
    assert unproven((ROOT / page).read_text(encoding="utf-8"), proven()[page]) == []


@pytest.mark.parametrize("page", proven())
def test_every_entry_is_a_sentence_of_its_page(page: str) -> None:
    assert changed((ROOT / page).read_text(encoding="utf-8"), proven()[page]) == []


@pytest.mark.parametrize("page", proven())
def test_every_named_test_and_attack_exists(page: str) -> None:
    assert [name for entry in proven()[page] for name in missing(entry)] == []


@pytest.mark.parametrize("page", proven())
def test_no_sentence_has_two_entries(page: str) -> None:
    texts = [entry["sentence"] for entry in proven()[page]]
    assert len(texts) == len({*texts})


def test_the_attacks_are_those_of_the_catalogue() -> None:
    assert {each.name for each in catalogued()} <= attacks()


@pytest.mark.parametrize(
    "text",
    [
        "It is never sent.",
        "Shown. Nothing is.",
        "| a | nobody sees it |",
        "# Limits of a page\n\nIt is refused.",
    ],
)
def test_a_promise_without_an_entry_is_found(text: str) -> None:
    assert len(unproven(text, [{"sentence": "Shown.", "tests": [HERE]}])) == 1


@pytest.mark.parametrize(
    "text",
    [
        "It is never sent.",
        "## Limits\n\nNothing is sent.",
        "Choose a folder that only you can read.",
        "The code is `never`.\n\n```text\nnothing\n```",
    ],
)
def test_a_promise_with_an_entry_and_other_sentences_pass(text: str) -> None:
    assert unproven(text, [{"sentence": "It is never sent.", "tests": [HERE]}]) == []


@pytest.mark.parametrize(
    "entry",
    [
        {"tests": ["tests/end_to_end/test_docs_promises.py::test_that_does_not_exist"]},
        {"tests": ["tests/nowhere.py::test_a"]},
        {"tests": ["tests/support/promises.py::unproven"]},
        {"attacks": ["no-such-attack"]},
        {"not a promise": "because"},
        {},
    ],
)
def test_an_entry_that_names_nothing_real_is_found(entry: Entry) -> None:
    assert len(missing({"sentence": "It is never sent.", **entry})) == 1


def test_a_reworded_sentence_is_found() -> None:
    entries: list[Entry] = [{"sentence": "It is never sent.", "attacks": ["silence"]}]
    assert changed("It is never sent. Nor read.", entries) == []
    assert changed("It is not sent.", entries) == ["It is never sent."]


def test_sentences_are_told_apart() -> None:
    text = "One. **Two is `a. B`.** Three (3. of all). `four` is code. Five"
    found = [each.text for each in sentences(text)]
    assert found == ["One.", "**Two is `a. B`.**", "Three (3. of all).", "`four` is code.", "Five"]
