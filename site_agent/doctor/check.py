"""One finding of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Check:
    """What was looked at and found.

    Parameters
    ----------
    name : str
        What was looked at.
    state : {'ok', 'warn', 'fail'}
    message : str
        One sentence; it stays at the site.
    remedy : str
        What to do, if anything.
    """

    name: str
    state: Literal["ok", "warn", "fail"]
    message: str
    remedy: str = ""
