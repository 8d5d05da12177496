"""The messages of one round: who answered in time, and the sum that their answers open."""

from collections.abc import Sequence

from consortium.base.formatting import said_together
from consortium.engine.mailbox import AwaitedMessages, Mailbox, foreign_message
from consortium.engine.names import QUERY, Names
from consortium.engine.run_context import RunContext
from consortium.errors import AbsentError, ProtocolError, SiteError, ThresholdError
from consortium.secagg import Hub, RoundSum
from consortium.secagg.messages import UNMASK, Limits
from consortium.study.plan import Stage, nominal_shape
from consortium.study.slots import round_slot


class RoundMessages:
    """Messages that the centre collects in a round, and posts between two answers.

    Parameters
    ----------
    context : RunContext
        With the sites with which the run started.
    hub : Hub
        Receives the answers.
    sizes : Limits
        Bytes of the largest message of each kind.
    """

    def __init__(self, context: RunContext, mail: Mailbox, hub: Hub, sizes: Limits) -> None:
        self._context = context
        self._mail = mail
        self._hub = hub
        self._sizes = sizes
        self._names = Names(context.run)
        self._given: dict[str, float] = {}
        self.late: set[str] = set()
        """Sites that missed the last round, and whose answer to it was not stored in time."""

    def places(self, number: int, kind: str) -> dict[str, str]:
        """Name on the exchange of each site's message of a kind."""
        return {s: self._names.round(number, kind, s) for s in self._context.study.sites}

    def contributions(self, number: int, stage: Stage, posted: Sequence[str] | None = None) -> None:
        """Wait for contributions, only from sites ``posted`` as survivors before a crash."""
        study = self._context.study
        seconds = self._context.study.timing.answer
        places = self.places(number, "contribution")
        if posted is not None:
            places = {site: places[site] for site in posted}
        limit = self._sizes.contribution(stage.message_bytes, stage.heard)
        soon = study.timing.late + self._slot(stage)
        self._forgive(number - 1)
        late = {site: min(seconds, soon) for site in self.late}
        self._given = dict.fromkeys(places, seconds) | late
        self._mail.collect(
            AwaitedMessages.within(
                seconds,
                f"round {number} (contribution)",
                places,
                limit,
                self._hub.receive_contribution,
                late=late,
            )
        )
        missing = [s for s in study.sites if s not in self._hub.contributed(number)]
        if len(missing) > study.privacy.dropouts:
            raise shortage(self._mail, missing, f"no sound answer to round {number}", seconds)
        if missing:
            self._mail.log(f"round {number}: continuing without {', '.join(missing)}")
        self.late = set(missing)

    def _forgive(self, number: int) -> None:
        """Take sites whose answer to a round was on the exchange in time as punctual.

        A share or a slow centre may have shown it late. Sites that were not asked stay late.
        """
        asked = self._names.round(number, QUERY)
        places = self.places(number, "contribution")
        for site in sorted(self.late & self._given.keys()):
            if self._mail.in_time(asked, places[site], self._given[site]):
                self.late.discard(site)
                self._mail.log(
                    f"{site} had answered round {number} in time by the exchange's clock, and this "
                    "centre saw it too late"
                )

    def _slot(self, stage: Stage) -> float:
        """Return the seconds that every site takes to answer, as `round_slot`."""
        shape = nominal_shape(self._context.study, self._context.extent)
        return round_slot(shape, stage.release)

    def request(self, number: int, stage: Stage, *, resumes: bool) -> None:
        """Close the round's contributions and post whose arrived.

        ``resumes`` says that this may have been done before a crash.
        """
        name = self._names.round(number, UNMASK)
        limit = self._sizes.request(stage.message_bytes, stage.heard)
        stored = self._mail.get(name, limit) if resumes else None
        if stored is not None:  # posted before a crash: the lists must stay as they are
            try:
                self._hub.restore(number, stored)
            except ProtocolError as error:
                raise foreign_message(name, error) from error
        self.contributions(number, stage)
        self._mail.put_own(name, self._hub.request(number), UNMASK, number)

    def sum(self, number: int) -> RoundSum:
        """Open the sum with the fewest answers that suffice, or with all if shares are wrong."""
        survivors = self._hub.contributed(number)
        self._unmasking(number, survivors, self._context.roster.answers)
        try:
            return self._hub.sum(number)
        except ThresholdError as error:
            self._mail.log(str(error))
        self._unmasking(number, survivors, len(survivors))
        return self._hub.sum(number)

    def _unmasking(self, number: int, survivors: Sequence[str], enough: int) -> None:
        answered = self._hub.answered(number)
        places = self.places(number, "unmasking")
        due = {site: places[site] for site in survivors if site not in answered}
        missing = self._mail.collect(
            AwaitedMessages.within(
                self._context.study.timing.answer,
                f"round {number} (unmasking)",
                due,
                self._sizes.unmasking,
                self._hub.receive_unmasking,
                enough=enough - len(answered),
            )
        )
        needed = self._context.roster.answers
        if len(survivors) - len(missing) < needed:
            self._hub.abandon(number)
            raise ThresholdError(
                f"{', '.join(missing)}: no answer while round {number} was summed, and "
                f"{needed} sites are needed to open the sum. The round is given up."
            )


def not_started(mail: Mailbox, missing: Sequence[str]) -> AbsentError:
    """Name the missing sites without which a run does not start, before any query."""
    study = mail.context.study
    timing = study.timing
    here = len(study.sites) - len(missing)
    needed = f"{here} of {study.fewest} needed sites are there."
    mail.notices.look_for_approvals()
    slow = [s for s in missing if s in mail.notices.loading and s not in mail.notices.refused]
    if not slow or timing.ready <= timing.join:
        return AbsentError(f"{shortage(mail, missing, 'not there', timing.join)} {needed}")
    rest = [site for site in missing if site not in slow]
    others = f"{shortage(mail, rest, 'not there', timing.join)} " if rest else ""
    return AbsentError(
        f"{others}{', '.join(slow)}: still loading after {timing.ready:g} s. Nothing was asked "
        "or charged. Raise timing.ready, or run the study again when 'site-agent status' says "
        f"there that the site is ready. {needed}"
    )


def shortage(mail: Mailbox, sites: Sequence[str], what: str, seconds: float) -> SiteError:
    """Name the missing sites without which a run ends, and the reasons of refusals."""
    notices = mail.notices
    reasons = [notices.refused[site] for site in sites if site in notices.refused]
    silent = [site for site in sites if site not in notices.refused]
    unapproved = {s: notices.unapproved[s] for s in silent if s in notices.unapproved}
    reasons += [each.rstrip(".") for each in said_together(unapproved)]
    remedy = ". Ask the site's people" if len(silent) < len(sites) else ""
    silent = [site for site in silent if site not in unapproved]
    if silent:
        reasons.append(f"{', '.join(silent)}: {what} within {seconds:g} s")
        remedy = ". Start the site's agent"
    return SiteError(f"{'. '.join(reasons)}{remedy} and run the study again.")
