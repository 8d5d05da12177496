"""The roster: what was signed is read again, and nothing else is."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import ConsortiumError, SignatureError, StudyError
from consortium.membership.roster import (
    MOST_HANDOVERS,
    Handover,
    fingerprint,
    found_roster,
    read_roster,
    roster_keys,
    save_roster,
)
from consortium.secagg.crypto import pack_tuple
from consortium.study.reader import parse_study
from tests.support.membership_files import members, private, public


def refused(path: Path) -> ConsortiumError:
    """What is said of a file, which must be one sentence that names it."""
    with pytest.raises(ConsortiumError) as caught:
        read_roster(path)
    message = str(caught.value)
    assert message.startswith(str(path)), message
    assert "\n" not in message
    assert message.endswith(".")
    return caught.value


names = st.from_regex(r"[a-z0-9][a-z0-9-]{0,20}", fullmatch=True).filter(lambda n: n != "centre")


@given(st.lists(names, unique=True, max_size=6), st.integers(0, 3))
def test_saved_and_read_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, sites: list[str], handovers: int
) -> None:
    found = found_roster(public(1))
    for place, name in enumerate(sites):
        found = found.with_site(name, public(100 + place))
    for number in range(1, handovers + 1):
        found = found.handed_over(private(number), public(number + 1))
    path = tmp_path_factory.mktemp("roster") / "roster.yaml"
    save_roster(path, found, private(handovers + 1))
    assert read_roster(path) == found
    assert found.serial == 1 + len(sites) + handovers


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("signed") / "roster.yaml"
    save_roster(path, members(handovers=2), private(3))
    return path


@given(st.data())
def test_an_altered_character_is_refused_or_says_the_same(
    signed: Path, data: st.DataObject
) -> None:
    text = signed.read_text()
    place = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(
        st.sampled_from("0123456789abcdef :-\n'#{}").filter(lambda c: c != text[place])
    )
    path = signed.with_name("altered.yaml")
    path.write_text(text[:place] + other + text[place + 1 :])
    try:
        assert read_roster(path) == read_roster(signed)
    except (StudyError, SignatureError):
        return


ALTERED = {
    "serial": 99,
    "centre": public(9).hex(),
    "sites": {"north": public(101).hex(), "east": public(102).hex()},
    "sites, swapped": {
        "north": public(102).hex(),
        "east": public(101).hex(),
        "south": public(103).hex(),
    },
    "handovers": [],
    "signature": "00" * 64,
}


@pytest.mark.parametrize("field", ALTERED)
def test_an_altered_field_is_refused(field: str, signed: Path, tmp_path: Path) -> None:
    content = yaml.safe_load(signed.read_text())
    content[field.split(",")[0]] = ALTERED[field]
    path = tmp_path / "roster.yaml"
    path.write_text(yaml.safe_dump(content))
    error = refused(path)
    assert isinstance(error, SignatureError)
    assert "was changed after the coordinator signed it" in str(error)


@pytest.mark.parametrize("field", ["serial", "centre", "sites", "signature", "handovers.0.key"])
def test_a_missing_or_unknown_field_is_no_roster(field: str, signed: Path, tmp_path: Path) -> None:
    for change in ("remove", "add"):
        content = yaml.safe_load(signed.read_text())
        place = content["handovers"][0] if "." in field else content
        place.pop(field.split(".")[-1]) if change == "remove" else place.update(more=1)
        path = tmp_path / "roster.yaml"
        path.write_text(yaml.safe_dump(content))
        assert "is not a roster" in str(refused(path))


DAMAGE = {
    "empty": b"",
    "list": b"- a\n",
    "not text": b"\xff\xfe\x00",
    "open": b"serial: [",
    "huge": b"serial: 1\n# " + b"x" * 5_000_000,
    "aliases": b"a: &a [x, x]\nb: &b [*a, *a]\nserial: *b\n",
    "tag without value": b"serial: !!int ''\n",
    "tag of a time": b"serial: !!timestamp 'soon'\n",
    "merge": b"<<: {serial: 1}\n",
    "twice": b"serial: 1\nserial: 2\n",
    "deep": b"serial: " + b"[" * 50_000,
    "digits": b"serial: " + b"9" * 5000 + b"\n",
    "date": b"serial: 2026-99-99\n",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_no_roster_is_told_in_a_sentence(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "roster.yaml"
    path.write_bytes(DAMAGE[damage])
    assert isinstance(refused(path), StudyError)
    assert isinstance(refused(tmp_path / "missing.yaml"), StudyError)
    assert isinstance(refused(tmp_path), StudyError)


def test_only_the_consortium_signs(tmp_path: Path) -> None:
    path = tmp_path / "roster.yaml"
    with pytest.raises(SignatureError, match="are not those of the consortium"):
        save_roster(path, members(), private(101))
    with pytest.raises(SignatureError, match="are not those of the consortium"):
        members().handed_over(private(101), public(2))
    assert not path.exists()


def test_every_member_has_a_name_and_a_key_of_its_own() -> None:
    with pytest.raises(StudyError, match="west has that of east"):
        members().with_site("west", public(102))
    with pytest.raises(StudyError, match="west has that of centre"):
        members().with_site("west", public(1))
    with pytest.raises(StudyError, match="must not be 'centre'"):
        members().with_site("centre", public(104))
    with pytest.raises(StudyError, match="has that of"):
        members().handed_over(private(1), public(102))
    assert members().with_site("east", public(102)).sites == members().sites


def test_such_a_roster_is_not_read_even_if_it_is_signed(tmp_path: Path) -> None:
    """`Roster` refuses to be made so; a coordinator with another program may not."""
    sites = {"east": public(101), "north": public(101)}
    content = {
        "serial": 3,
        "centre": public(1).hex(),
        "sites": {name: key.hex() for name, key in sites.items()},
        "signature": private(1)
        .sign(
            pack_tuple(
                "consortium roster 1", 3, public(1), 0, 4, *(x for s in sites.items() for x in s)
            )
        )
        .hex(),
    }
    path = tmp_path / "roster.yaml"
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(StudyError, match="north has that of east"):
        read_roster(path)
    del content["sites"]["north"]
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(SignatureError):
        read_roster(path)


def test_a_removed_site_is_gone_and_may_come_back() -> None:
    less = members().without_site("east")
    assert set(less.sites) == {"north", "south"}
    assert less.serial == members().serial + 1
    assert less.with_site("east", public(102)).serial == less.serial + 1
    with pytest.raises(StudyError, match="east is not on the roster, which has north, south"):
        less.without_site("east")
    with pytest.raises(StudyError, match="no site yet"):
        found_roster(public(1)).without_site("east")


@pytest.mark.parametrize("pinned", [1, 2, 3, 4])
def test_a_key_that_was_handed_over_is_followed(pinned: int) -> None:
    found = members(handovers=3)
    assert found.centre == public(4)
    assert found.descends_from(public(pinned))
    assert not found.descends_from(public(5))


def _vouch(old: int, new: int, signer: int | None = None) -> Handover:
    text = pack_tuple("consortium handover 1", public(new))
    return Handover(key=public(old).hex(), signature=private(signer or old).sign(text).hex())


BROKEN = {
    "a gap": (_vouch(1, 2), _vouch(3, 4)),
    "a wrong signature": (_vouch(1, 2), _vouch(2, 3, signer=9), _vouch(3, 4)),
    "another order": (_vouch(2, 3), _vouch(1, 2), _vouch(3, 4)),
    "a usurper": (_vouch(1, 4, signer=4),),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_succession_is_refused(fault: str, tmp_path: Path) -> None:
    path = tmp_path / "roster.yaml"
    found = replace(members(), centre=public(4), handovers=BROKEN[fault])
    assert not found.descends_from(public(1))
    save_roster(path, found, private(4))
    assert isinstance(refused(path), SignatureError)


@pytest.mark.parametrize("loop", [(_vouch(1, 2), _vouch(2, 1), _vouch(1, 4)), (_vouch(4, 1),)])
def test_a_key_never_comes_back(loop: tuple[Handover, ...]) -> None:
    with pytest.raises(StudyError, match="has that of an earlier consortium"):
        replace(members(), centre=public(4), handovers=(*loop, _vouch(1, 4)))


def test_the_succession_has_an_end() -> None:
    found = members(MOST_HANDOVERS)
    with pytest.raises(StudyError, match="Create a new consortium"):
        found.handed_over(private(MOST_HANDOVERS + 1), public(MOST_HANDOVERS + 2))


def test_keys_of_a_study() -> None:
    text = """{study: s, sites: [north, west], algorithm: pca, analysis: {components: 2},
      privacy: {epsilon: 1, delta: 1.0e-5, colluding_sites: 0}}"""
    study = parse_study(text)
    with pytest.raises(StudyError, match=r"west is not. Admit"):
        roster_keys(study, members().keys, "the roster")
    found = roster_keys(study, members().with_site("west", public(104)).keys, "the roster")
    assert found == {"north": public(101), "west": public(104), "centre": public(1)}
    with pytest.raises(StudyError, match="'centre' is the coordinator's own name"):
        roster_keys(parse_study(text.replace("west", "centre")), members().keys, "the roster")


def test_fingerprints_differ_and_are_short() -> None:
    found = {fingerprint(public(number)) for number in range(1, 50)}
    assert len(found) == 49
    assert all(len(each) == 29 and each.count("-") == 5 for each in found)
