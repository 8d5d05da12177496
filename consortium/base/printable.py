"""Output on terminals whose encoding lacks some characters.

A Windows code page or ``LC_ALL=C`` has no ε. Such characters are written in ASCII. So no command
ends because of one.
"""

import codecs
import io
import sys
import unicodedata
from typing import TextIO

_HANDLER = "consortium.printable"
_WORDS = {
    **{"ε": "epsilon", "δ": "delta", "μ": "mu", "σ": "sigma", "τ": "tau", "κ": "kappa"},
    **{"Δ": "Delta", "Σ": "sum", "√": "sqrt", "∞": "infinity", "≤": "<=", "≥": ">=", "≈": "~"},
    **{"–": "-", "—": "-", "−": "-", "‑": "-", "·": "*", "×": "x", "→": "->", "…": "..."},
    **{"‘": "'", "’": "'", "“": '"', "”": '"', "•": "*", "±": "+-", "²": "^2", "³": "^3", "µ": "u"},
}


def make_printable() -> None:
    """Let standard output and error write every character, if need be by others."""
    codecs.register_error(_HANDLER, _replace)
    for stream in (sys.stdout, sys.stderr):
        _relax(stream)


def _relax(stream: TextIO) -> None:
    escaped = stream.errors == "surrogateescape" and codecs.lookup(stream.encoding).name == "utf-8"
    if isinstance(stream, io.TextIOWrapper) and not escaped:
        stream.reconfigure(errors=_HANDLER)


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Replace the characters that an encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(map(_in_ascii, text)), error.end


def _in_ascii(character: str) -> str:
    plain = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return _WORDS.get(character) or plain or "?"
