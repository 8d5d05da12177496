"""Count the documentation's words page by page, by who wrote them and for what.

``python docs/word_counts.py`` prints the table; ``tests/contract/test_words.py`` holds the limits.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
EVIDENCE = "replication"
"""Folder of pages whose tables are measurements."""
GENERATED = {
    "commands",
    "errors",
    "messages",
    "modules",
    "privacy-report",
    "python",
    "study-fields",
}
"""Pages of ``docs/reference/`` that a program writes whole."""
_GENERATED = re.compile(r"<!-- (?:generated|measured): .*?<!-- end -->", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"^```.*?^```$|^ {4}[^\n]*$", re.MULTILINE | re.DOTALL)
_TABLE = re.compile(r"^\|.*$", re.MULTILINE)
_TARGET = re.compile(r"\]\([^)]*\)")


class Words(NamedTuple):
    """Words of one page by kind; what shows commands and their output is ``shown``."""

    prose: int
    tables: int
    evidence: int
    shown: int
    generated: int

    @property
    def written(self) -> int:
        """Words that somebody wrote for a reader: prose, and tables that hold no measurements."""
        return self.prose + self.tables


def pages() -> list[Path]:
    """The README and every page of ``docs/``."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def _count(text: str) -> int:
    """Words of a text: what has a letter or a digit; targets of links are none."""
    return sum(bool(re.search(r"\w", word)) for word in _TARGET.sub("]", text).split())


def _taken(pattern: re.Pattern[str], text: str) -> tuple[int, str]:
    """How many words a pattern finds in a text, and the text without them."""
    found = " ".join(pattern.findall(text))
    return _count(_COMMENT.sub(" ", found)), pattern.sub(" ", text)


def words(page: Path) -> Words:
    """Count the words of one page.

    Parameters
    ----------
    page : Path
        A Markdown file.

    Returns
    -------
    Words
        Its words by kind.
    """
    text = page.read_text(encoding="utf-8")
    if page.parent.name == "reference" and page.stem in GENERATED:
        return Words(0, 0, 0, 0, _count(text))
    generated, text = _taken(_GENERATED, text)
    shown, text = _taken(_CODE, _COMMENT.sub("", text))
    tables, text = _taken(_TABLE, text)
    measured = tables if page.parent.name == EVIDENCE else 0
    return Words(_count(text), tables - measured, measured, shown, generated)


def main() -> None:
    """Write the counts of every page, and their sums."""
    counts = {str(page.relative_to(ROOT)): words(page) for page in pages()}
    counts["all"] = Words(*map(sum, zip(*counts.values(), strict=True)))
    rows = [["page", "written", *Words._fields]]
    rows += [[name, str(count.written), *map(str, count)] for name, count in counts.items()]
    for name, *numbers in rows:
        sys.stdout.write(f"{name:<38}" + "".join(f"{number:>10}" for number in numbers) + "\n")


if __name__ == "__main__":
    main()
