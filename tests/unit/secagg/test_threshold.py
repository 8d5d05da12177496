from itertools import product

import pytest

from consortium.errors import StudyError
from consortium.secagg import most_dropouts, threshold

CASES = [(n, c, d) for n in range(1, 8) for c in range(n) for d in range(most_dropouts(n, c) + 1)]


def ballots(honest: int, dropouts: int) -> list[list[frozenset[int]]]:
    """Per honest site, every list of lost honest sites that it would answer: never itself."""
    every = [frozenset(i for i in range(honest) if bits >> i & 1) for bits in range(1 << honest)]
    return [[v for v in every if len(v) <= dropouts and i not in v] for i in range(honest)]


def reachable(honest: int, dropouts: int, watched: int, cap: int) -> set[tuple[int, ...]]:
    """Counts of 'lost' votes for the first sites, over all assignments of lists to sites.

    Sites answer independently, so that assignments with equal counts (up to ``cap``) are one.
    """
    counts = {(0,) * watched}
    for choices in ballots(honest, dropouts):
        marks = {tuple(int(i in choice) for i in range(watched)) for choice in choices}
        counts = {
            tuple(min(cap, a + b) for a, b in zip(count, mark, strict=True))
            for count in counts
            for mark in marks
        }
    return counts


def broken(sites: int, colluding: int, dropouts: int, t: int) -> bool:
    """Whether some assignment of lists opens what must stay closed."""
    honest, needed = sites - colluding, t - colluding
    if needed <= 0:
        return True
    watched = min(dropouts + 1, honest)
    counts = reachable(honest, dropouts, watched, honest)
    # By symmetry the victims are the first sites, and site 0 is the one opened twice.
    too_many = dropouts < honest and any(min(count) >= needed for count in counts)
    both = any(count[0] >= needed and honest - count[0] >= needed for count in counts)
    return too_many or both


@pytest.mark.parametrize(("sites", "colluding", "dropouts"), CASES)
def test_no_assignment_of_lists_breaks_the_threshold(
    sites: int, colluding: int, dropouts: int
) -> None:
    t = threshold(sites, colluding, dropouts)
    assert colluding < t <= sites - dropouts
    assert not broken(sites, colluding, dropouts, t)


@pytest.mark.parametrize(("sites", "colluding", "dropouts"), [c for c in CASES if c[2]])
def test_one_less_is_broken(sites: int, colluding: int, dropouts: int) -> None:
    assert broken(sites, colluding, dropouts, threshold(sites, colluding, dropouts) - 1)


@pytest.mark.parametrize(("sites", "colluding"), [(3, 0), (4, 0), (4, 1), (5, 0), (5, 1)])
def test_the_counting_of_votes_is_the_enumeration(sites: int, colluding: int) -> None:
    honest = sites - colluding
    direct = {
        tuple(sum(i in choice for choice in chosen) for i in range(2))
        for chosen in product(*ballots(honest, 1))
    }
    assert reachable(honest, 1, 2, honest) == direct


@pytest.mark.parametrize("honest", range(1, 60))
def test_possible_dropouts(honest: int) -> None:
    most = most_dropouts(honest + 2, 2)
    assert most * (most + 1) < honest <= (most + 1) * (most + 2)
    assert threshold(honest + 2, 2, most) <= honest + 2 - most
    with pytest.raises(StudyError, match=f"dropouts must be at most {most} with"):
        threshold(honest + 2, 2, most + 1)


def test_known_values() -> None:
    assert [most_dropouts(n, 0) for n in (1, 2, 3, 6, 7, 12, 13)] == [0, 0, 1, 1, 2, 2, 3]
    assert threshold(4, 1, 1) == 3
    assert threshold(10, 3, 2) == 8
    assert threshold(5, 1, 0) == 4


@pytest.mark.parametrize("arguments", [(0, 0, 0), (3, 3, 0), (3, -1, 0), (3, 0, -1)])
def test_nonsense_is_refused(arguments: tuple[int, int, int]) -> None:
    with pytest.raises(StudyError):
        threshold(*arguments)
