"""The command ``evidence``: attestations that came after a result was published.

They have their sites' own signatures. So the centre's list of files need not contain them, no key
is needed, and every owner of a copy can fetch them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from consortium.base.atomic import write_bytes
from consortium.coordinator.provenance import as_contradiction, read_provenance
from consortium.engine.closing import Attestation, Closing, decode_closing, most_closing
from consortium.engine.names import ATTESTATION, CLOSING, Names
from consortium.errors import OversizedError, ProtocolError
from consortium.exchange import Exchange
from consortium.secagg import OVERHEAD, unseal
from consortium.verification import record as kept
from consortium.verification.record import EvidenceRecord, evidence_path
from consortium.verification.verdict import Verdict


@dataclass(frozen=True)
class Found:
    """Result of a search for late attestations."""

    added: tuple[str, ...]
    missing: tuple[str, ...]
    """Sites whose attestation is new in the folder; those that have none there still."""
    refused: tuple[str, ...]
    """Messages on the exchange that are not attestations of their sites, one sentence each."""

    def lines(self) -> Sequence[str]:
        """Return the result as lines of text."""
        lines = list(self.refused)
        if self.added:
            lines.append(f"Added the attestations of {', '.join(self.added)}.")
        if self.missing:
            lines.append(f"No attestation of {', '.join(self.missing)}. Ask them to start again.")
        return lines or ["The folder already has the attestations of all sites."]


def fetch_late(folder: Path, exchange: Exchange) -> Found:
    """Add missing attestations from the exchange to a published folder.

    Existing files are not changed. Raises ConfigurationError if this is not an output folder with
    its evidence. Raises ContradictionError if the folder's evidence contradicts its signatures.
    Raises ExchangeError if the exchange can't be read. Raises OutputError if a file can't be
    written.
    """
    provenance = read_provenance(folder, None, Verdict())
    record = provenance.record
    names = Names(provenance.record.run)
    limit = most_closing(_rounds(record)) + OVERHEAD
    added = []
    missing = []
    refused = []
    for site in provenance.context.study.sites:
        file = f"{kept.ATTESTED}/{site}"
        if record.read(file) is not None:
            continue
        try:
            data = exchange.get(names.attestation(site), limit)
            if data is None:
                missing.append(site)
                continue
            check_attestation(record, site, data)
        except (ProtocolError, OversizedError) as error:
            refused.append(f"{names.attestation(site)} is left out: {error}")
            continue
        write_bytes(folder / kept.EVIDENCE / file, data)
        added.append(site)
    return Found(tuple(added), tuple(missing), tuple(refused))


def check_attestation(record: EvidenceRecord, site: str, data: bytes) -> None:
    """Check that a late message is a site's own attestation; raises ProtocolError."""
    opened = unseal(
        data,
        record.keys,
        run=record.run,
        kind=ATTESTATION,
        limit=len(data),
        sender=site,
        round=0,
    )
    decode_closing(Attestation, opened.body, site)


def _rounds(record: EvidenceRecord) -> int:
    body = record.message(kept.CLOSED, CLOSING)
    return len(
        as_contradiction(
            lambda: decode_closing(Closing, body, "centre"), evidence_path(kept.CLOSED)
        ).records
    )
