"""The sums once more, from the very messages on the exchange: exact, and trusting nobody."""

from consortium.engine.names import Names
from consortium.errors import (
    AlteredError,
    ConsortiumError,
    ContradictionError,
    ExchangeError,
    ProtocolError,
)
from consortium.exchange.base import Exchange
from consortium.secagg import messages
from consortium.secagg.keystream import Ring
from consortium.secagg.release import add_again, added, agrees
from consortium.verification.agreement import RunAgreement
from consortium.verification.rounds import Released
from consortium.verification.verdict import Verdict


def add_rounds_again(
    exchange: Exchange, agreement: RunAgreement, rounds: list[Released], verdict: Verdict
) -> None:
    """Add every round again that releases its masked sum."""
    names = Names(agreement.context.run)
    for done in rounds:
        if not done.summed:
            continue
        where = names.round(done.number, messages.CONTRIBUTION)
        try:
            _add(exchange, names, agreement, done)
        except ContradictionError as error:
            verdict.contradict(
                error, "Only the centre, who signed for these numbers, can have caused it."
            )
        except ConsortiumError as error:
            verdict.leave_open(where, str(error))
            verdict.shown.discard(done.number)
        else:
            verdict.shown.add(done.number)


def _add(exchange: Exchange, names: Names, agreement: RunAgreement, done: Released) -> None:
    number, release, mechanism = done.number, done.release, done.stage.mechanism
    clear = mechanism.public

    def vector(site: str) -> Ring:
        manifest = done.manifests[site]
        place = names.round(number, messages.CONTRIBUTION, site)
        limit = agreement.session.limits.contribution(manifest.size, len(manifest.heard))
        found = exchange.get(place, limit)
        if found is None:
            raise ExchangeError(f"{place} is gone, so round {number} can't be added again.")
        return added(site, number, manifest, found, mechanism.entries, clear=clear)

    vectors = (vector(site) for site in release.survivors)
    directory, entries = agreement.directory, mechanism.entries
    try:
        total = add_again(
            agreement.session, directory, number, release, vectors, entries, clear=clear
        )
    except AlteredError:
        raise
    except ProtocolError as error:  # signed for, and yet no vector of this round
        raise ContradictionError(names.round(number, messages.RELEASE), str(error)) from error
    if not agrees(total, release):
        raise ContradictionError(
            names.round(number, messages.RELEASE),
            f"the numbers released in round {number} are not the sum of what sites signed.",
        )
