"""The newest states of a site's folder, as the ledger's lines record them.

A backup of a site's folder may restore an approval that was withdrawn, an older roster or a
shorter left-out table. Each of these states therefore has lines in the ledger, whose head is on the
exchange: an older state is detected, wherever it comes from.
"""

from dataclasses import dataclass
from typing import Literal

from site_agent.ledger.entries import Charge

STATE = "state"
"""Event of these lines, which cost nothing."""
Kind = Literal["approval", "roster", "left-out"]


@dataclass(frozen=True)
class State:
    """One state of a site's folder, as a ledger's line records it."""

    kind: Kind
    site: str
    """Public key of the site, in hexadecimal."""
    centre: str = ""
    """Public key of the consortium, in hexadecimal."""
    study: str = ""
    """Name of the study, for an approval."""
    serial: int = 0
    """Serial number of the approval or of the roster."""
    word: str = ""
    """For people, such as 'withdrawn'."""
    digest: str = ""
    """Digest of the roster."""
    persons: str = ""
    """Digest of the group of participants in the left-out table; empty for none."""

    def line(self, number: int) -> Charge:
        """Return the ledger's line, whose name no other line of a site has.

        Parameters
        ----------
        number : int
            Number of the line in the ledger.
        """
        return Charge(
            dataset="",
            study=self.study,
            run=f"({self.kind}) {number}",
            round=self.serial,
            stage=self.kind,
            statistic=self.word,
            unit="",
            mu=0.0,
            site=self.site,
            centre=self.centre,
            query=self.digest,
            outsider=0.0,
            persons=self.persons,
        )
