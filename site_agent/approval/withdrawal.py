"""The staff's act of withdrawing an approval."""

from collections.abc import Callable
from datetime import date
from pathlib import Path

from consortium.base.lock import take_turns
from consortium.errors import ConsortiumError
from consortium.membership.keys import load_identity
from site_agent.approval.approval import post_withdrawn, retire_record
from site_agent.approval.folder_states import FolderStates
from site_agent.config import SiteConfig
from site_agent.enrolment.request import open_anchor
from site_agent.layout import DECISIONS
from site_agent.ledger.ledger import Ledger


def take_back(
    folder: Path, study: str, today: date, still: Callable[[], None] = lambda: None
) -> ConsortiumError | None:
    """Withdraw an approval; a running agent reserves nothing for the study from now on.

    The withdrawal is recorded in the ledger, and the ledger's head is put on the exchange. Raises
    StudyError if the study is not approved. Raises ConfigurationError if the site's folder can't be
    used.

    Parameters
    ----------
    folder : Path
        The site's folder.
    study : str
        The study's name.
    today : date
        The day, for the ledger's readers.
    still : callable
        Called directly before the withdrawal, while no other decision can be made. It raises an
        error if the site has changed since the staff looked.

    Returns
    -------
    ConsortiumError or None
        Why the withdrawal is not recorded in the ledger or on the exchange.
    """
    config = SiteConfig.load(folder)
    identity = load_identity(folder)
    with take_turns(folder, DECISIONS):
        still()
        retire_record(folder, identity, study)
        try:
            ledger = Ledger(config.ledger)
            FolderStates(folder, config, identity, ledger).settle_approvals(today.isoformat())
            trouble = open_anchor(folder, config, identity).post()
            post_withdrawn(folder, identity, config.name, config.open_exchange())
        except ConsortiumError as error:
            return error
        return trouble
