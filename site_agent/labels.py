"""Participants' labels: one canonical form for files and marks; rows that name no participant.

A spreadsheet turns ``sub-001`` into ``1`` or ``1.0``, and a file list adds a slash. All of these
are one participant. BIDS allows ``sub-1`` and ``sub-01`` as two participants: a site that has both
states ``labels: exact`` in its site.yaml.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import product

from site_agent.advice import exact_labels

SESSION = "_ses-"
"""Separator of a participant's label and a session's in the name of a row."""
_FRACTION = re.compile(r"(\d+)(\.0*|,0{1,2})")
_SCIENTIFIC = re.compile(r"\d+(\.\d+)?e\+?\d{1,2}", re.IGNORECASE)
_PADDED = re.compile(r"\A(\D*)0+(?=\d)")
_NUMBERED = re.compile(r"\D*\d+")
_PREFIX = re.compile(r"sub(-(?=.)|[_ ]?(?=\d+$))", re.IGNORECASE)
_WRAPPED = re.compile(r"=?(['\"])(.*)\1")
_DASHES = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2212\ufe63\uff0d"), "-")
_FORMAT = "Cf"
"""Unicode category of characters that are not visible, such as a zero-width space."""
_AVERAGES = {"mean", "average", "avg", "median", "mittelwert", "moyenne", "media", "promedio"}
_SPREADS = {"sd", "std", "stdev", "stddev", "sem", "var", "variance"}
_EXTREMES = {"min", "max", "minimum", "maximum"}
_TOTALS = {"sum", "total", "totals", "count", "n", "grand", "valid", "summe", "gesamt"}
_SUMMARY_WORDS = frozenset(_AVERAGES | _SPREADS | _EXTREMES | _TOTALS)
_FREESURFER = {"fsaverage", "fsaverage3", "fsaverage4", "fsaverage5", "fsaverage6", "fsaverage_sym"}
_TEMPLATES = frozenset(_FREESURFER | {"bert", "cvs_avg35", "template", "group"})
_SPACED = re.compile(r"[\s(=:]")
_PREFIXES = ("", "SUB-", "Sub-")
_ENDS = ("", ".0", ".00", "/")
_WIDEST = 16


def plain_label(text: str) -> str:
    """Return a label without decoration, in the letters in which it is written.

    ``sub-``, the folders of a path, quotes, white space, slashes and invisible characters are
    removed. Dashes and digits of other scripts become those of ASCII.

    Parameters
    ----------
    text : str
        A cell of a table, or the name of a folder.
    """
    if text.isascii() and (text[4:] if text[:4] == "sub-" else text).isalnum():
        bare = text.removeprefix("sub-")
        return bare if bare[:3].lower() != "sub" else _PREFIX.sub("", bare, count=1)
    bare = text if text.isascii() else _with_plain_signs(text)
    wrapped = _WRAPPED.fullmatch(bare.strip())
    bare = (wrapped[2] if wrapped else bare).strip().removeprefix("'")
    bare = without_folders(bare)
    return _PREFIX.sub("", bare, count=1) if _PREFIX.match(bare) else bare


def without_folders(text: str) -> str:
    """Return the last name of a path; a label such as 2019/017 is not a path.

    A path begins with a slash, a dot or a drive, or its last name begins with ``sub``.
    """
    bare = text.rstrip("/\\ ")
    last = re.split(r"[/\\]", bare)[-1].strip()
    is_path = re.match(r"[./\\]|[A-Za-z]:", bare) or last[:3].lower() == "sub"
    return last if is_path else bare


def _with_plain_signs(text: str) -> str:
    """Return a text with ASCII dashes and digits, and without invisible characters.

    Accents and letters of other scripts stay, in composed form (NFC).
    """
    shown = unicodedata.normalize("NFC", text).translate(_DASHES)
    return "".join(
        str(unicodedata.decimal(letter)) if letter.isdecimal() else letter
        for letter in shown
        if unicodedata.category(letter) != _FORMAT
    )


def canonical_label(text: str) -> str:
    """Return the form that all spellings of one participant's label share.

    Letter case, ``sub-``, folders and slashes of a path, ``.0`` at the end of a number, an exponent
    and zeros before a number that ends the label don't count.

    Examples
    --------
    >>> {canonical_label(text) for text in ("sub-001", "1", "1.0", "SUB-01/", "sub_001")}
    {'1'}
    >>> canonical_label("sub-CTRL007"), canonical_label("a0b"), canonical_label("1.00E+05")
    ('ctrl7', 'a0b', '100000')
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


def session_label(text: str) -> str:
    """Return the form that all spellings of one session's label share, without ``ses-``."""
    bare = text.strip()
    return canonical_label(bare[4:] if bare[:4].lower() == "ses-" else bare)


def is_summary(label: str) -> bool:
    """Return whether a label names a row of means or of a template, which is not a participant's.

    Examples
    --------
    >>> [is_summary(text) for text in ("MEAN", "Total (n=40)", "sub-mean", "MEAN_CON", "N001")]
    [True, True, True, True, False]
    """
    name = plain_label(label).casefold()
    words = re.findall(r"[^\W\d_]+", name)
    if name in _TEMPLATES or name in _SUMMARY_WORDS:
        return True
    if not words or words[0] not in _SUMMARY_WORDS:
        return False
    return bool(_SPACED.search(name)) or (len(words[0]) > 2 and not re.search(r"\d", name))


def former_spellings(text: str) -> Iterator[str]:
    """Yield the spellings under which earlier versions may have marked a participant.

    They took a label as it was written, but for ``sub-`` in small letters: in another case, with
    zeros before its number, with an exponent, or with ``.0`` or a slash behind it.

    Parameters
    ----------
    text : str
        The label in any spelling.
    """
    canonical = canonical_label(text)
    letters = canonical.rstrip("0123456789") if _NUMBERED.fullmatch(canonical) else canonical
    digits = canonical[len(letters) :]
    raw = text.strip().removeprefix("sub-")
    yield from (raw, plain_label(text))
    yield from (unicodedata.normalize(form, raw) for form in ("NFC", "NFD"))
    numbers = [digits.zfill(width) for width in range(len(digits), _WIDEST + 1)] or [digits]
    cases = dict.fromkeys((letters, letters.upper(), letters.title(), letters.capitalize()))
    if letters.startswith("ndarinv"):  # labels of the NIMH Data Archive
        cases[f"NDARinv{letters[7:].upper()}"] = None
    for prefix, case, number, end in product(_PREFIXES, cases, numbers if digits else [""], _ENDS):
        spelling = f"{prefix}{case}{number}{end}"
        yield spelling
        if not spelling.isascii():
            yield unicodedata.normalize("NFD", spelling)
    if canonical.isdecimal() and canonical.endswith("0") and len(canonical) <= _WIDEST:
        yield from _with_exponent(canonical)


def _with_exponent(number: str) -> Iterator[str]:
    """Yield a whole number as spreadsheets and programs write it with an exponent."""
    factor = number.rstrip("0")
    zeros = len(number) - len(factor)
    for sign in ("e", "e+"):
        yield from (f"{factor}{sign}{zeros}", f"{factor}{sign}{zeros:02d}")
        yield from (f"{factor}{sign}{zeros}".upper(), f"{factor}{sign}{zeros:02d}".upper())
    for places in (0, 1, 2, 5):
        text = f"{float(number):.{places}e}"
        yield from (text, text.upper())


class Spellings:
    """The spellings of the participants' labels in one data set.

    Parameters
    ----------
    known : iterable of str
        Labels without ``sub-`` whose spelling all others are given.
    exact : bool
        Whether labels that differ in case or zeros are different participants.

    """

    def __init__(self, known: Iterable[str] = (), *, exact: bool = False) -> None:
        self.exact = exact
        self._spelled: dict[str, str] = {}
        self.twins: dict[str, str] = {}
        """Known labels that are one participant's with another one of them, and why neither can be
        used, in a sentence."""
        for label in known:
            other = self._spelled.setdefault(self.key(label), label)
            if other != label:
                self.twins |= dict.fromkeys(
                    (other, label),
                    f"The data set must have one folder for each participant, and has sub-{other} "
                    f"and sub-{label}. Merge them, or {exact_labels()} if they are two "
                    "participants.",
                )

    def key(self, label: str) -> str:
        """Return the form by which a label is compared."""
        return plain_label(label) if self.exact else canonical_label(label)

    def spelled(self, label: str) -> str:
        """Return the known spelling of a label; a label that is new becomes known."""
        return self._spelled.setdefault(self.key(label), plain_label(label))

    def knows(self, label: str) -> bool:
        """Return whether any spelling of a label is known."""
        return self.key(label) in self._spelled

    def all(self) -> set[str]:
        """Return every label that is known, each in its one spelling."""
        return set(self._spelled.values())

    def row(self, name: str) -> str:
        """Return the known spelling of a row's name: a label, or a label and a session."""
        label, mark, session = name.partition(SESSION)
        return (
            f"{self.spelled(label)}{SESSION}{session_label(session)}"
            if mark
            else self.spelled(label)
        )
