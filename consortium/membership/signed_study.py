"""A study as a signed file: its exact bytes, its mask and its members, under the consortium's key.

The signature is stored next to the study as ``<study file>.sig``. A change of one character, of the
mask, or of the roster requires a new one.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consortium.base.atomic import path_in_folder
from consortium.base.frozen_model import FrozenModel
from consortium.base.regular_file import regular
from consortium.base.strict_yaml import read_limited, read_yaml, write_yaml
from consortium.errors import DataError, SignatureError, StudyError
from consortium.membership.roster import Key, Roster, Signature, roster_keys, verifies
from consortium.secagg.crypto import pack_tuple
from consortium.study.reader import parse_study
from consortium.study.spec import Study

_MOST_FILE = 1 << 31
"""Bytes of a file that a study names, all of which are read whenever the study is looked at."""
_LABEL = "consortium study 2"  # 1: a study without scheme and boost had boost: 10000


class _File(FrozenModel):
    study: Key
    mask: Key
    members: Key
    centre: Key
    signature: Signature


@dataclass(frozen=True)
class SignedStudy:
    """A study whose signature was checked."""

    study: Study
    file: str
    """SHA-256 of the study file's bytes, in hexadecimal."""
    mask: str
    """SHA-256 of the mask's file, or of the word 'template'."""
    keys: Mapping[str, bytes]
    """Keys of the study's sites and of the centre."""
    folder: Path
    """Folder of the study file and of the files that it names, whose digests were checked."""

    def signed(self) -> bytes:
        """Return the bytes under the signature."""
        return pack_tuple(
            _LABEL, self.file, self.mask, members_digest(self.keys), self.keys["centre"]
        )


def members_digest(keys: Mapping[str, bytes]) -> str:
    """Return the SHA-256 of names and keys of a study's members, which others don't change."""
    parts = [part for name, key in sorted(keys.items()) for part in (name, key)]
    return hashlib.sha256(pack_tuple(*parts)).hexdigest()


def signature_path(study: Path) -> Path:
    """Return the path of a study's signature."""
    return study.with_name(f"{study.name}.sig")


def sign_study(path: Path, members: Roster, key: Ed25519PrivateKey) -> SignedStudy:
    """Sign a study for its sites and write the signature next to it.

    Raises StudyError if the study can't be used or has another scheme than ``cape``, or a site is
    not on the roster. Raises OutputError if the signature can't be written.
    """
    found = _digests(path, members)
    file = _File(
        study=found.file,
        mask=found.mask,
        members=members_digest(found.keys),
        centre=members.centre.hex(),
        signature=key.sign(found.signed()).hex(),
    )
    write_yaml(signature_path(path), file.model_dump())
    return found


def read_signed(path: Path, members: Roster) -> SignedStudy:
    """Read a study and check that the consortium's key signed exactly this.

    Raises StudyError if the study can't be used, has another scheme than ``cape``, or has no
    signature. Raises SignatureError if study, mask or keys are not those that were signed.
    """
    found = _digests(path, members)
    signature = signature_path(path)
    try:
        file = _File.model_validate(read_yaml(signature))
    except (OSError, ValueError) as error:
        raise StudyError(
            f"{path} has no valid signature next to it ({signature.name}). Ask the coordinator for "
            "both files, which 'consortium sign' leaves together."
        ) from error
    compared = (
        ("consortium's key", members.centre.hex(), file.centre),
        ("sites' keys", members_digest(found.keys), file.members),
        ("study file", found.file, file.study),
        (_named_files(found.study), found.mask, file.mask),
    )
    changed = [what for what, now, then in compared if now != then]
    if changed:
        raise SignatureError(
            f"{path}: the {changed[0]} changed after the coordinator signed. Ask for the study "
            "as it was signed, or for a new signature with 'consortium sign'."
        )
    if not verifies(members.centre, file.signature, found.signed()):
        raise SignatureError(
            f"{signature} is not signed by the consortium's key of the roster, or an earlier "
            "version signed it. Ask the coordinator to sign the study again."
        )
    return found


def _digests(path: Path, members: Roster) -> SignedStudy:
    try:
        text = read_limited(path)
        study = parse_study(text.decode("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(
            f"{path}: must be a study file in UTF-8, and can't be read. Check the path."
        ) from error
    study.check_scheme(str(path))
    files = named_files_digest(study, path.parent)
    keys = roster_keys(study, members.keys, "the roster")
    # The folder of a link itself, and not of its target: the checked files are in this one.
    return SignedStudy(study, _sha256(text), files, keys, path.parent.resolve())


def named_files_digest(study: Study, folder: Path) -> str:
    """Return the SHA-256, in hexadecimal, of the files that a study names.

    It is that of the mask file, or of the word 'template', for a study that names no other file.
    Otherwise it is that of the mask's digest and of those of atlas and maps, joined by '|'. The
    field of a signed study is called ``mask`` in both cases. Raises StudyError if a file can't be
    read, or is in another folder.
    """
    name = study.data.mask
    atlas = study.data.atlas
    others = [(atlas, "atlas")] if atlas else []
    others += [(file, "file") for file in study.map_files]
    template = name == "template"
    mask = _sha256(b"template") if template else _file_digest(study, folder, name, "mask")
    if not others:
        return mask
    digests = [mask, *(_file_digest(study, folder, file, kind) for file, kind in others)]
    return _sha256("|".join(digests).encode())


def _named_files(study: Study) -> str:
    """Return the names of all files under a study's signature, any of which may have changed."""
    data = study.data
    own = data.mask if data.mask != "template" else None
    names = [name for name in (own, data.atlas, *study.map_files) if name]
    return f"file {' or '.join(names)}" if names else "mask"


def _file_digest(study: Study, folder: Path, name: str, kind: str) -> str:
    try:
        path = regular(path_in_folder(folder, name))
        size = path.stat().st_size
        if size > _MOST_FILE:
            raise StudyError(
                f"{path}, the {kind} of '{study.study}', must have at most {_MOST_FILE:,} bytes, "
                f"and it has {size:,}. Ask the coordinator for a smaller file."
            )
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except DataError as error:
        raise StudyError(str(error)) from error
    except ValueError as error:
        raise StudyError(
            f"The {kind} of '{study.study}', {name}, is not stored next to the study file. Put it "
            "there, and not a link to it."
        ) from error
    except OSError as error:
        raise StudyError(
            f"{folder / name}, the {kind} of '{study.study}', can't be read ({error.strerror}). "
            "Put it next to the study file."
        ) from error


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
