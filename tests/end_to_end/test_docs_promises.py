"""Words and code agree: a sentence that promises something names the test that shows it."""

from pathlib import Path

import pytest

from tests.attacks.catalogue import attacks as catalogued
from tests.support.promises import attacks, missing, sentences, unproven

ROOT = Path(__file__).parents[2]
PROMISING_PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "explanation" / "privacy.md",
    ROOT / "docs" / "explanation" / "coarse-grid.md",
    ROOT / "docs" / "explanation" / "ledger.md",
    ROOT / "docs" / "explanation" / "threat-model.md",
    ROOT / "docs" / "guides" / "site.md",
    ROOT / "docs" / "guides" / "site-data.md",
    ROOT / "docs" / "guides" / "site-operation.md",
    ROOT / "docs" / "guides" / "site-speed.md",
]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
HERE = "tests/end_to_end/test_docs_promises.py::test_every_promise_names_what_shows_it"


@pytest.mark.parametrize("page", PROMISING_PAGES, ids=lambda page: page.name)
def test_every_promise_names_what_shows_it(page: Path) -> None:
    assert unproven(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_named_test_and_attack_is_there(page: Path) -> None:
    assert missing(page.read_text(encoding="utf-8")) == []


def test_the_attacks_are_those_of_the_catalogue() -> None:
    assert {each.name for each in catalogued()} <= attacks()


@pytest.mark.parametrize(
    "text",
    [
        "It is never sent.",
        f"It is never sent. <!-- test: {HERE} --> Nothing is.",
        f"Nothing is. It was. <!-- test: {HERE} -->",
        "| a | nobody sees it |",
        "# Limits of a page\n\nIt is refused.",
    ],
)
def test_a_promise_without_proof_is_noticed(text: str) -> None:
    assert len(unproven(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        f"It is never sent. <!-- test: {HERE} -->",
        f"It is never sent. <!-- test: {HERE} --> <!-- attack: silence -->",
        "## Limits\n\nIt is never sent.",
        "Choose a folder that only you can read.",
        "Software can't see it. <!-- not a promise: limit -->",
        "The code is `never`.\n\n```text\nnothing\n```",
    ],
)
def test_what_is_proven_or_no_promise_is_let_through(text: str) -> None:
    assert unproven(text) == []
    assert missing(text) == []


@pytest.mark.parametrize(
    "comment",
    [
        "test: tests/end_to_end/test_docs_promises.py::test_that_is_not_there",
        "test: tests/nowhere.py::test_a",
        "test: tests/support/promises.py::unproven",
        "attack: no-such-attack",
        "not a promise: because",
    ],
)
def test_a_name_of_nothing_is_noticed(comment: str) -> None:
    assert len(missing(f"It is never sent. <!-- {comment} -->")) == 1


def test_sentences_are_told_apart_with_what_stands_behind_them() -> None:
    text = "One. **Two is `a. B`.** <!-- attack: silence --> Three (3. of all). Four"
    found = [(each.text, len(each.proofs)) for each in sentences(text)]
    assert found == [("One.", 0), ("**Two is `a. B`.**", 1), ("Three (3. of all).", 0), ("Four", 0)]
