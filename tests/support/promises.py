"""Sentences of the documents that promise something, and the proofs that they name."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PROMISING = re.compile(
    r"\b(?:never|cannot|can't|only|nobody|no one|nothing|none|nowhere|always|whatever|whoever|"
    r"refus\w+|stays?|exact(?:ly)?|guarantee\w*|promise\w*|charged|encrypted|noticed|"
    r"hides?|protects?|protected|before (?:any|an|its|it)|do(?:es)? not|don't|doesn't|"
    r"costs? (?:no|nothing)|no (?!longer)\w+)\b",
    re.IGNORECASE,
)
"""Words by which a sentence is taken for a promise."""
NOT_PROMISES = ("limit", "assumption", "instruction", "definition", "what was printed")
"""Another reason for such a word in a sentence: ``<!-- not a promise: limit -->``."""
LIMITS = re.compile(r"^(?:## Limits|### Assumptions|\*\*What is not protected|Further limits)")
"""Begin of a part about limits, up to the next heading or paragraph in bold."""
INSTRUCTION = re.compile(
    r"^\W*(?:Choose|Keep|Leave|Put|Ask|Compare|Go|Give|Take|Approve|Install|Back|Do|Don't|Say)\b"
)
"""First words of a sentence that instructs the reader."""
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_GENERATED = re.compile(r"<!-- generated: .*?<!-- end -->", re.DOTALL)
_COMMENT = re.compile(r"<!--\s*(test|attack|not a promise):\s*(.*?)\s*-->")
_END = re.compile(r"[.!?](?:\*\*|\))*\s+(?=[^a-z\s])")
_CODE = re.compile(r"`[^`]*`|\]\([^)]*\)")


class Proof(NamedTuple):
    """A comment after a sentence: ``test``, ``attack`` or ``not a promise``, and its names."""

    kind: str
    name: str


class Sentence(NamedTuple):
    """A sentence of a document with the comments right behind it."""

    text: str
    proofs: tuple[Proof, ...]

    @property
    def promises(self) -> bool:
        """Whether it has a word of a promise, outside of code, and is not an instruction."""
        plain = _CODE.sub("", self.text)
        return bool(PROMISING.search(plain)) and not INSTRUCTION.match(plain)


def sentences(text: str) -> Iterator[Sentence]:
    """Yield a page's sentences without headings, code, generated blocks, and parts on limits."""
    limits = False
    for line in _GENERATED.sub("", _FENCE.sub("", text)).splitlines():
        limits = bool(LIMITS.match(line)) or (limits and not line.startswith(("#", "**")))
        if not limits and not line.startswith("#"):
            for cell in re.split(r"(?<!\\)\|", line) if line.startswith("|") else [line]:
                yield from _of_cell(cell)


def _of_cell(cell: str) -> Iterator[Sentence]:
    """Yield sentences between comments; text after a comment begins a new one."""
    proofs: list[Proof] = []
    parts = _COMMENT.split(cell)  # text, kind, name, text, kind, name, text ...
    waiting: str | None = None
    for text, kind, name in zip(
        parts[::3], [None, *parts[1::3]], [None, *parts[2::3]], strict=True
    ):
        if kind is not None and name is not None:
            proofs += [Proof(kind, each.strip()) for each in name.split(",")]
        pieces = _pieces(text)
        if pieces:
            if waiting is not None:
                yield Sentence(waiting, tuple(proofs))
            yield from (Sentence(piece, ()) for piece in pieces[:-1])
            waiting, proofs = pieces[-1], []
    if waiting is not None:
        yield Sentence(waiting, tuple(proofs))


def _pieces(text: str) -> list[str]:
    masked = _CODE.sub(lambda m: "x" * len(m[0]), text)
    cuts = [0, *(m.end() for m in _END.finditer(masked)), len(text)]
    found = [text[a:b].strip() for a, b in pairwise(cuts)]
    return [piece for piece in found if piece]


def unproven(text: str) -> list[str]:
    """Return the sentences of a page that promise something without naming a proof."""
    return [each.text for each in sentences(text) if each.promises and not each.proofs]


def missing(text: str) -> list[str]:
    """Return the names in a page's comments that do not exist."""
    return [name for kind, name in _named(text) if not _exists(kind, name)]


def _named(text: str) -> list[Proof]:
    found = _COMMENT.findall(re.sub(r"`[^`]*`", "", text))
    return [Proof(kind, name.strip()) for kind, names in found for name in names.split(",")]


def _exists(kind: str, name: str) -> bool:
    if kind == "not a promise":
        return name in NOT_PROMISES
    if kind == "attack":
        return name in attacks()
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
