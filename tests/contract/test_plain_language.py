"""Prose and structure keep to the rules of plain language, within ceilings that only fall.

``python -m tests.contract.test_plain_language`` lowers the ceilings to the present numbers.
"""

import json
from functools import cache
from pathlib import Path

import pytest

from tests.support.prose_rules import (
    HELPERS,
    PAGES,
    ROOT,
    RULES,
    Module,
    first_word,
    imported_names,
    marks,
    modules,
    prose,
    rate,
    templates,
)

CEILINGS = Path(__file__).parents[1] / "ceilings.json"
VERBS = frozenset((ROOT / "tests" / "support" / "verbs.txt").read_text(encoding="utf-8").split())
AIM = 1.0
"""Marks per 1,000 words that are accepted: `lower` sets no ceiling below it."""
ANALYSES = ("average", "pca", "group_ica", "glm")
"""Analyses whose number of imported names is limited."""
EXAMPLES = {
    "a clause with 'what' in place of a noun": "Return what is released.",
    "'person' for a participant": "each person's scans",
    "'tell' for report or reveal": "the report tells the number",
    "'nobody' and 'somebody'": "nobody can read it",
    "a sentence that begins with 'Of a'": "Of a site: its key.",
    "'so that' for a result": "noise is added, so that it is private",
    "'beside' for compared with": "beside pooled data",
    "'stands' for is stored": "the key stands in the file",
    "'alone' for only": "headers alone",
    "'lies' for is stored": "the file lies in a folder",
    "a partitive 'of it'": "nothing of it",
    "'who' in place of a noun": "a list of who takes part",
    "'is no' for is not a": "this is no table",
    "a final 'too'": "sites sign it, too",
    "'hold' for contain": "folders hold files",
    "'say yes' for approve": "sites say yes",
    "'go by' for follow": "the loader goes by names",
    "'take off' for remove": "it is taken off",
    "a program that knows or hears": "the agent hears the end",
    "'so many' for a number": "after so many rounds",
    "'else' for otherwise": "a number, else 4",
    "'at most' behind its number": "four at most.",
    "'anew' for again": "compute anew",
    "'price' for privacy loss": "the price of a study",
    "'as far as' for in proportion to": "as far as it differs",
    "'in the place of' for instead of": "zeros in the place of values",
    "'made-up' for simulated": "made-up scans",
    "two nouns without an article": "Plan and report state it",
    "a participle before its subject": "Released are sums.",
}


@cache
def present() -> dict[str, float]:
    """Return the present numbers: marks per 1,000 words, percentages and counts."""
    product = list(modules())
    helpers = list(modules(HELPERS))
    texts = {
        "README": [prose((ROOT / "README.md").read_text(encoding="utf-8"))],
        "CHANGELOG": [prose((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))],
        "docstrings": [text for each in product for text in each.docstrings()],
        "errors": [text for each in product for text in each.errors()],
        "messages and help": [text for each in product for text in each.shown()],
        "comments": [text for each in product for text in each.comments()],
        "templates and drafts": list(templates()),
        "docstrings of benchmarks and helpers": [
            text for each in helpers for text in each.docstrings()
        ],
        "comments of benchmarks and helpers": [
            text for each in helpers for text in each.comments()
        ],
        "tables of benchmarks": [
            text for each in modules(("benchmarks",)) for text in each.shown()
        ],
    }
    for folder in PAGES:
        pages = sorted((ROOT / "docs" / folder).glob("*.md"))
        texts[f"docs/{folder}"] = [prose(page.read_text(encoding="utf-8")) for page in pages]
    return {
        **{f"marks per 1,000 words: {name}": round(rate(each), 1) for name, each in texts.items()},
        "functions whose docstring begins with no verb, %": _without_verb(product),
        "functions of benchmarks and helpers that begin with no verb, %": _without_verb(helpers),
        "calls with more than five positional arguments": sum(
            each.positional_calls() for each in product
        ),
        "calls with a tuple behind a star": sum(each.star_tuples() for each in product),
        "assignments of a tuple to a tuple": sum(each.tuple_assignments() for each in product),
        **{f"names from outside: {each}": imported_names(each) for each in ANALYSES},
    }


def _without_verb(measured: list[Module]) -> float:
    """Return the percentage of functions whose docstring does not begin with a verb."""
    summaries = [text for each in measured for text in each.summaries()]
    other = sum(first_word(text) not in VERBS for text in summaries)
    return round(100 * other / len(summaries), 1)


def test_no_number_exceeds_its_ceiling() -> None:
    ceilings = json.loads(CEILINGS.read_text(encoding="utf-8"))
    assert present().keys() == ceilings.keys()
    assert {name: value for name, value in present().items() if value > ceilings[name]} == {}


@pytest.mark.parametrize("name", RULES)
def test_every_rule_finds_its_example(name: str) -> None:
    assert marks(EXAMPLES[name]) == 1


def test_plain_prose_has_no_marks() -> None:
    plain = "Return the noisy sum. Each site stores its key in a file that only its owner reads."
    assert marks(plain) == 0


def test_code_and_links_of_a_page_are_no_prose() -> None:
    page = "See [the plan](told.md).\n\n```\nprice told\n```\n<!-- nobody told -->\n    told\n"
    assert prose(page).split() == ["See", "the", "plan."]


def lower() -> None:
    """Write the present numbers, and keep the ceilings that are lower."""
    before = json.loads(CEILINGS.read_text(encoding="utf-8")) if CEILINGS.exists() else {}
    numbers = {}
    for name, value in present().items():
        lowest = AIM if name.startswith("marks") else 0.0
        numbers[name] = min(max(value, lowest), before.get(name, value))
    CEILINGS.write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    lower()
