"""A request to join: whoever sends it holds the keys that it names."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import SignatureError, StudyError
from consortium.membership.admission import JoinRequest, admit_site, read_request, write_request
from consortium.membership.roster import read_roster, save_roster
from tests.support.membership_files import members, private, public


def request(
    folder: Path, site: str, number: int, centre: int = 1, old: int | None = None
) -> JoinRequest:
    """Let a site ask to be admitted with a key of that number."""
    path = folder / f"{site}.join.yaml"
    before = private(old) if old else None
    written = write_request(path, site, public(centre), private(number), before)
    assert read_request(path) == written
    return written


def test_a_new_site_is_admitted_with_the_key_that_signed(tmp_path: Path) -> None:
    asked = request(tmp_path, "west", 104)
    found = admit_site(members(), asked)
    assert found.sites == {**members().sites, "west": public(104)}
    assert found.serial == members().serial + 1
    assert admit_site(found, asked) == found  # asking again changes nothing


def test_a_nominal_number_of_participants_is_admitted_with_the_site(tmp_path: Path) -> None:
    path = tmp_path / "west.join.yaml"
    asked = write_request(path, "west", public(1), private(104), participants=160)
    assert read_request(path) == asked
    found = admit_site(members(), asked)
    assert found.participants == {"west": 160}
    assert admit_site(found, asked) == found
    assert admit_site(found, request(tmp_path, "west", 104)) == found  # which states none
    more = write_request(path, "west", public(1), private(104), participants=200)
    assert admit_site(found, more).participants == {"west": 200}
    assert found.without_site("west").participants == {}
    roster = tmp_path / "roster.yaml"
    save_roster(roster, found, private(1))
    assert read_roster(roster) == found
    roster.write_text(roster.read_text().replace("160", "170"))
    with pytest.raises(SignatureError):
        read_roster(roster)
    path.write_text(path.read_text().replace("200", "210"))
    with pytest.raises(SignatureError):
        read_request(path)
    write_request(path, "west", public(1), private(104), participants=157)
    with pytest.raises(StudyError, match="Write 160"):
        read_request(path)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("request")
    request(folder, "east", 105, old=102)
    return folder / "east.join.yaml"


@given(st.data())
def test_an_altered_character_is_refused_or_says_the_same(
    written: Path, data: st.DataObject
) -> None:
    text = written.read_text()
    place = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(
        st.sampled_from("0123456789abcdef :-\n'#{}").filter(lambda c: c != text[place])
    )
    path = written.with_name("altered.yaml")
    path.write_text(text[:place] + other + text[place + 1 :])
    try:
        assert read_request(path) == read_request(written)
    except (StudyError, SignatureError):
        return


ALTERED = {
    "site": "west",
    "key": public(106).hex(),
    "centre": public(9).hex(),
    "signature": "00" * 64,
    "replaces": public(103).hex(),
    "replaced_signature": "00" * 64,
    "replaces, gone": None,
    "replaced_signature, gone": None,
}


@pytest.mark.parametrize("field", ALTERED)
def test_an_altered_field_is_refused(field: str, written: Path, tmp_path: Path) -> None:
    content = yaml.safe_load(written.read_text())
    name, _, gone = field.partition(", ")
    content.pop(name) if gone else content.update({name: ALTERED[field]})
    path = tmp_path / "east.join.yaml"
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(SignatureError, match=r"is not signed with the key [0-9a-f-]{29} that it"):
        read_request(path)


@pytest.mark.parametrize("damage", [b"", b"- a", b"\xff", b"a: &a [*a]", b"x" * 5_000_000, b"a: ["])
def test_what_is_no_request_is_told_in_a_sentence(damage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "east.join.yaml"
    path.write_bytes(damage)
    for each in (path, tmp_path, tmp_path / "missing"):
        with pytest.raises(StudyError) as caught:
            read_request(each)
        assert str(caught.value).startswith(f"{each} is not a request to join. Ask the site")


@pytest.mark.parametrize("site", ["East", "../east", "", "a" * 64])
def test_a_name_that_no_study_can_use_is_no_request(site: str, written: Path) -> None:
    content = yaml.safe_load(written.read_text()) | {"site": site}
    path = written.with_name("named.yaml")
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(StudyError, match="is not a request"):
        read_request(path)


def test_a_request_for_another_consortium_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="west asks to join the consortium with the key"):
        admit_site(members(), request(tmp_path, "west", 104, centre=9))


def test_a_site_that_knows_the_earlier_key_is_admitted(tmp_path: Path) -> None:
    found = admit_site(members(handovers=2), request(tmp_path, "west", 104, centre=1))
    assert found.sites["west"] == public(104)


def test_nobody_takes_the_coordinators_name_or_anothers_key(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="must not be 'centre'"):
        admit_site(members(), request(tmp_path, "centre", 104))
    with pytest.raises(StudyError, match="west has that of east"):
        admit_site(members(), request(tmp_path, "west", 102))


def test_a_changed_key_needs_the_old_one(tmp_path: Path) -> None:
    found = admit_site(members(), request(tmp_path, "east", 105, old=102))
    assert found.sites["east"] == public(105)
    assert found.serial == members().serial + 1


@pytest.mark.parametrize("old", [None, 101, 106])
def test_a_lost_key_needs_the_coordinators_word(old: int | None, tmp_path: Path) -> None:
    """Without the old key, or with a key that was never the site's."""
    asked = request(tmp_path, "east", 105, old=old)
    with pytest.raises(StudyError, match=r"did not sign this request. .* --lost-key"):
        admit_site(members(), asked)
    assert admit_site(members(), asked, lost_key=True).sites["east"] == public(105)


def test_an_earlier_request_does_not_bring_an_earlier_key_back(tmp_path: Path) -> None:
    first, second = request(tmp_path, "east", 105, old=102), request(tmp_path, "east", 106, old=105)
    found = admit_site(admit_site(members(), first), second)
    assert found.sites["east"] == public(106)
    for replayed in (first, request(tmp_path, "east", 102)):
        with pytest.raises(StudyError, match="did not sign this request"):
            admit_site(found, replayed)
