"""``site-agent status``: a site's state in a terminal, or as JSON for a script."""

from dataclasses import asdict, dataclass
from pathlib import Path

from consortium.base.formatting import count, moment
from consortium.base.lock import in_use
from consortium.engine.clock import Waiting, read_waiting
from consortium.errors import ConsortiumError, LedgerError
from consortium.membership.keys import Identity, load_identity
from consortium.membership.roster import fingerprint
from consortium.secagg import CENTRE
from site_agent.approval.approval import Approval, approvals
from site_agent.approval.folder import SiteFolder
from site_agent.approval.folder_states import FolderStates
from site_agent.approval.offers import Offer, read_offers
from site_agent.config import SiteConfig
from site_agent.enrolment.pinned_consortium import PinnedConsortium, read_pinned
from site_agent.ledger.ledger import Ledger

HEADING = 11
"""Characters before the text in each line of `SiteStatus.lines`."""


@dataclass(frozen=True)
class ListedApproval:
    """An approved study as status shows it, and why it no longer counts, if so."""

    approval: Approval
    refused: str
    begun: int = 0
    """Runs of the study that are charged or under way."""

    @property
    def left(self) -> int:
        """Return the number of approved runs that can still begin."""
        return 0 if self.refused else max(self.approval.terms.runs - self.begun, 0)

    def as_json(self) -> dict[str, object]:
        """Return the content of ``status --json``."""
        study = self.approval.study
        terms = self.approval.terms
        return {
            "study": study.study,
            "algorithm": study.algorithm,
            "unit": study.privacy.unit,
            "epsilon": study.privacy.epsilon,
            "delta": study.privacy.delta,
            "runs": terms.runs,
            "runs_left": self.left,
            "epsilon_in_all": terms.epsilon,
            "until": terms.until.isoformat() if terms.until else None,
            "refused": self.refused or None,
        }


@dataclass(frozen=True)
class SiteStatus:
    """A site's state."""

    config: SiteConfig
    key: bytes
    """The site's public key."""
    trust: PinnedConsortium | None
    """The consortium that it has joined."""
    approved: tuple[ListedApproval, ...]
    running: bool
    """Whether the agent is running."""
    waiting: Waiting | None
    """Events that the agent waits for."""
    undecided: tuple[Offer, ...] = ()
    """Studies in the folder ``studies`` that wait for a decision of the site's staff."""

    def lines(self) -> list[str]:
        """Return what ``status`` prints."""
        trust = self.trust
        joined = (
            f"{fingerprint(trust.centre)}, roster {trust.serial}" if trust else "none joined yet"
        )
        lines = [
            f"site       {self.config.name}",
            f"key        {self.key.hex()} ({fingerprint(self.key)})",
            f"data set   {self.config.dataset}",
            f"exchange   {self.config.exchange}",
            f"consortium {joined}",
        ]
        for yes in self.approved:
            line = approval_line(yes.approval)
            lines.append(f"approved   {line}, {yes.left} left")
            if yes.refused:
                lines.append(f"refused    {yes.refused}")
        for offer in self.undecided:
            heading = offer.study.heading if offer.study else offer.path.stem
            lines.append(f"undecided  {heading} ({offer.path})")
        lines.append(f"agent      {'running' if self.running else 'not running'}")
        if self.waiting is not None:
            who = ", ".join(f"{name}: {what}" for name, what in self.waiting.sites.items())
            since = moment(self.waiting.since)
            lines.append(f"waits      {self.waiting.step}: {who}, since {since}")
        return lines

    def as_json(self) -> dict[str, object]:
        """Return what ``status --json`` prints."""
        trust = self.trust
        return {
            "site": self.config.name,
            "key": self.key.hex(),
            "fingerprint": fingerprint(self.key),
            "dataset": str(self.config.dataset),
            "exchange": self.config.exchange,
            "consortium": trust and {"key": trust.centre.hex(), "roster": trust.serial},
            "approved": [yes.as_json() for yes in self.approved],
            "undecided": [offer.study.study for offer in self.undecided if offer.study],
            "running": self.running,
            "waiting": self.waiting and asdict(self.waiting),
        }


def read_status(folder: Path) -> SiteStatus:
    """Read a site's folder; raises ConfigurationError if a file can't be read."""
    config = SiteConfig.load(folder)
    identity = load_identity(folder)
    trust = read_pinned(folder)
    approved = _listed(folder, config, identity, trust)
    running = in_use(folder)
    waiting = read_waiting(folder) if running else None
    return SiteStatus(
        config=config,
        key=identity.public,
        trust=trust,
        approved=approved,
        running=running,
        waiting=waiting,
        undecided=tuple(each for each in read_offers(SiteFolder.open(folder)) if each.is_waiting),
    )


def approval_line(approval: Approval) -> str:
    """Return a line of `site-agent status` about an approval."""
    study = approval.study
    terms = approval.terms
    p = study.privacy
    text = f"{study.study}: {study.algorithm}, ε ≤ {p.epsilon:g} at δ = {p.delta:g}, unit {p.unit}"
    text += f", {count(terms.runs, 'run')}"
    if terms.epsilon is not None:
        text += f", ε ≤ {terms.epsilon:g} in all"
    return text + (f", until {terms.until}" if terms.until else "")


def _listed(
    folder: Path, config: SiteConfig, identity: Identity, trust: PinnedConsortium | None
) -> tuple[ListedApproval, ...]:
    """Return all approvals, each with its begun runs and whether the ledger has a newer one.

    A ledger that can't be read counts as empty, which is reported elsewhere.
    """
    found = approvals(folder, identity)
    older: dict[str, str] = {}
    begun: dict[str, int] = {}
    try:
        if config.ledger.exists():
            ledger = Ledger(config.ledger)
            older = FolderStates(folder, config, identity, ledger).older_approvals()
            for each in found:
                centres = {each.keys[CENTRE].hex(), *(trust.centres if trust else ())}
                begun[each.study.study] = len(ledger.under_way(each.study.study, centres))
    except LedgerError:  # which the sentences on the budget state
        older = {}
        begun = {}
    return tuple(
        ListedApproval(
            approval=each,
            refused=older.get(each.study.study) or _refused(trust, each),
            begun=begun.get(each.study.study, 0),
        )
        for each in found
    )


def _refused(trust: PinnedConsortium | None, approval: Approval) -> str:
    try:
        (trust or PinnedConsortium(b"")).check_keys(approval.study.study, approval.keys)
    except ConsortiumError as error:
        return str(error)
    return ""
