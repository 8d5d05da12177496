"""The evidence of a result, with which any party can check it: messages and signed documents.

It is not private: the messages are on the exchange for all parties, and their content follows from
the published result, or from keys and sizes that are public within the consortium.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consortium.base.atomic import write_bytes, write_json
from consortium.base.work import work_folder
from consortium.engine.closing import Published, encode_closing, most_closing
from consortium.engine.mailbox import Mailbox
from consortium.engine.names import MOST_ANNOUNCEMENT, MOST_NOTICE, PUBLISHED, QUERY, Names
from consortium.engine.queries import MOST_QUERY, decode_query
from consortium.engine.releases import Releases
from consortium.errors import ExchangeError, OutputError, ProtocolError
from consortium.membership.signed_study import signature_path
from consortium.secagg import CENTRE, OVERHEAD, messages, seal
from consortium.space.atlas import table_of
from consortium.study.plan import Plan
from consortium.study.spec import Study
from consortium.verification import record as kept
from consortium.verification.agreement import plan_record

STUDY_FOLDER = "study"
STUDY_FILE = "study.yaml"


def keep_evidence(
    folder: Path, releases: Releases, study_file: Path, plan: Plan, rounds: int
) -> None:
    """Store the evidence, and sign for every file, as the last step of writing a folder.

    Raises ExchangeError if a message of the run is missing. Raises OutputError if a file can't be
    read or written.

    Parameters
    ----------
    folder : Path
        The output folder, with everything else in it.
    releases : Releases
        Releases of the run.
    study_file : Path
        Next to its signature, mask and atlas.
    rounds : int
        Number of released rounds.
    """
    keep_papers(folder, plan.study, study_file)
    keep_messages(folder, releases, plan, rounds)
    sign_files(folder, releases.mail.identity, releases.mail.context.run)


def keep_papers(folder: Path, study: Study, study_file: Path) -> None:
    """Copy the signed study and the files that it names into the evidence.

    Its signature contains the keys of its own sites, which the announcement lists. The roster also
    names the consortium's other members and is not published. Raises OutputError if a file can't be
    read or written.
    """
    place = folder / kept.EVIDENCE / STUDY_FOLDER
    copies = {
        place / STUDY_FILE: study_file,
        signature_path(place / STUDY_FILE): signature_path(study_file),
    }
    named = named_files(study, study_file.parent)
    copies |= {place / name: study_file.parent / name for name in named}
    for target, source in copies.items():
        write_bytes(target, _read(source))


def named_files(study: Study, folder: Path) -> tuple[str, ...]:
    """Return the files that a study file names, with the tables of those that have one.

    Parameters
    ----------
    folder : Path
        Folder of the study file. Maps of a view have a table of names only if it is there.
    """
    paths = [Path(name) for name in (study.report.atlas, study.report.networks) if name]
    paths += [table_of(path) for path in paths]
    maps = [Path(view.maps_file) for view in study.features if view.maps_file]
    paths += [table for table in map(table_of, maps) if (folder / table).is_file()]
    known = (study.data.mask, study.data.atlas, *study.map_files, *map(Path.as_posix, paths))
    return tuple(dict.fromkeys(name for name in known if name and name != "template"))


def keep_messages(folder: Path, releases: Releases, plan: Plan, rounds: int) -> None:
    """Copy the centre's messages and the sites' attestations from the exchange into the evidence.

    Raises ExchangeError if one is missing. Raises OutputError if a file can't be written.
    """
    mail = releases.mail
    sizes = releases.sizes
    place = folder / kept.EVIDENCE
    names = Names(mail.context.run)
    fetched = {
        kept.ANNOUNCED: (names.study(), MOST_ANNOUNCEMENT),
        kept.STARTED: (names.start(), MOST_NOTICE),
        kept.KEYS: (names.setup("keys"), sizes.keys),
        kept.CLOSED: (names.closing(), most_closing(rounds) + OVERHEAD),
    }
    largest = max(stage.message_bytes for stage in plan.stages)
    heard = max(stage.heard for stage in plan.stages)
    released = max(stage.released_bytes(len(plan.study.sites)) for stage in plan.stages)
    limits = {
        QUERY: MOST_QUERY + OVERHEAD,
        messages.UNMASK: sizes.request(largest, heard),
        messages.RELEASE: sizes.release(released, heard),
    }
    for number in range(1, rounds + 1):
        for kind, limit in limits.items():
            fetched[kept.round_file(number, kind)] = (names.round(number, kind), limit)
    for file, (name, limit) in fetched.items():
        data = mail.get(name, limit)
        if data is not None:
            write_bytes(place / file, data)
            if file.endswith(f"/{QUERY}"):
                _keep_arrays(place, mail, mail.own(name, data, QUERY, int(file.split("/")[0])))
        elif not file.endswith(f"/{messages.UNMASK}"):  # a round without masks has no request
            raise ExchangeError(f"{name} is gone. Have the exchange's owner put it back.")
    keep_attestations(folder, releases, rounds)
    write_json(place / kept.PLAN, plan_record(plan))


def _keep_arrays(place: Path, mail: Mailbox, query: bytes) -> None:
    names = Names(mail.context.run)

    def fetch(digest: str, size: int) -> bytes:
        data = mail.get(names.array(digest), size)
        if data is None:
            raise ExchangeError(f"{names.array(digest)} is gone. Have the owner put it back.")
        path = place / kept.PUBLIC / digest
        if not path.exists():
            write_bytes(path, data)
        return data

    decode_query(query, fetch)


def keep_attestations(folder: Path, releases: Releases, rounds: int) -> None:
    """Copy the attestations on the exchange, as evidence, with their sites' signatures."""
    mail = releases.mail
    names = Names(mail.context.run)
    for site in mail.context.study.sites:
        try:
            data = mail.get(names.attestation(site), most_closing(rounds) + OVERHEAD)
            if data is not None and releases.receive_attestation(data) == site:
                write_bytes(folder / kept.EVIDENCE / kept.ATTESTED / site, data)
        except ProtocolError as error:
            mail.log_once(f"attestation of {site}: {error}")


def sign_files(folder: Path, identity: Ed25519PrivateKey, run: str) -> None:
    """Sign for every file of the output folder, after all files are written."""
    body = encode_closing(Published(dict(digests_of(folder))))
    message = seal(key=identity, run=run, sender=CENTRE, kind=PUBLISHED, round=0, body=body)
    write_bytes(folder / kept.EVIDENCE / kept.PUBLISHED, message)


def digests_of(folder: Path) -> Mapping[str, bytes]:
    """Return the SHA-256 of every file by its path, except for the centre's working files."""
    return {name: hashlib.sha256(_read(folder / name)).digest() for name in _names(folder)}


def _names(folder: Path) -> Iterator[str]:
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if Path(root, name) != work_folder(folder))
        for file in sorted(files):
            name = (Path(root) / file).relative_to(folder).as_posix()
            if name != f"{kept.EVIDENCE}/{kept.PUBLISHED}":
                yield name


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise OutputError(f"{path} can't be read ({error.strerror}). Check its rights.") from error
