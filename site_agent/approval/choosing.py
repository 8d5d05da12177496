"""How many persons a study's rules take here, and how near that comes to telling of one of them.

How many persons take part is public. Two such numbers tell of one person if the rules behind them
differ by that person only; so rules are held against nobody, against everybody, and against those
of every other study that was ever approved here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path

from consortium.errors import DataError
from consortium.membership.keys import Identity
from consortium.study.choice import PersonRule
from consortium.study.spec import Study
from site_agent.approval.record import approvals, withdrawn
from site_agent.config import SiteConfig
from site_agent.data.people import participants_of, read_left_out, taken
from site_agent.data.tsv import read_rows
from site_agent.policy.refusals import Choice

Rules = Mapping[str, PersonRule]


def choice_here(
    folder: Path, config: SiteConfig, identity: Identity, study: Study
) -> Choice | None:
    """Count whom a study's rules take of the site's participants.tsv; None if it has no rules.

    Raises
    ------
    DataError
        If the table, or the hospital's own, can't be used.
    ConfigurationError
        If a record of what is approved can't be read.
    """
    if not study.data.persons:
        return None
    known = chain(approvals(folder, identity), withdrawn(folder, identity))
    return choice_of(config, study.data.persons, (each.study for each in known))


def choice_of(config: SiteConfig, rules: Rules, others: Iterable[Study]) -> Choice:
    """Count whom rules take, whom they leave out, and by how many they differ from others'.

    A study whose columns the table has no more is not compared.

    Raises
    ------
    DataError
        As `choice_here`.
    """
    table = participants_of(config.dataset)
    out = set(read_left_out(config.left_out)) if config.left_out else set[str]()
    everybody, mine = _people(table, {}) - out, _people(table, rules) - out
    apart: list[tuple[str, int]] = []
    for other in others:
        theirs = other.data.persons
        if theirs and theirs != rules:
            with suppress(DataError):
                apart.append((other.study, len(mine ^ (_people(table, theirs) - out))))
    return Choice(len(mine), len(everybody), tuple(apart))


def _people(table: Path, rules: Rules) -> set[str]:
    return {label for label, row in read_rows(table, rules) if taken(row, rules)}
