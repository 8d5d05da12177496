"""What the long run under random faults (`tests.long.soak`) would find, and what it forgives."""

from tests.long.soak import Sample, growth


def _samples(memory, files=lambda rounds: 30, objects=lambda rounds: 35 * rounds):
    return [Sample(n, 0, memory(n), objects(n), files(n), 1.0) for n in range(200, 2001, 200)]


def test_what_is_kept_of_every_round_is_found():
    assert growth(_samples(lambda rounds: 300 + 0.015 * rounds)).problems() == [
        "memory grew by 15.0 kB a round"
    ]


def test_ten_objects_more_of_every_round_are_found():
    left = growth(_samples(lambda rounds: 300, objects=lambda rounds: 46 * rounds))
    assert left.problems() == ["46 objects stay of each round"]


def test_a_table_that_grows_once_is_forgiven():
    assert growth(_samples(lambda rounds: 300 + 8.0 * (rounds > 1400))).problems() == []


def test_files_that_stay_open_are_found():
    left = growth(_samples(lambda rounds: 300, lambda rounds: rounds // 100))
    assert left.problems() == ["10 more files are open"]


def test_growth_before_the_second_half_does_not_count():
    assert growth(_samples(lambda rounds: 300 + 0.02 * min(rounds, 1000))).problems() == []
