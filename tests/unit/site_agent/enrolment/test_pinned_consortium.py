"""Which consortium a site follows: the one it joined, and never back to an older roster."""

from dataclasses import replace
from pathlib import Path

import pytest

from consortium.errors import ConfigurationError, SignatureError, StudyError
from site_agent.enrolment.pinned_consortium import (
    PinnedConsortium,
    check_members,
    pin_consortium,
    read_pinned,
)
from site_agent.layout import PINNED
from tests.support.membership_files import members, private, public


def test_pinned_and_read_is_the_same(tmp_path: Path) -> None:
    assert read_pinned(tmp_path) is None
    whole = PinnedConsortium(public(2), 7, "ab" * 32, {"east": public(3)}, (public(1),))
    for trust in (PinnedConsortium(public(1)), whole):
        pin_consortium(tmp_path, trust)
        assert read_pinned(tmp_path) == trust


def test_the_first_roster_is_believed_and_what_it_says_is_pinned(tmp_path: Path) -> None:
    found = check_members(tmp_path, members())
    assert found == PinnedConsortium(public(1), members().serial, members().digest, members().sites)
    assert read_pinned(tmp_path) is None  # to look is not to pin


def test_another_consortium_is_refused(tmp_path: Path) -> None:
    pin_consortium(tmp_path, PinnedConsortium(public(9)))
    with pytest.raises(SignatureError, match="this site has joined the consortium of") as caught:
        check_members(tmp_path, members())
    assert str(tmp_path / PINNED) in str(caught.value)


@pytest.mark.parametrize("known", [0, 1, 2])
def test_a_handed_over_key_is_followed(known: int, tmp_path: Path) -> None:
    pin_consortium(tmp_path, PinnedConsortium(public(1 + known)))
    pin_consortium(tmp_path, check_members(tmp_path, members(handovers=2)))
    found, roster = read_pinned(tmp_path), members(2)
    earlier = (public(1), public(2))
    assert found == PinnedConsortium(public(3), roster.serial, roster.digest, roster.sites, earlier)
    assert found.centres == {public(number).hex() for number in (1, 2, 3)}


def test_a_key_that_was_replaced_is_not_trusted_with_a_study(tmp_path: Path) -> None:
    pin_consortium(tmp_path, check_members(tmp_path, members()))
    trust, sites = read_pinned(tmp_path), members().sites
    assert trust is not None
    trust.check_keys("small", {"centre": public(1), "east": sites["east"]})
    for keys in ({"centre": public(2)}, {"east": public(9)}, {"gone": public(9)}):
        with pytest.raises(StudyError, match=f"with a key of {next(iter(keys))} that the newest"):
            trust.check_keys("small", {**trust.sites, "centre": public(1), **keys})


def test_nobody_goes_back_to_the_key_before(tmp_path: Path) -> None:
    """Whoever holds an old key of the consortium can sign a roster with any number."""
    pin_consortium(tmp_path, check_members(tmp_path, members(handovers=1)))
    usurper = replace(members(), serial=1000)
    with pytest.raises(SignatureError):
        check_members(tmp_path, usurper)
    forked = members().handed_over(private(1), public(9))
    with pytest.raises(SignatureError):
        check_members(tmp_path, replace(forked, serial=1000))


def test_an_older_roster_is_refused(tmp_path: Path) -> None:
    newer = members().without_site("east")
    pin_consortium(tmp_path, check_members(tmp_path, newer))
    with pytest.raises(StudyError, match=r"has the serial number 4, and this site has seen 5"):
        check_members(tmp_path, members())
    assert check_members(tmp_path, newer).serial == 5
    assert check_members(tmp_path, newer.with_site("east", public(110))).serial == 6


def test_two_rosters_with_one_number_are_noticed(tmp_path: Path) -> None:
    pin_consortium(tmp_path, check_members(tmp_path, members()))
    other = replace(members(), sites={**members().sites, "east": public(110)})
    with pytest.raises(SignatureError, match="under which this site has seen another one"):
        check_members(tmp_path, other)


DAMAGED = ["", "{", "[]", "7", "{}", '{"centre": "ab", "serial": 1, "roster": ""}']
DAMAGED += ['{"centre": "zz", "serial": 1, "roster": ""}']
DAMAGED += [f'{{"centre": "{"ab" * 32}", "serial": {n}, "roster": ""}}' for n in ("-1", "[]")]


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_record_is_named_and_nothing_is_believed(text: str, tmp_path: Path) -> None:
    (tmp_path / PINNED).write_text(text)
    with pytest.raises(ConfigurationError, match=r"consortium\.json is damaged. Restore it"):
        check_members(tmp_path, members())


def test_what_can_not_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / PINNED).mkdir()
    with pytest.raises(ConfigurationError, match="can't be written"):
        pin_consortium(tmp_path, PinnedConsortium(public(1)))
    with pytest.raises(ConfigurationError, match="is damaged"):
        read_pinned(tmp_path)
