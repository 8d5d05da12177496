"""Sentences of the documents that promise something, and ``tests/promises.yaml``."""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypedDict

import yaml

ROOT = Path(__file__).parents[2]
PROMISES = ROOT / "tests" / "promises.yaml"
PROMISING = re.compile(
    r"\b(?:never|cannot|can't|only|nobody|no one|nothing|none|nowhere|always|whatever|whoever|"
    r"refus\w+|stays?|exact(?:ly)?|guarantee\w*|promise\w*|charged|encrypted|noticed|"
    r"hides?|protects?|protected|before (?:any|an|its|it)|do(?:es)? not|don't|doesn't|"
    r"costs? (?:no|nothing)|no (?!longer)\w+)\b",
    re.IGNORECASE,
)
"""Words by which a sentence is taken for a promise."""
NOT_PROMISES = ("limit", "assumption", "instruction", "definition", "what was printed")
"""Other reasons for such a word in a sentence."""
LIMITS = re.compile(r"^(?:## Limits|### Assumptions|\*\*What is not protected|Further limits)")
"""Begin of a part about limits, up to the next heading or paragraph in bold."""
INSTRUCTION = re.compile(
    r"^\W*(?:Choose|Keep|Leave|Put|Ask|Compare|Go|Give|Take|Approve|Install|Back|Do|Don't|Say)\b"
)
"""First words of a sentence that instructs the reader."""
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_GENERATED = re.compile(r"<!-- generated: .*?<!-- end -->", re.DOTALL)
_END = re.compile(r"[.!?](?:\*\*|\))*\s+(?=[^a-z\s])")
_ITEM = re.compile(r"^(?:- |\d+\. )")
_CODE = re.compile(r"`[^`]*`|\]\([^)]*\)")

Entry = TypedDict(
    "Entry",
    {"sentence": str, "tests": list[str], "attacks": list[str], "not a promise": str},
    total=False,
)
"""A sentence of a page with the tests and attacks that show it, or why it is not a promise."""


class Sentence(NamedTuple):
    """A sentence of a document, and whether it is in a part on limits."""

    text: str
    limits: bool

    @property
    def promises(self) -> bool:
        """Whether it has a word of a promise, outside of code, and does not instruct the reader."""
        plain = _CODE.sub("", self.text)
        return bool(PROMISING.search(plain)) and not (self.limits or INSTRUCTION.match(plain))


@cache
def proven() -> Mapping[str, list[Entry]]:
    """Return the entries of ``tests/promises.yaml`` by page."""
    text = PROMISES.read_text(encoding="utf-8")
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a page without headings, code and generated blocks."""
    limits = False
    for line in _GENERATED.sub("", _FENCE.sub("", text)).splitlines():
        limits = bool(LIMITS.match(line)) or (limits and not line.startswith(("#", "**")))
        if not line.startswith("#"):
            for cell in re.split(r"(?<!\\)\|", line) if line.startswith("|") else [line]:
                yield from (Sentence(piece, limits) for piece in _pieces(cell))


def _pieces(text: str) -> list[str]:
    masked = _CODE.sub(lambda code: "X" * len(code[0]), text)
    cuts = [0, *(end.end() for end in _END.finditer(masked)), len(text)]
    found = [_ITEM.sub("", text[a:b].strip()) for a, b in pairwise(cuts)]
    return [piece for piece in found if piece]


def unproven(text: str, entries: list[Entry]) -> list[str]:
    """Return the sentences of a page that promise something and have no entry."""
    shown = {entry["sentence"] for entry in entries}
    return [each.text for each in sentences(text) if each.promises and each.text not in shown]


def changed(text: str, entries: list[Entry]) -> list[str]:
    """Return the sentences of entries that the page does not have."""
    present = {each.text for each in sentences(text)}
    return [entry["sentence"] for entry in entries if entry["sentence"] not in present]


def missing(entry: Entry) -> list[str]:
    """Return what an entry names that does not exist; its sentence if it names nothing."""
    reasons = [entry["not a promise"]] if "not a promise" in entry else []
    tests, attacked = entry.get("tests", []), entry.get("attacks", [])
    if not (tests or attacked or reasons):
        return [entry["sentence"]]
    return [
        *(each for each in tests if not _is_test(each)),
        *(each for each in attacked if each not in attacks()),
        *(each for each in reasons if each not in NOT_PROMISES),
    ]


def _is_test(name: str) -> bool:
    path, _, function = name.partition("::")
    return function.startswith("test_") and function in _functions(ROOT / path)


@cache
def _functions(path: Path) -> frozenset[str]:
    """Return the functions at the top of a file; none if the file is missing."""
    if not path.is_file():
        return frozenset()
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return frozenset(node.name for node in body if isinstance(node, ast.FunctionDef))


@cache
def attacks() -> frozenset[str]:
    """Return the names of all attacks, which are functions of a stage; no module is imported."""
    modules = (ROOT / "tests" / "attacks").glob("attacks_*.py")
    nodes = [node for path in modules for node in ast.parse(path.read_text("utf-8")).body]
    acts = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.decorator_list]
    return frozenset(node.name.replace("_", "-") for node in acts if _is_act(node))


def _is_act(node: ast.FunctionDef) -> bool:
    """Return whether a function is given the stage of an attack."""
    return [each.arg for each in node.args.args] == ["stage"]
