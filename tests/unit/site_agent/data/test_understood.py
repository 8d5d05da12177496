"""Summaries are added line by line."""

from site_agent.data.understood import Fact, Understanding


def test_two_summaries_are_one_in_their_order() -> None:
    one, two = (Understanding((Fact(name, "x"),), (f"note {name}",)) for name in "ab")
    both = one + two
    assert [fact.topic for fact in both.facts] == ["a", "b"]
    assert both.notes == ("note a", "note b")
