"""Who adds rounds again: by default more sites than may collude, and none where none can."""

import pytest
from pydantic import ValidationError

from consortium.engine.closing import attesting, round_checkers
from consortium.study.spec import Study
from tests.support.cases import SITES, make_study


def with_checkers(wanted, **privacy):
    content = make_study("average", **privacy).model_dump(mode="json")
    return Study.model_validate({**content, "verification": {"checkers": wanted}})


def test_exact_sums_are_checked_by_more_than_may_collude():
    assert make_study("average").checkers == 2
    assert make_study("average", colluding_sites=0, dropouts=1).checkers == 2
    assert with_checkers(3).checkers == 3
    assert with_checkers(0).checkers == 0


@pytest.mark.parametrize("privacy", [{"boost": 1e4}, {"scheme": "local"}])
def test_other_studies_have_none_and_can_t_ask_for_them(privacy):
    assert make_study("average", **privacy).checkers == 0
    with pytest.raises(ValidationError, match="no site can show a sum without"):
        with_checkers(2, **privacy)


def with_open(**privacy):
    content = make_study("average", **privacy).model_dump(mode="json")
    return Study.model_validate({**content, "verification": {"open": True}})


def test_open_vectors_are_added_again_by_as_many():
    assert with_open(boost=1e4).checkers == 2
    assert with_open(boost=1e4, dropouts=1).checkers == 3


@pytest.mark.parametrize("privacy", [{}, {"scheme": "local", "boost": 1e4}])
def test_without_a_numeric_boost_there_are_no_vectors_to_open(privacy):
    with pytest.raises(ValidationError, match="open vectors require correlated noise"):
        with_open(**privacy)


@pytest.mark.parametrize("wanted", [1, 5])
def test_too_few_or_too_many_are_refused(wanted):
    with pytest.raises(ValidationError, match="show nothing where 1 may collude"):
        with_checkers(wanted)


def test_every_site_gets_its_turn():
    turns = [round_checkers(SITES, 3, number) for number in range(1, 9)]
    assert all(len(set(turn)) == 3 for turn in turns)
    assert {site for turn in turns for site in turn} == set(SITES)
    assert [sum(site in turn for turn in turns) for site in SITES] == [6, 6, 6, 6]


def test_two_results_with_enough_attestations_have_an_honest_signer_in_common():
    for count in range(2, 40):
        for colluding in range(count):
            needed = attesting(range(count), colluding, 0)
            assert 2 * needed > count + colluding
            assert needed <= count
