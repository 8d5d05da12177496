"""Rules of plain language and of plain structure, and how often the project breaks each."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = ("consortium", "site_agent", "flows", "relay")
HELPERS = ("benchmarks", "tests/support")
"""Folders of measurements, and of the tests' helpers."""
PAGES = ("guides", "analyses", "explanation", "reference", "replication")
"""Folders of ``docs``."""

_VERBS = (
    r"(is|was|are|were|it|they|a|an|the|each|every|sites?|people|somebody|noise|clipping|leaves?"
    r"|comes?|came|differs|follows|exceeds|stud(?:y|ies)|does|must|would|may|can|else|you|nobody)"
)
RULES: Mapping[str, str] = {
    "a clause with 'what' in place of a noun": rf"(^|[\s(,;:])[Ww]hat {_VERBS}\b",
    "'person' for a participant": r"\b[Pp]ersons?\b(?!al)",
    "'tell' for report or reveal": r"\b(tells?|told|telling)\b",
    "'nobody' and 'somebody'": r"\b(nobody|somebody|everybody|anybody)\b",
    "a sentence that begins with 'Of a'": (
        r"(^|[.;:] )[Oo]f (a|an|the|each|every|what|who|two|three|its|those|these|both)\b"
    ),
    "'so that' for a result": r"\bso that\b",
    "'beside' for compared with": r"\bbeside\b",
    "'stands' for is stored": (
        r"\bstands? (in|at|for|behind|there|where|the|as)\b|\b(is|are) there\b"
    ),
    "'alone' for only": r"\b\w+ alone\b",
    "'lies' for is stored": r"\b(lies|lie|lay|lying)\b",
    "a partitive 'of it'": (
        r"\b(nothing|anything|all|much) of (it|them|this|him)\b|, of (which|whom)\b"
    ),
    "'who' in place of a noun": (
        r"\b(for|of|by|to|and|from|with|at) (who|whoever|whom)\b"
        r"|(^|[.;:] )(Who|Whoever) (?!are\b)"
    ),
    "'is no' for is not a": r"\b(is|are|was|were) no (?!longer|more\b|one\b)[a-z]",
    "a final 'too'": r", too\b",
    "'hold' for contain": r"\bholds? (?!the lock|for\b)",
    "'say yes' for approve": (r"\b(say|says|said) yes\b|\b(a|its|the|one|under one|older) yes\b"),
    "'go by' for follow": r"\b(goes|go|went|going) (by|on)\b",
    "'take off' for remove": (
        r"\b(taken|takes?|took) (off|out|up|away|back|apart)\b"
        r"|\bput (back|beside|together|aside|in)\b"
    ),
    "a program that knows or hears": (
        r"\b(knows?|believe[sd]?|remembers?|hears?|wishes|rests|notices|awaits|wants)\b"
    ),
    "'so many' for a number": r"\bso (many|few|much) (?!that)",
    "'else' for otherwise": r"[;,(] ?else\b|\bor else\b|(^|[.] )Else\b",
    "'at most' behind its number": r"\b(at the most|at most|at least)(?=[.;,)])",
    "'anew' for again": r"\b(anew|ahead|aside)\b",
    "'price' for privacy loss": r"\b(prices?|paid|pays? for|worth to)\b",
    "'as far as' for in proportion to": r"\bas far as\b",
    "'in the place of' for instead of": (r"\bin (the|its|their|his|her|another's) place of\b"),
    "'made-up' for simulated": r"\b(foretell\w*|foretold|mend(s|ed|ing)?|made[- ]up)\b",
    "two nouns without an article": (
        r"(^|[.;:,] )([Pp]lan|[Rr]eport|[Aa]pproval|[Pp]age|[Cc]heck) and "
        r"(report|approval|page|plan|table)\b"
    ),
    "a participle before its subject": (
        r"(^|[.] )(Released|Sent|Shown|Compared|Refused|Written) (is|are|was|were)\b"
        r"|(^|[.] )Refused:"
    ),
}
"""Regular expressions by rule. An occurrence is a mark."""
_RULES = [re.compile(rule, re.MULTILINE) for rule in RULES.values()]

_NO_PROSE = (r"(?s)<!--.*?-->", r"(?s)```.*?```", r"(?m)^    .*$")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_EXAMPLE = re.compile(r"(?m)^\s*(>>>|\.\.\.).*$")
_SHORTEST = 4
"""Words of a string that is shown to a user."""
MOST_POSITIONAL = 5


def marks(text: str) -> int:
    """Count the marks in a text."""
    return sum(len(rule.findall(text)) for rule in _RULES)


def rate(texts: Iterable[str]) -> float:
    """Return the marks per 1,000 words."""
    text = "\n".join(texts)
    return 1000 * marks(text) / max(len(text.split()), 1)


def prose(page: str) -> str:
    """Return the prose of a page in Markdown."""
    for pattern in _NO_PROSE:
        page = re.sub(pattern, "", page)
    return _LINK.sub(r"\1", page)


class Module:
    """The prose and the structure of one module.

    Parameters
    ----------
    path : Path
        Of its source.
    """

    def __init__(self, path: Path) -> None:
        self.source = path.read_text(encoding="utf-8")
        self.nodes = list(ast.walk(ast.parse(self.source)))
        self._strings = {id(node): node for node in self.nodes if isinstance(node, ast.Constant)}
        described = (node.value for node in self.nodes if isinstance(node, ast.Expr))
        self._docstrings = [node for node in described if _is_text(node)]
        raised = (node for node in self.nodes if isinstance(node, ast.Raise))
        self._errors = [each for node in raised for each in ast.walk(node) if _is_text(each)]

    def docstrings(self) -> Iterator[str]:
        """Yield docstrings, also those of attributes, without examples."""
        for node in self._docstrings:
            yield _EXAMPLE.sub("", node.value)

    def errors(self) -> Iterator[str]:
        """Yield the texts of raised errors."""
        yield from (node.value for node in self._errors)

    def shown(self) -> Iterator[str]:
        """Yield other strings of a few words, which users read."""
        used = {id(node) for node in (*self._docstrings, *self._errors)}
        for key, node in self._strings.items():
            if key not in used and _is_text(node) and len(node.value.split()) >= _SHORTEST:
                yield node.value

    def comments(self) -> Iterator[str]:
        """Yield the comments."""
        for token in tokenize.generate_tokens(io.StringIO(self.source).readline):
            if token.type == tokenize.COMMENT:
                yield token.string.lstrip("# ")

    def summaries(self) -> Iterator[str]:
        """Yield the docstrings of functions except properties and validators."""
        for node in self.nodes:
            if isinstance(node, ast.FunctionDef) and not any(map(_is_named, node.decorator_list)):
                text = ast.get_docstring(node)
                if text:
                    yield text

    def positional_calls(self) -> int:
        """Count the calls with more than five positional arguments."""
        calls = (node for node in self.nodes if isinstance(node, ast.Call))
        return sum(len(call.args) > MOST_POSITIONAL for call in calls)

    def star_tuples(self) -> int:
        """Count the calls with a tuple that is written out behind a star."""
        starred = (node.value for node in self.nodes if isinstance(node, ast.Starred))
        return sum(isinstance(value, ast.Tuple) for value in starred)

    def tuple_assignments(self) -> int:
        """Count the assignments of one tuple to another, both written out."""
        assigned = (node for node in self.nodes if isinstance(node, ast.Assign))
        return sum(
            isinstance(node.value, ast.Tuple) and isinstance(node.targets[0], ast.Tuple)
            for node in assigned
        )


def _is_text(node: object) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_named(decorator: ast.expr) -> bool:
    """Return whether a decorator makes an attribute, or shows the docstring to users."""
    text = ast.unparse(decorator)
    return any(word in text for word in ("property", "validator", "setter", "command", "callback"))


def templates() -> Iterator[str]:
    """Yield the templates of reports and pages, and the drafts of study files."""
    for folder in PRODUCT:
        for ending in ("*.j2", "*.yaml"):
            for path in sorted((ROOT / folder).rglob(ending)):
                yield path.read_text(encoding="utf-8")


def modules(folders: Iterable[str] = PRODUCT) -> Iterator[Module]:
    """Yield the modules in some folders of the project."""
    for folder in folders:
        yield from map(Module, sorted((ROOT / folder).rglob("*.py")))


def imported_names(analysis: str) -> int:
    """Count the names that an analysis imports from the product outside its own modules."""
    home = ROOT / "consortium" / "algorithms"
    files = [*home.glob(f"{analysis}*.py"), *(home / analysis).rglob("*.py")]
    own = f"consortium.algorithms.{analysis}"
    found: set[tuple[str, str]] = set()
    for node in (node for file in files for node in Module(file).nodes):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PRODUCT):
            module = node.module or ""
            found |= {(module, name.name) for name in node.names if not module.startswith(own)}
    return len(found)


def first_word(summary: str) -> str:
    """Return the first word of a docstring."""
    return summary.split()[0].strip(".,:;")
