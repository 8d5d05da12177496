"""A site asks to be admitted, and changes its key; a crash in the middle loses neither key."""

from pathlib import Path

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.errors import ConfigurationError, ConsortiumError
from consortium.membership.admission import admit_site, read_request
from consortium.membership.keys import KEYS, create_identity, load_identity
from consortium.membership.roster import Roster, fingerprint
from site_agent.approval.approval import Terms, approvals, approve
from site_agent.enrolment import request as request_module
from site_agent.enrolment.pinned_consortium import PinnedConsortium, read_pinned
from site_agent.enrolment.request import join_consortium, rotate_key
from tests.support.membership_files import papers, public, publish

CENTRE = public(1).hex()


def found_site(folder: Path) -> bytes:
    """A site's folder with keys only; returns its public key."""
    return create_identity(folder, b"s" * 64).public


def test_a_request_is_written_and_the_consortium_pinned(tmp_path: Path) -> None:
    key = found_site(tmp_path)
    path, request = join_consortium(tmp_path, "east", CENTRE)
    assert path == tmp_path / "east.join.yaml"
    assert read_request(path) == request
    assert (request.site, request.key, request.centre) == ("east", key, public(1))
    assert request.replaces is None
    assert read_pinned(tmp_path) == PinnedConsortium(public(1))
    again, _ = join_consortium(tmp_path, "east", "")  # the key is known by now
    assert read_request(again) == request


@pytest.mark.parametrize("centre", ["", "abc", "xy" * 32, "ab" * 31, "ab" * 33])
def test_a_key_that_is_none_is_refused_and_nothing_pinned(centre: str, tmp_path: Path) -> None:
    found_site(tmp_path)
    with pytest.raises(ConfigurationError, match="--centre"):
        join_consortium(tmp_path, "east", centre)
    assert read_pinned(tmp_path) is None
    assert sorted(each.name for each in tmp_path.iterdir()) == [KEYS]


def test_another_consortium_needs_another_folder(tmp_path: Path) -> None:
    found_site(tmp_path)
    join_consortium(tmp_path, "east", CENTRE)
    with pytest.raises(ConfigurationError, match=fingerprint(public(1))):
        join_consortium(tmp_path, "east", public(2).hex())
    assert read_pinned(tmp_path) == PinnedConsortium(public(1))


def test_without_keys_nothing_is_joined(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="keys can't be read"):
        join_consortium(tmp_path, "east", CENTRE)
    assert list(tmp_path.iterdir()) == []


def test_a_changed_key_is_signed_by_both(tmp_path: Path) -> None:
    before = found_site(tmp_path)
    path, request = rotate_key(tmp_path, "east", CENTRE)
    assert read_request(path) == request
    assert request.replaces == before
    assert request.key == load_identity(tmp_path).public != before
    assert load_identity(tmp_path, "keys.old").public == before
    with pytest.raises(ConfigurationError, match=r"keys\.old exists: the key was changed before"):
        rotate_key(tmp_path, "east", "")
    assert load_identity(tmp_path).public == request.key


def test_a_change_without_keys_or_consortium_changes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="keys can't be read"):
        rotate_key(tmp_path, "east", CENTRE)
    found_site(tmp_path)
    with pytest.raises(ConfigurationError, match="--centre"):
        rotate_key(tmp_path, "east", "")
    (tmp_path / KEYS).chmod(0o644)
    with pytest.raises(ConfigurationError, match="can be read by others"):
        rotate_key(tmp_path, "east", CENTRE)
    assert sorted(each.name for each in tmp_path.iterdir()) == [KEYS]


def test_a_crash_in_the_middle_is_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = found_site(tmp_path)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(request_module, "create_identity", die)
        with pytest.raises(KeyboardInterrupt):
            rotate_key(tmp_path, "east", CENTRE)
    assert not (tmp_path / KEYS).exists()
    _, request = rotate_key(tmp_path, "east", CENTRE)
    assert request.replaces == before
    assert request.key == load_identity(tmp_path).public


def _admit(place: DemoFolders, members: Roster, folder: Path) -> Roster:
    return admit_site(members, read_request(folder / "east.join.yaml"))


def test_after_a_change_the_old_approvals_are_aside_and_a_new_yes_counts(tmp_path: Path) -> None:
    place, members = papers(tmp_path)
    folder, files = place.site("east"), place.files
    before = load_identity(folder)
    approve(folder, "east", before, files.study, files.roster, Terms())
    rotate_key(folder, "east", "")
    now = load_identity(folder)
    assert approvals(folder, now) == []
    aside = folder / f"approved-before-{fingerprint(before.public)}"
    assert len(list(aside.glob("*.json"))) == 1
    with pytest.raises(ConsortiumError, match="as the key of 'east'"):
        approve(folder, "east", now, files.study, files.roster, Terms())
    publish(place, _admit(place, members, folder))
    approve(folder, "east", now, files.study, files.roster, Terms())
    assert len(approvals(folder, now)) == 1
