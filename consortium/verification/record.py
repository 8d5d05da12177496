"""The messages of a run as they are stored next to its result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from consortium.errors import ContradictionError, ProtocolError
from consortium.secagg import CENTRE, unseal

EVIDENCE = "evidence"
ANNOUNCED = "announcement"
STARTED = "start"
KEYS = "keys"
PLAN = "plan.json"
CLOSED = "closing"
ATTESTED = "attestation"
PUBLISHED = "published"
PUBLIC = "public"


def round_file(number: int, kind: str) -> str:
    """Return the file of a round's message of the centre."""
    return f"{number:05d}/{kind}"


@dataclass(frozen=True)
class EvidenceRecord:
    """Messages of one run by their names in the folder of evidence."""

    run: str
    keys: Mapping[str, bytes]
    """Ed25519 public keys of the centre and the study's sites."""
    read: Callable[[str], bytes | None]
    """Returns a file of the folder, or None."""

    def file(self, name: str) -> bytes:
        """Return a file; raises ContradictionError if it is missing."""
        data = self.read(name)
        if data is None:
            raise ContradictionError(
                evidence_path(name), "is missing, though every finished run has it."
            )
        return data

    def message(self, name: str, kind: str, number: int = 0, sender: str = CENTRE) -> bytes:
        """Return the body of a signed message.

        Raises ContradictionError if it is missing, or not the sender's of this kind, run and round.
        """
        data = self.file(name)
        try:
            return unseal(
                data,
                self.keys,
                run=self.run,
                kind=kind,
                limit=len(data),
                sender=sender,
                round=number,
            ).body
        except ProtocolError as error:
            raise ContradictionError(evidence_path(name), str(error)) from error


def evidence_path(name: str) -> str:
    """Return the path of a file of the evidence, in the output folder."""
    return f"{EVIDENCE}/{name}"
