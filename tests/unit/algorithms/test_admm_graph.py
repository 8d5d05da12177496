"""Graphs over a study's sites: who hears whom, and which graphs are refused."""

import pytest

from consortium.algorithms.admm.graph import neighbours, study_edges
from consortium.errors import StudyError

NAMES = ("north", "east", "south", "west")


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("ring", ((1, 3), (0, 2), (1, 3), (0, 2))),
        ("path", ((1,), (0, 2), (1, 3), (2,))),
        ("star", ((1, 2, 3), (0,), (0,), (0,))),
        ("complete", ((1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2))),
    ],
)
def test_the_forms(form, expected):
    assert neighbours(study_edges(4, (), form, ()), 4) == expected
    assert neighbours(study_edges(2, (), form, ()), 2) == ((1,), (0,))


def test_named_edges_need_no_order():
    pairs = [("west", "north"), ("south", "west"), ("east", "south")]
    assert study_edges(4, NAMES, "ring", pairs) == ((0, 3), (1, 2), (2, 3))


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([("north", "paris")], "north, east, south, west.*paris"),
        ([("north", "north")], "got north twice"),
        ([("north", "east"), ("east", "north")], "north and east"),
        ([("north", "east"), ("south", "west")], "from north to south, west"),
    ],
)
def test_wrong_graphs_are_refused(pairs, words):
    with pytest.raises(StudyError, match=words):
        study_edges(4, NAMES, "ring", pairs)


def test_one_site_has_no_neighbours():
    with pytest.raises(StudyError, match="two sites"):
        study_edges(1, NAMES[:1], "ring", ())
