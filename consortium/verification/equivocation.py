"""Checks that sites sent the same answers to their neighbours and to the centre.

Where sites communicate with each other, each signs its answer twice: for all parties in the
manifest of its contribution, and in the broadcast that its neighbours use. They list that
broadcast's digest and signature in their own manifests. So a site that signed two answers to one
question has proven it itself, and also a site that lists an answer that its sender did not sign.
The release agrees with the signatures in both cases. This leaves a result open, and contradicts
nothing.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from consortium.errors import printable
from consortium.secagg.envelope import has_signed
from consortium.secagg.messages import BROADCAST, RELEASE, Heard, Manifest
from consortium.secagg.participants import CENTRE, NAME_BYTES
from consortium.verification.agreement import RunAgreement
from consortium.verification.record import evidence_path, round_file
from consortium.verification.rounds import Released
from consortium.verification.verdict import Verdict


@dataclass(frozen=True)
class Equivocation:
    """Fault that a site has proven about itself."""

    round: int
    site: str
    """Sites that signed two answers, or listed an answer that was not signed."""
    sentence: str


def check_equivocation(
    agreement: RunAgreement, rounds: Sequence[Released], verdict: Verdict
) -> None:
    """Report every site that sent its neighbours another answer, or lists an unsigned one."""
    manifests = {done.number: done.manifests for done in rounds}
    keys = {site: agreement.context.keys[site] for site in agreement.context.study.sites}
    for found in equivocations(agreement.context.run, keys, manifests):
        verdict.leave_open(evidence_path(round_file(found.round, RELEASE)), found.sentence)


def equivocations(
    run: str, keys: Mapping[str, bytes], manifests: Mapping[int, Mapping[str, Manifest]]
) -> Iterator[Equivocation]:
    """Compare the answers that sites list with those that their senders signed.

    Parameters
    ----------
    keys : mapping of str to bytes
        Every site's Ed25519 public key.
    manifests : mapping of int to mapping of str to Manifest
        The survivors' manifests of each round.
    """
    said: dict[tuple[int, str], dict[bytes, list[str]]] = defaultdict(lambda: defaultdict(list))
    for number, by_site in manifests.items():
        for site, manifest in by_site.items():
            if manifest.opened:
                said[number, site][manifest.opened].append(CENTRE)
            unsigned = [each for each in manifest.heard if not _is_signed(run, keys, each)]
            if unsigned:
                yield Equivocation(number, site, _invented(number, site, unsigned))
            for each in manifest.heard:
                if each not in unsigned:
                    said[each.round, each.site][each.body].append(site)
    for (number, site), answers in sorted(said.items()):
        if _differ(answers):
            yield Equivocation(number, site, _equivocated(number, site, list(answers.values())))


def _is_signed(run: str, keys: Mapping[str, bytes], heard: Heard) -> bool:
    """Return whether a listed broadcast was signed by its sender for this run and round."""
    return heard.site in keys and has_signed(
        keys[heard.site],
        run=run,
        sender=heard.site,
        kind=BROADCAST,
        number=heard.round,
        digest=heard.body,
        signature=heard.signature,
    )


def _differ(answers: Mapping[bytes, Sequence[str]]) -> bool:
    """Return whether a site signed more than one answer to a round."""
    return len(answers) > 1


def _invented(number: int, site: str, listed: Sequence[Heard]) -> str:
    first = listed[0]
    what = f"{printable(first.site, NAME_BYTES)} to round {first.round}"
    more = f", and {len(listed) - 1} more" if len(listed) > 1 else ""
    return (
        f"{site} lists in round {number} that it received an answer of {what}{more}, which no "
        f"party signed: {site} is dishonest, or has other software."
    )


def _equivocated(number: int, site: str, answers: Sequence[Sequence[str]]) -> str:
    others = "; another to ".join(", ".join(dict.fromkeys(who)) for who in answers)
    return (
        f"{site} signed {len(answers)} different answers to round {number}, one to {others}: this "
        f"is proven by its own signatures. Ask {site} for the reason, and don't use its part of "
        "the result."
    )
