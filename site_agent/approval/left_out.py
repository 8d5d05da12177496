"""The staff's confirmation of the table of participants whom the site leaves out."""

from pathlib import Path

from consortium.errors import ConsortiumError
from consortium.membership.keys import load_identity
from site_agent.approval.folder_states import FolderStates
from site_agent.config import SiteConfig
from site_agent.enrolment.request import open_anchor
from site_agent.ledger.ledger import Ledger


def read_states(folder: Path) -> FolderStates:
    """Return the states of a site's folder; raises ConfigurationError if a file can't be read."""
    config = SiteConfig.load(folder)
    return FolderStates(folder, config, load_identity(folder), Ledger(config.ledger))


def record_left_out(folder: Path, at: str) -> ConsortiumError | None:
    """Record the left-out table as it is now, also if it lacks participants.

    Raises TableError if the table can't be read. Raises LedgerError if the ledger can't be used.

    Parameters
    ----------
    folder : Path
        The site's.
    at : str
        Time, for people.

    Returns
    -------
    ConsortiumError or None
        Why the ledger's head was not put on the exchange.
    """
    states = read_states(folder)
    states.confirm_left_out(at)
    return open_anchor(folder, states.config, states.identity).post()
