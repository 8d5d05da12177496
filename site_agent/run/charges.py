"""Privacy loss of a round's answer, which is reserved and signed before the answer is sent."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from consortium.engine.names import run_secret
from consortium.errors import LedgerError
from consortium.secagg import CENTRE
from consortium.study.plan import Stage
from site_agent.approval.permission import Permission
from site_agent.ledger.ledger import Charge
from site_agent.run.outbox import Outbox
from site_agent.run.setup import JoinedRun, Site


@dataclass(frozen=True)
class AskedRound:
    """A round's question, as it is charged."""

    number: int
    """1, 2, ..."""
    stage: Stage
    """Stage of the plan that the round belongs to."""
    digest: bytes
    """Digest of the plan and the query, to which answer, charge and noise belong."""
    message: bytes
    """The query as the centre signed it."""


class Charges:
    """The charges of one site in one run.

    Parameters
    ----------
    persons : str
        Digest of the participants of the run's hold.
    permission : callable
        Returns the site's current permission for the study, or raises the reason for its absence.
    log_trouble : callable
        Receives temporary errors.
    """

    def __init__(
        self,
        site: Site,
        joined: JoinedRun,
        persons: str,
        permission: Callable[[], Permission],
        outbox: Outbox,
        log_trouble: Callable[[str], None],
    ) -> None:
        self._site = site
        self._persons = persons
        self._permission = permission
        self._outbox = outbox
        self._log_trouble = log_trouble
        self._context = joined.context
        self._plan = joined.plan
        self._index = joined.context.study.sites.index(site.name)
        self._secret = run_secret(site.identity.root, joined.context.run, "site")

    def noise_key(self, question: bytes, statistic: bytes, units: int) -> bytes:
        """Derive a key for each combination of question, answer and number of units.

        The same combination has the same key. So no second noise is drawn after a crash before the
        answer was stored. Another answer or number has another key.
        """
        digest = hashlib.sha256(units.to_bytes(8, "big") + statistic).hexdigest()
        return run_secret(self._secret, question.hex(), f"noise {digest}")

    def commit(self, number: int, key: bytes) -> bool:
        """Record the answer's digest before its charge, and return whether it was known before.

        The record is a digest of the noise's key, which is derived from question and statistic. It
        reveals nothing, and prevents that a second noise is drawn for one charge after a restart
        with another library, processor or data set.
        """
        name = f"{number}/commitment"
        known = self._outbox.stored(name)
        digest = hashlib.sha256(b"commitment" + key).digest()
        if known is None:
            self._outbox.keep(name, digest)
        elif known != digest:
            raise LedgerError(
                f"Round {number} of {self._context.run} was reserved for other numbers than this "
                "machine computes now, so the site stops answering. Take part in a new run, "
                "without changing machine, data or software."
            )
        return known is not None

    def reserve(self, asked: AskedRound, *, remembered: bool) -> bool:
        """Reserve a round in the ledger, and post the signed head; False if done before.

        Raises errors as `permission` if the approval was withdrawn or replaced.
        """
        self._permission()
        new = self._site.ledger.reserve(self.of(asked), self._site.now())
        if not (new or remembered):
            raise LedgerError(
                f"Round {asked.number} of {self._context.run} is charged in the ledger, but its "
                "answer is no longer stored here, so the site stops answering. Restore the "
                "newest copy of its folder, or wait for a new run."
            )
        trouble = self._site.anchor.post()
        if trouble is not None:
            self._log_trouble(str(trouble))
        return new

    def take_back(self, asked: AskedRound) -> None:
        """Cancel the reservation for an answer that was never sent."""
        self._site.ledger.take_back(self.of(asked), self._site.now())

    def mark_sent(self, asked: AskedRound) -> None:
        """Mark a round as answered. It is on disk at the latest with the last round."""
        ledger = self._site.ledger
        mark = ledger.spend if asked.number == self._plan.rounds else ledger.spend_soon
        mark(self.of(asked), self._site.now())

    def holds(self, asked: AskedRound) -> bool:
        """Return whether a round is charged already."""
        return self._site.ledger.holds(self.of(asked))

    def of(self, asked: AskedRound) -> Charge:
        """Return a round's line in the ledger."""
        run = self._context
        stage = asked.stage
        return Charge(
            dataset=self._site.dataset,
            study=run.study.study,
            run=run.run,
            round=asked.number,
            stage=stage.name,
            statistic=stage.release.statistic,
            unit=run.study.privacy.unit,
            mu=float(stage.mechanism.coalition()[self._index]),
            site=self._site.identity.public.hex(),
            centre=run.keys[CENTRE].hex(),
            query=asked.digest.hex(),
            outsider=float(stage.mechanism.outsider()[self._index]),
            persons=self._persons,
        )
