"""Breaks, segments and clocks of recordings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from site_agent.eeg.breaks import (
    Break,
    Marker,
    Piece,
    RecordingClock,
    break_of,
    events_within,
    segments_between,
)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("boundary", "break"),
        ("Boundary", "break"),
        ("New Segment/", "break"),
        ("new segment", "break"),
        ("EDGE boundary", "break"),
        ("BAD boundary", "bad break"),
        ("BAD_ACQ_SKIP", "bad break"),
        ("Comment/bad_acq_skip", "bad break"),
        ("Comment/BAD eog", "bad"),
        (" bad_muscle", "bad"),
        ("Bad Interval/Bad Min-Max", "bad"),
        ("edge", "event"),
        ("boundary tone", "event"),
        ("target", "event"),
        ("not bad", "event"),
    ],
)
def test_a_name_says_what_a_marker_is(name: str, kinds: str) -> None:
    marker = Marker(1.0, 0.0, name)
    found = {"bad": marker.is_bad, "break": marker.is_break, "event": marker.is_event}
    assert " ".join(kind for kind, is_so in found.items() if is_so) == kinds


@pytest.mark.parametrize(
    ("place", "start", "stop"),
    [(100, 100, 100), (99.5, 100, 100), (100.1, 100, 101), (99.42, 99, 100), (99.9996, 100, 100)],
)
def test_a_boundary_is_between_samples_or_hides_the_one_in_doubt(place, start, stop) -> None:
    found = break_of(Marker(place / 250, 7.0, "boundary"), 250.0)
    assert found == Break(start, stop, "boundary")


def test_skipped_samples_are_a_span_and_events_are_none() -> None:
    assert break_of(Marker(2.0, 1.5, "BAD_ACQ_SKIP"), 100.0) == Break(200, 350, "BAD_ACQ_SKIP")
    assert break_of(Marker(2.0, 1.5, "BAD"), 100.0) is None


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9))), st.integers(1, 50))
def test_segments_are_the_samples_outside_of_all_breaks(spans, samples: int) -> None:
    breaks = [Break(start, start + length, "x") for start, length in spans]
    segments = list(segments_between(breaks, samples))
    lost = {k for each in breaks for k in range(each.start, each.stop)}
    assert [k for first, stop in segments for k in range(first, stop)] == [
        k for k in range(samples) if k not in lost
    ]
    cuts = {each.start for each in breaks} | {each.stop for each in breaks}
    assert not any(
        first < cut < stop for first, stop in segments for cut in cuts if cut not in lost
    )


def test_events_belong_to_the_segment_of_their_sample() -> None:
    segments = [(0, 100), (150, 300)]
    found = dict(events_within([0.999, 1.2, 1.5, 2.0], segments, 100.0))
    assert found[0, 100] == []  # its nearest sample is the first after the segment
    assert found[150, 300] == pytest.approx([0.0, 0.5])


CLOCK = RecordingClock(100.0, (Piece(0.0, 0, 100), Piece(5.0, 100, 200)))


@pytest.mark.parametrize(
    ("onset", "expected"), [(0.0, 0.0), (0.99, 0.99), (5.0, 1.0), (6.5, 2.5), (2.0, None)]
)
def test_an_event_goes_to_its_sample_or_is_lost(onset: float, expected: float | None) -> None:
    found = [each.onset for each in CLOCK.in_file([Marker(onset, 0.0, "target")])]
    assert found == ([] if expected is None else pytest.approx([expected]))


def test_a_bad_span_keeps_what_was_recorded() -> None:
    (span,) = CLOCK.in_file([Marker(0.5, 5.0, "bad")])
    assert (span.onset, span.duration) == pytest.approx((0.5, 1.0))
    (inside,) = CLOCK.in_file([Marker(2.0, 1.0, "bad")])
    assert (inside.onset, inside.duration) == pytest.approx((1.0, 0.0))


def test_the_clock_ends_after_the_last_sample() -> None:
    assert CLOCK.seconds(300) == pytest.approx(7.0)
    assert RecordingClock(100.0).seconds(300) == pytest.approx(3.0)
    assert CLOCK.breaks() == (Break(100, 100, "EDF+ clock"),)
