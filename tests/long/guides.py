"""Commands as the documents have them, with this machine's values in the place of theirs."""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def prompts(page: str) -> Iterator[str]:
    """What stands after a prompt on a page of the documents, in its order."""
    for block in _BLOCK.findall((DOCS / page).read_text(encoding="utf-8")):
        yield from (line[2:] for line in block.splitlines() if line.startswith("$ "))


def command(
    page: str, begins: str, values: Mapping[str, str], more: tuple[str, ...] = ()
) -> list[str]:
    """Take the one command of a page that begins so.

    Parameters
    ----------
    page : str
        Below ``docs/``.
    begins : str
        Its first words.
    values : mapping of str to str
        What stands there for example, and what it is here; each must be there.
    more : tuple of str
        Words to add, of which the page must name every option.

    Returns
    -------
    list of str
        The words.
    """
    line = next(line for line in prompts(page) if line.startswith(begins))
    words = shlex.split(line)
    assert set(values) <= set(words), (values, words)
    text = (DOCS / page).read_text(encoding="utf-8")
    assert all(word in text for word in more if word.startswith("--")), more
    return [*(values.get(word, word) for word in words), *more]
