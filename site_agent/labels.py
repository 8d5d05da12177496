"""Participants' labels: one canonical form for matching files and for the ledger's marks.

A spreadsheet turns ``sub-001`` into ``1`` or ``1.0``, and a file list adds a slash. All of these
are one participant. BIDS allows ``sub-1`` and ``sub-01`` as two participants: a site that has both
states ``labels: exact`` in its site.yaml.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import product

from consortium.errors import DataError
from site_agent.advice import exact_labels

SESSION = "_ses-"
"""Separator of a participant's label and a session's in the name of a row."""
_FRACTION = re.compile(r"(\d+)\.0*")
_SCIENTIFIC = re.compile(r"\d(\.\d+)?e\+\d{1,2}", re.IGNORECASE)
_PADDED = re.compile(r"\A(\D*)0+(?=\d)")
_NUMBERED = re.compile(r"\D*\d+")
SUMMARIES = frozenset(
    (
        *("mean", "average", "avg", "median", "sd", "std", "stdev", "stddev", "sem", "var"),
        *("variance", "min", "max", "minimum", "maximum", "sum", "total", "totals", "count", "n"),
        *("mittelwert", "summe", "moyenne", "media", "fsaverage", "fsaverage4", "fsaverage5"),
        *("fsaverage6", "fsaverage_sym", "bert", "cvs_avg35"),
    )
)
"""Labels, in small letters, of rows that spreadsheets and FreeSurfer add and that are not a
participant's."""


_SLASHES = ("/", "\\")
_PREFIXES, _ENDS, _WIDEST = ("", "SUB-", "Sub-"), ("", ".0", "/"), 12


def plain_label(text: str) -> str:
    """Return a label without ``sub-``, surrounding white space and slashes.

    Parameters
    ----------
    text : str
        A cell of a table, or the name of a folder.
    """
    bare = text.strip()
    if bare[-1:] in _SLASHES or bare[:1] in _SLASHES:
        bare = bare.strip("/\\").strip()
    bare = bare if bare.isascii() else unicodedata.normalize("NFC", bare)
    return bare[4:] if len(bare) > 4 and bare[:4].casefold() == "sub-" else bare


def canonical_label(text: str) -> str:
    """Return the form that all spellings of one participant's label share.

    Letter case, ``sub-``, a slash at the end, ``.0`` at the end of a number and zeros before a
    number that ends the label don't count.

    Examples
    --------
    >>> {canonical_label(text) for text in ("sub-001", "1", "1.0", "SUB-01/")}
    {'1'}
    >>> canonical_label("sub-CTRL007"), canonical_label("a0b")
    ('ctrl7', 'a0b')
    """
    label = plain_label(text)
    if label.isascii() and label.isdecimal():
        return label.lstrip("0") or "0"
    label = unicodedata.normalize("NFKC", label).casefold()
    if _SCIENTIFIC.fullmatch(label):
        label = f"{float(label):.0f}"
    whole = _FRACTION.fullmatch(label)
    label = whole[1] if whole else label
    return _PADDED.sub(r"\1", label, count=1) if _NUMBERED.fullmatch(label) else label


def is_summary(label: str) -> bool:
    """Whether a label names a row of means or another row that is not a participant's."""
    return plain_label(label).casefold() in SUMMARIES


def former_spellings(label: str) -> Iterator[str]:
    """Yield the spellings under which earlier versions may have marked a participant.

    They took a label as it was written, but for ``sub-`` in small letters: in another case, with
    zeros before its number, or with ``.0`` or a slash behind it.

    Parameters
    ----------
    label : str
        In any spelling.
    """
    canonical = canonical_label(label)
    letters = canonical.rstrip("0123456789") if _NUMBERED.fullmatch(canonical) else canonical
    digits = canonical[len(letters) :]
    numbers = [digits.zfill(width) for width in range(len(digits), _WIDEST + 1)] or [digits]
    cases = dict.fromkeys((letters, letters.upper(), letters.title(), letters.capitalize()))
    yield plain_label(label)
    for prefix, case, number, end in product(_PREFIXES, cases, numbers if digits else [""], _ENDS):
        yield f"{prefix}{case}{number}{end}"


class Spellings:
    """The spellings of the participants' labels in one data set.

    Parameters
    ----------
    known : iterable of str
        Labels without ``sub-`` whose spelling all others are given.
    exact : bool
        Whether labels that differ in case or zeros are different participants.

    Raises
    ------
    DataError
        If two of the known labels have one canonical form, and they are not exact.
    """

    def __init__(self, known: Iterable[str] = (), *, exact: bool = False) -> None:
        self.exact = exact
        self._spelled: dict[str, str] = {}
        self._sessions: dict[str, str] = {}
        for label in known:
            other = self._spelled.setdefault(self.key(label), label)
            if other != label:
                raise DataError(
                    f"The data set must have one folder for each participant, and has sub-{other} "
                    f"and sub-{label}. Merge them, or {exact_labels()} if they are two "
                    "participants."
                )

    def key(self, label: str) -> str:
        """Return the form by which a label is compared."""
        return plain_label(label) if self.exact else canonical_label(label)

    def spelled(self, label: str) -> str:
        """Return the known spelling of a label; a label that is new becomes known."""
        return self._spelled.setdefault(self.key(label), plain_label(label))

    def knows(self, label: str) -> bool:
        """Whether any spelling of a label is known."""
        return self.key(label) in self._spelled

    def all(self) -> set[str]:
        """Return every label that is known, each in its one spelling."""
        return set(self._spelled.values())

    def row(self, name: str) -> str:
        """Return the known spelling of a row's name: a label, or a label and a session."""
        label, mark, session = name.partition(SESSION)
        if not mark:
            return self.spelled(label)
        own = self._sessions.setdefault(self.key(session), session)
        return f"{self.spelled(label)}{SESSION}{own}"
