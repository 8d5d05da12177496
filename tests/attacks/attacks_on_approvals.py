"""Attempts to have a study run that the hospital's people allowed once, or allowed otherwise."""

import contextlib
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.errors import PrivacyError, SiteError
from consortium.membership.keys import create_identity, load_identity
from consortium.membership.roster import Roster
from consortium.privacy.gdp import epsilon_of
from consortium.study.plan import promised_mu
from site_agent.approval.approval import Approval, Terms, approvals, approve, retire_record
from site_agent.approval.permission import Permission, permit
from site_agent.layout import APPROVED, WITHDRAWN
from site_agent.ledger.entries import Charge
from site_agent.ledger.ledger import Ledger
from site_agent.policy.policy import Allowance, Policy
from tests.attacks.attack_kinds import Stage, always, attack, nothing
from tests.support.charges import held
from tests.support.forgery import opened, pump, rounds_of, settle
from tests.support.local_consortium import conduct
from tests.support.membership_files import PLAIN, papers, publish

DAY = date(2026, 11, 21)
GENEROUS = Policy(subject=Allowance(study=100, total=100))


def _yes(place: DemoFolders, terms: Terms = Terms()) -> Approval:  # noqa: B008 - frozen
    folder, files = place.site("north"), place.files
    return approve(folder, "north", load_identity(folder), files.study, files.roster, terms)


def _permitted(place: DemoFolders, approval: Approval) -> Permission:
    folder = place.site("north")
    return permit(folder, load_identity(folder), approval, DAY)


def _first_round(approval: Approval, number: int, share: float = 1.0) -> Charge:
    """A run's first round, at a share of what the whole run costs."""
    text = ("scans", "small", f"small-{number:04d}", 1, "pca", "second_moment", "subject")
    keys = approval.keys["north"].hex(), approval.keys["centre"].hex(), "9e" * 32
    return Charge(*text, share * promised_mu(approval.study), *keys, 0.1)


def _begin(
    stage: Stage, place: DemoFolders, approval: Approval, runs: int, share: float = 1.0
) -> float:
    """Let runs begin that were all set up before the first question; returns their ε."""
    ledger = Ledger(stage.root / "ledger.sqlite")
    limits = _permitted(place, approval).limits(GENEROUS)
    for number in range(1, runs + 1):
        try:
            first, whole = _first_round(approval, number, share), promised_mu(approval.study)
            ledger.reserve(held(ledger, first, loss=whole, limits=limits), "noon")
        except PrivacyError as error:
            stage.said.append(str(error))
    return epsilon_of(ledger.total("scans", "subject"), approval.study.privacy.delta)


@attack(
    "hub",
    guard="site_agent.ledger.ledger:check_begin",
    without="an approval of one run with ε = 8 is used for five, with ε = 22",
    stops="approved for 1 run and had as many",
    instead=nothing,
)
def five_runs_under_one_yes(stage: Stage) -> bool:
    """Sets up five runs of a study before the first query of any."""
    place, _ = papers(stage.root)
    return _begin(stage, place, _yes(place), 5) > 8.1


@attack(
    "hub",
    guard="site_agent.ledger.ledger:check_begin",
    without="each simultaneous run uses the whole limit, so together they exceed it",
    stops="was approved for 1 run and had as many",
    instead=nothing,
)
def runs_side_by_side(stage: Stage) -> bool:
    """Begins five runs at once under an approval of ε = 8 for all runs together."""
    place, _ = papers(stage.root)
    return _begin(stage, place, _yes(place, Terms(5, 8.0)), 5) > 8.1


@attack(
    "hub",
    guard="site_agent.ledger.ledger:check_begin",
    without="a run begins whose loss can't be charged to its end, and the earlier loss is wasted",
    stops="was approved for 1 run and had as many",
    instead=always(True),
)
def run_that_dies_half_way(stage: Stage) -> bool:
    """Begins a second run. The approval covers its first round, but not its last."""
    place, _ = papers(stage.root)
    approval = _yes(place, Terms(2, 9.0))
    _begin(stage, place, approval, 2, share=0.7)
    begun = Ledger(stage.root / "ledger.sqlite").runs("small", [approval.keys["centre"].hex()])
    return len(begun) == 2


def _every_yes_counts(_real: object) -> Callable[..., bool]:
    return lambda *_asked: False


@attack(
    "hub",
    guard="site_agent.approval.approval:_is_ended",
    without="an earlier, wider approval is still used",
    stops="0 yeses count",
    instead=_every_yes_counts,
)
def older_yes_with_more(stage: Stage) -> bool:
    """Has the study's first record restored, after it was approved again for less."""
    place, members = papers(stage.root)
    first = _yes(place)
    place.files.study.write_text(PLAIN.replace("epsilon: 8", "epsilon: 2"))
    publish(place, members)
    _yes(place)
    folder = place.site("north")
    (old,) = (folder / APPROVED / WITHDRAWN).glob("*.json")
    shutil.copy(old, folder / APPROVED / "small.json")
    known = approvals(folder, load_identity(folder))
    stage.said.append(f"{len(known)} yeses count")
    return first in known


def _rotated(place: DemoFolders, members: Roster) -> Roster:
    """Give the consortium a new key, and sign everything with it."""
    old = load_identity(place.files.keys)
    (place.files.keys / "keys").unlink()
    new = create_identity(place.files.keys, b"n" * 64).public
    members = members.handed_over(old.key, new)
    publish(place, members)
    return members


@attack(
    "hub",
    guard="site_agent.enrolment.pinned_consortium:PinnedConsortium.check_keys",
    without="the thief of a replaced key of the consortium can still send queries",
    stops="with a key of centre that the newest roster seen here, number 6, does not have",
    instead=nothing,
)
def yes_under_a_replaced_key(stage: Stage) -> bool:
    """Runs a study that was approved under a consortium's key that was replaced since then."""
    place, members = papers(stage.root)
    old = _yes(place)
    place.files.study.write_text(PLAIN.replace("study: small", "study: other"))
    _rotated(place, members)
    _yes(place)
    return _permitted(place, old).approval == old


def _present_key(_real: object) -> property:
    return property(lambda trust: frozenset({trust.centre.hex()}))


@attack(
    "hub",
    guard="site_agent.enrolment.pinned_consortium:PinnedConsortium.centres",
    without="with every new key the consortium may spend the study's limit once more",
    stops="approved for 1 run and had as many",
    instead=_present_key,
)
def rotation_that_forgets(stage: Stage) -> bool:
    """Changes the consortium's key, and begins a second run under an approval of a single run."""
    place, members = papers(stage.root)
    _begin(stage, place, _yes(place), 1)
    _rotated(place, members)
    return _begin(stage, place, _yes(place), 1) > 8.1


def _whatever_was_said(_real: object) -> Callable[..., Permission]:
    def permitted(_folder: Path, _identity: object, begun: Approval, today: date) -> Permission:
        return Permission(begun, frozenset({begun.keys["centre"].hex()}), today)

    return permitted


@attack(
    "hub",
    guard="site_agent.run.admission:permit",
    without="a withdrawal during a run takes effect only after it",
    stops="The approval of 'small' was withdrawn",
    instead=_whatever_was_said,
)
def yes_that_was_taken_back(stage: Stage) -> bool:
    """Continues a run for which a site has withdrawn its approval."""
    local = opened(settle(stage.root / "place"))
    folder = local.place.site("north")  # a withdrawal whose ledger is not written to as well
    retire_record(folder, load_identity(folder), "small")
    with contextlib.suppress(SiteError):
        conduct(local.centre())
    pump(local)
    stage.said.append(local.said("north"))
    return rounds_of(local.place, "north") != []
