"""A signed study: these bytes, this mask, these keys, and no others."""

import os
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import ConsortiumError, OutputError, SignatureError, StudyError
from consortium.membership import signed_study
from consortium.membership.signed_study import read_signed, sign_study, signature_path
from tests.support.membership_files import members, private, public

TEXT = """\
# a comment that is part of what people agree on
study: small
sites: [north, east]
participants: {north: 10, east: 10}
data: {mask: mask.nii.gz}
privacy: {epsilon: 1, delta: 1.0e-5, colluding_sites: 0}
algorithm: pca
analysis: {components: 2}
"""


def place(folder: Path, text: str = TEXT) -> Path:
    """A signed study and its mask."""
    path = folder / "study.yaml"
    path.write_text(text)
    (folder / "mask.nii.gz").write_bytes(b"some mask")
    sign_study(path, members(), private(1))
    return path


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return place(tmp_path_factory.mktemp("signed"))


def test_signed_and_read_is_the_same(tmp_path: Path) -> None:
    path = place(tmp_path)
    found = read_signed(path, members())
    assert found == sign_study(path, members(), private(1))
    assert found.study.sites == ("north", "east")
    assert set(found.keys) == {"north", "east", "centre"}
    assert found.folder == tmp_path.resolve()


def test_the_files_of_a_linked_study_are_those_next_to_the_link(tmp_path: Path) -> None:
    """A study file may be a link. Its mask is then read where its digest was computed."""
    original, linked = tmp_path / "original", tmp_path / "linked"
    for folder in (original, linked):
        folder.mkdir()
    place(original)
    (linked / "study.yaml").symlink_to(original / "study.yaml")
    (linked / "mask.nii.gz").write_bytes(b"another mask")
    found = sign_study(linked / "study.yaml", members(), private(1))
    assert found.folder == linked.resolve()
    assert found.mask == signed_study.named_files_digest(found.study, found.folder)


@given(st.data())
def test_a_study_altered_by_one_character_is_refused(signed: Path, data: st.DataObject) -> None:
    text = signed.read_text()
    spot = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters(codec="ascii").filter(lambda c: c not in (text[spot], "\r")))
    folder = signed.parent / "altered"
    folder.mkdir(exist_ok=True)
    (folder / "mask.nii.gz").write_bytes(b"some mask")
    path = folder / "study.yaml"
    path.write_bytes((text[:spot] + other + text[spot + 1 :]).encode())
    signature_path(path).write_bytes(signature_path(signed).read_bytes())
    with pytest.raises((StudyError, SignatureError)):
        read_signed(path, members())


@pytest.mark.parametrize("scheme", ["local", "none"])
def test_a_reference_is_not_signed(tmp_path: Path, scheme: str) -> None:
    with pytest.raises(StudyError, match=f"'{scheme}' is a reference for 'consortium simulate'"):
        place(tmp_path, TEXT.replace("epsilon: 1,", f"epsilon: 1, scheme: {scheme},"))
    assert not (tmp_path / "study.yaml.sig").exists()


def test_what_an_earlier_version_signed_is_not_reinterpreted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:  # then a study without boost had 10,000
        patch.setattr(signed_study, "_LABEL", "consortium study 1")
        path = place(tmp_path)
    with pytest.raises(SignatureError, match=r"an earlier version signed it. Ask the coordinator"):
        read_signed(path, members())
    sign_study(path, members(), private(1))
    assert read_signed(path, members()).study.privacy.exact


def test_what_changed_is_named(tmp_path: Path) -> None:
    path = place(tmp_path)
    path.write_text(TEXT.replace("a comment", "A comment"))
    with pytest.raises(SignatureError, match="the study file changed after the coordinator signed"):
        read_signed(path, members())
    path.write_text(TEXT)
    (tmp_path / "mask.nii.gz").write_bytes(b"some masK")
    with pytest.raises(SignatureError, match=r"the file mask\.nii\.gz changed"):
        read_signed(path, members())
    (tmp_path / "mask.nii.gz").write_bytes(b"some mask")
    with pytest.raises(SignatureError, match="the sites' keys changed"):
        read_signed(path, members().with_site("east", public(109)))
    with pytest.raises(SignatureError, match="the consortium's key changed"):
        read_signed(path, members(handovers=1))
    assert read_signed(path, members())


def test_members_of_other_studies_may_come_and_go(tmp_path: Path) -> None:
    path = place(tmp_path)
    other = members().without_site("south").with_site("west", public(104))
    assert read_signed(path, other).keys == read_signed(path, members()).keys
    with pytest.raises(StudyError, match="east is not"):
        read_signed(path, members().without_site("east"))


ALTERED = {
    "study": "00" * 32,
    "mask": "00" * 32,
    "members": "00" * 32,
    "centre": public(9).hex(),
    "signature": "00" * 64,
}


@pytest.mark.parametrize("field", ALTERED)
def test_an_altered_signature_is_refused(field: str, tmp_path: Path) -> None:
    path = place(tmp_path)
    beside = signature_path(path)
    content = yaml.safe_load(beside.read_text())
    beside.write_text(yaml.safe_dump(content | {field: ALTERED[field]}))
    with pytest.raises(SignatureError):
        read_signed(path, members())
    beside.write_text(yaml.safe_dump(content | {"more": 1}))
    with pytest.raises(StudyError, match="no valid signature"):
        read_signed(path, members())


def test_another_studys_signature_does_not_do(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    path = place(tmp_path / "one")
    other = place(tmp_path / "other", TEXT.replace("small", "large"))
    path.with_name("study.yaml.sig").write_bytes(signature_path(other).read_bytes())
    with pytest.raises(SignatureError, match="the study file changed"):
        read_signed(path, members())


def test_somebody_elses_signature_does_not_do(tmp_path: Path) -> None:
    """A member signs with all digests right."""
    path = place(tmp_path)
    sign_study(path, members(), private(101))
    with pytest.raises(SignatureError, match="is not signed by the consortium's key"):
        read_signed(path, members())


@pytest.mark.parametrize(
    "damage", [None, b"", b"\xff", b"a: &a [*a]", b"study: !!int ''", b"-" * 9]
)
def test_no_signature_is_told_in_a_sentence(damage: bytes | None, tmp_path: Path) -> None:
    path = place(tmp_path)
    signature_path(path).unlink()
    if damage is not None:
        signature_path(path).write_bytes(damage)
    with pytest.raises(StudyError) as caught:
        read_signed(path, members())
    assert str(caught.value) == (
        f"{path} has no valid signature next to it (study.yaml.sig). Ask the coordinator for both "
        "files, which 'consortium sign' leaves together."
    )


def test_what_can_not_be_read_or_written_is_named(tmp_path: Path) -> None:
    path = place(tmp_path)
    (tmp_path / "mask.nii.gz").unlink()
    with pytest.raises(StudyError, match=r"mask\.nii\.gz, the mask of 'small', can't be read"):
        read_signed(path, members())
    for wrong in (tmp_path, tmp_path / "missing.yaml"):
        with pytest.raises(StudyError, match="must be a study file"):
            read_signed(wrong, members())
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConsortiumError, match="must be a study file"):
        sign_study(path, members(), private(1))
    path = place(tmp_path)
    signature_path(path).unlink()
    signature_path(path).mkdir()
    with pytest.raises(OutputError, match=r"study\.yaml\.sig can't be written"):
        sign_study(path, members(), private(1))


def test_a_pipe_is_not_waited_for_and_an_endless_file_is_not_read(tmp_path: Path) -> None:
    path = place(tmp_path)
    mask = tmp_path / "mask.nii.gz"
    mask.unlink()
    os.mkfifo(mask)
    with pytest.raises(StudyError, match="is not a regular file"):
        read_signed(path, members())
    mask.unlink()
    with mask.open("wb") as file:
        file.truncate(signed_study._MOST_FILE + 1)  # of which the disk stores nothing
    with pytest.raises(StudyError, match="must have at most"):
        read_signed(path, members())


def test_the_atlas_is_signed_with_the_mask(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    (tmp_path / "atlas.nii").write_bytes(b"some atlas")
    text = TEXT.replace("mask.nii.gz}", "mask.nii.gz, atlas: atlas.nii}")
    path = place(tmp_path, text)
    with_atlas = read_signed(path, members()).mask
    assert with_atlas != read_signed(place(plain), members()).mask
    (tmp_path / "atlas.nii").write_bytes(b"other atlas")
    with pytest.raises(SignatureError, match="mask"):
        read_signed(path, members())
    (tmp_path / "atlas.nii").unlink()
    with pytest.raises(StudyError, match=r"the atlas of 'small'"):
        read_signed(path, members())
