"""What every person was charged, and the most that anybody of a group was; sums are exact."""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable

import numpy as np
from numpy.typing import NDArray

from consortium.errors import LedgerError
from site_agent.ledger.persons import Ids

_SCALE = 2 * 1074  # bits: the square of every double is a whole number of 2**-_SCALE
Totals = NDArray[np.float64]


def exact_square(mu: float) -> int:
    """Return μ² as a whole number of 2^-2148; raises LedgerError if it is no number."""
    if not math.isfinite(mu):
        raise LedgerError(
            f"The ledger holds μ = {mu}, which is no price; restore it from a backup."
        )
    numerator, denominator = float(mu).as_integer_ratio()
    return (numerator * numerator) << (_SCALE - 2 * (denominator.bit_length() - 1))


def exact_root(total: int) -> float:
    """Return the root of a sum of `exact_square`; the only two roundings are in here."""
    return math.sqrt(exact_float(total))


def exact_float(total: int) -> float:
    """Return a sum of `exact_square` as the nearest double."""
    try:
        return total / (1 << _SCALE)
    except OverflowError:
        return math.inf


class PersonSums:
    """Sums of squares by person, for any number of accounts.

    A charge is of a whole group, so what is kept is exact by group. To find who was charged most
    there is a table of doubles beside it; what is told of them is added up exactly.

    Parameters
    ----------
    members : callable
        The persons of a group, by its digest, as sorted rows.
    """

    def __init__(self, members: Callable[[str], Ids]) -> None:
        self._members = members
        self._groups: dict[Hashable, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._tables: dict[Hashable, Totals] = {}

    def add(self, account: Hashable, group: str, square: int) -> None:
        """Charge a group; a negative square takes a charge back."""
        self._groups[account][group] += square
        table = self._tables.get(account)
        if table is None:
            return
        if square < 0:  # what rounding has left is not carried on
            del self._tables[account]
            return
        self._tables[account] = _plus(table, self._members(group), exact_float(square))

    def of(self, accounts: Iterable[Hashable], ids: Ids) -> Totals:
        """Sums of squares of persons over several accounts, to about 1e-13 of each."""
        found = np.zeros(len(ids))
        for account in accounts:
            table = self._table(account)
            known = ids < len(table)
            found[known] += table[ids[known]]
        return found

    def most(self, accounts: Iterable[Hashable], ids: Ids) -> int:
        """Exact sum of squares of the person among these who was charged most."""
        accounts = list(accounts)
        if not len(ids):
            return 0
        person = ids[int(np.argmax(self.of(accounts, ids)))]
        charged = [item for account in accounts for item in self._charged(account)]
        return sum(square for group, square in charged if _holds(self._members(group), person))

    @property
    def everybody(self) -> Ids:
        """Whoever was charged anything."""
        groups = {group for charged in self._groups.values() for group in charged}
        ids = [self._members(group) for group in sorted(groups)]
        return np.unique(np.concatenate(ids)) if ids else np.zeros(0, np.uint32)

    def _charged(self, account: Hashable) -> list[tuple[str, int]]:
        return list(self._groups[account].items()) if account in self._groups else []

    def _table(self, account: Hashable) -> Totals:
        if account not in self._tables:
            table = np.zeros(0)
            for group, square in self._charged(account):
                table = _plus(table, self._members(group), exact_float(square))
            self._tables[account] = table
        return self._tables[account]


def _plus(table: Totals, ids: Ids, square: float) -> Totals:
    if len(ids) and ids[-1] >= len(table):
        grown = np.zeros(int(ids[-1]) + 1)
        grown[: len(table)] = table
        table = grown
    table[ids] += square
    return table


def _holds(ids: Ids, person: np.uint32) -> bool:
    place = int(np.searchsorted(ids, person))
    return place < len(ids) and bool(ids[place] == person)
