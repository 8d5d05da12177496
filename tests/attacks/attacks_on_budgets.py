"""Attempts to have more of a site's data than its people agreed to pay for."""

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from consortium.exchange import MemoryExchange
from consortium.membership.keys import Identity, create_identity
from consortium.study.reader import parse_study
from site_agent.ledger.anchor import LedgerAnchor
from site_agent.ledger.export import export_json, verify_export
from site_agent.ledger.ledger import Charge, Ledger
from site_agent.ledger.persons import Totals, key_path
from site_agent.policy.policy import Policy, StudyRequest, refuse_by_policy
from tests.attacks.attack_kinds import Stage, always, attack, nothing
from tests.support.charges import held, up_to, whole_run

LIMIT = 1.0  # μ
_STUDY = (
    "study: small\nsites: [north, east, south, west]\n"
    "participants: {north: 10, east: 10, south: 10, west: 10}\nalgorithm: average\n"
    "privacy: {epsilon: 8, delta: 1.0e-5, colluding_sites: 1}\ndata: {detrend: none}\n"
)


def _charge(number: int, query: str = "9e") -> Charge:
    values: dict[str, Any] = dict.fromkeys(Charge.__dataclass_fields__, "x" * 64)
    return Charge(
        **values
        | {"unit": "subject", "round": number, "mu": 0.6, "outsider": 0.5, "query": query * 32}
        | {"persons": ""}
    )


def _held(ledger: Ledger, charge: Charge) -> Charge:
    """A round of a run that holds as much as the limit covers."""
    return held(ledger, charge, loss=LIMIT, limits=up_to(LIMIT))


def _spend(ledger: Ledger, *rounds: int) -> None:
    for number in rounds:
        charge = _held(ledger, _charge(number))
        ledger.reserve(charge, "noon")
        ledger.spend(charge, "noon")


def _hold(ledger: Ledger, charge: Charge, people: Sequence[str]) -> list[str]:
    """Hold a run of one round; return who is left out."""
    return ledger.hold(whole_run(charge, charge.mu), people, up_to(LIMIT), "noon")[1]


def _copy(source: Path, target: Path) -> None:
    shutil.copy(key_path(source), key_path(target))
    with contextlib.closing(sqlite3.connect(source)) as old:
        copy = sqlite3.connect(target)
        old.backup(copy)
        copy.close()


@attack(
    "hub",
    guard="site_agent.ledger.ledger:check_covered",
    without="the loss exceeds the site's limit",
    stops="costs more than the run's hold",
    instead=nothing,
)
def one_round_too_many(stage: Stage) -> bool:
    """Sends another query when the loss that was reserved for the run is charged."""
    ledger = Ledger(stage.root / "ledger.sqlite")
    _spend(ledger, 1, 2, 3)
    ledger.release(_charge(1).run, _charge(1).site, "noon")
    return ledger.total(_charge(1).dataset, _charge(1).unit) > LIMIT


@attack(
    "hub",
    guard="site_agent.ledger.ledger:check_covered",
    without="budget that was released and reserved for another run is charged by both",
    stops="has no hold in the ledger",
    instead=nothing,
)
def question_after_the_end(stage: Stage) -> bool:
    """Ends a run, has another one reserve the budget, and sends a query of the first again."""
    ledger = Ledger(stage.root / "ledger.sqlite")
    charge = _held(ledger, _charge(1))
    ledger.release(charge.run, charge.site, "noon")
    _hold(ledger, replace(charge, run="another", mu=LIMIT), ["01", "02"])
    ledger.reserve(charge, "noon")
    return ledger.total(charge.dataset, charge.unit) > LIMIT


def _easily_pleased(real: Callable[..., Charge | None]) -> Callable[..., Charge | None]:
    def find(book: Any, charge: Charge, event: str) -> Charge | None:
        known = real(book, charge, event)
        return charge if known and charge.round else known

    return find


@attack(
    "hub",
    guard="site_agent.ledger.file:LedgerFile.find",
    without="a second query is answered for one charge",
    stops="was reserved with another loss or for another question",
    instead=_easily_pleased,
)
def other_question_for_a_paid_round(stage: Stage) -> bool:
    """Sends another query under the number of a round that was charged."""
    ledger = Ledger(stage.root / "ledger.sqlite")
    _spend(ledger, 1)
    other = replace(_held(ledger, _charge(1)), query="66" * 32)
    return not ledger.reserve(other, "noon")  # False: nothing to pay


def _whoever_asks(real: Callable[..., Charge | None]) -> Callable[..., Charge | None]:
    def find(book: Any, charge: Charge, event: str) -> Charge | None:
        if not charge.round:
            return real(book, charge, event)
        known = (each for each in book.read() if each.event == event)
        return next((charge for each in known if each.charge.round == charge.round), None)

    return find


@attack(
    "hub",
    guard="site_agent.ledger.file:LedgerFile.find",
    without="the answer to one consortium is sent to another without a charge",
    stops="^paid$",
    instead=_whoever_asks,
)
def run_named_as_another_consortiums(stage: Stage) -> bool:
    """Gives its run the name of another consortium's run, which was charged."""
    ledger = Ledger(stage.root / "ledger.sqlite")
    _spend(ledger, 1)
    other = replace(_charge(1), centre="ab" * 32)
    paid = ledger.reserve(held(ledger, other), "noon")
    stage.said.append("paid" if paid else "free")
    return not paid


def _no_losses(_real: object) -> Callable[..., Totals]:
    return lambda _sums, _accounts, ids: np.zeros(len(ids))


@attack(
    "site",
    guard="site_agent.ledger.persons:PersonSums.of",
    without="a participant's whole budget is spent again for every copy of the scans",
    stops="^02 is left out$",
    instead=_no_losses,
)
def copy_of_the_scans(stage: Stage) -> bool:
    """Copies some of the scans to another folder, and charges them as a new data set."""
    ledger = Ledger(stage.root / "ledger.sqlite")
    for number, people in enumerate((["01", "02"], ["02"], ["02", "03"]), start=1):
        study = f"study-{number}"
        charge = replace(_charge(1), dataset=f"/copy/{number}", study=study, run=study)
        stage.said += [f"{each} is left out" for each in _hold(ledger, charge, people)]
    return ledger.total("", charge.unit, ["02"]) > LIMIT  # 0.6 three times where twice is the limit


@attack(
    "disk intruder",
    guard="site_agent.ledger.anchor:LedgerAnchor.check",
    without="the budget spent since the backup is spent again",
    stops="is a backup from before the last losses",
    instead=always(0),
)
def ledger_from_a_backup(stage: Stage) -> bool:
    """Replaces the ledger by an older copy."""
    path, backup = stage.root / "ledger.sqlite", stage.root / "backup.sqlite"
    identity = create_identity(stage.root, bytes(range(64)))
    ledger, exchange = Ledger(path), MemoryExchange()
    anchor = LedgerAnchor(exchange, identity, "north", ledger)
    _spend(ledger, 1)
    _copy(path, backup)
    _spend(ledger, 2)
    assert anchor.post() is None
    ledger.close()
    for file in stage.root.glob("ledger.sqlite*"):
        file.unlink()
    _copy(backup, path)
    again = Ledger(path)
    LedgerAnchor(exchange, identity, "north", again).check()
    _spend(again, 3)
    return True  # three rounds of 0.6 where two are the limit


@attack(
    "exchange",
    guard="site_agent.ledger.anchor:LedgerAnchor._check_new",
    without="an attacker who deletes a site's heads can make it accept any older ledger",
    stops="accept it with 'site-agent ledger --accept'",
    instead=nothing,
)
def heads_that_were_deleted(stage: Stage) -> bool:
    """Deletes every head that a site signed before an older ledger of the site is restored."""
    path = stage.root / "ledger.sqlite"
    identity = create_identity(stage.root, bytes(range(64)))
    ledger, before = Ledger(path), stage.root / "backup.sqlite"
    _answer(ledger, identity, 1)
    _copy(path, before)
    _answer(ledger, identity, 2)
    LedgerAnchor(
        MemoryExchange(), identity, "north", Ledger(before)
    ).check()  # of which nothing is left
    _answer(Ledger(before), identity, 3)
    return True  # three rounds of 0.6 where two are the limit


def _answer(ledger: Ledger, identity: Identity, number: int) -> None:
    charge = _held(ledger, replace(_charge(number), site=identity.public.hex()))
    ledger.reserve(charge, "noon")
    ledger.spend(charge, "noon")


def _each_for_itself(_real: object) -> Callable[[str], tuple[str, ...]]:
    return lambda unit: (unit,)


@attack(
    "hub",
    guard="site_agent.ledger.limits:counted",
    without="a volume loses √2 times its limit: once as a volume and once with its participant",
    stops="^01 is left out$",
    instead=_each_for_itself,
)
def volume_charged_once_of_two(stage: Stage) -> bool:
    """Runs a study that protects participants, and then another one that protects volumes."""
    ledger = Ledger(stage.root / "ledger.sqlite")
    for number, unit in enumerate(("subject", "timepoint"), start=1):
        charge = replace(_charge(1), unit=unit, run=f"run-{number}", mu=0.9)
        left_out = _hold(ledger, charge, ["01"])
        stage.said += [f"{each} is left out" for each in left_out]
    return not left_out


def _unread(_real: object) -> Callable[..., Iterator[Any]]:
    return lambda head, entries, where: iter(entries)


@attack(
    "disk intruder",
    guard="site_agent.ledger.file:follow",
    without="an edited line makes room in the budget",
    stops="line 2 was altered",
    instead=_unread,
)
def ledger_line_edited(stage: Stage) -> bool:
    """Sets the loss of a round in the ledger to 0."""
    path = stage.root / "ledger.sqlite"
    ledger = Ledger(path)
    _spend(ledger, 1, 2)
    ledger.close()
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE entries SET mu = 0 WHERE event = 'reserve'")
    _spend(Ledger(path), 3)
    return True


@attack(
    "site",
    guard="site_agent.ledger.export:follow",
    without="a board receives a ledger without the study in question",
    stops="The export: line 2 was altered",
    instead=_unread,
)
def line_left_out_of_an_export(stage: Stage) -> bool:
    """Exports its ledger for an ethics board and leaves a round out."""
    ledger = Ledger(stage.root / "ledger.sqlite")
    _spend(ledger, 1, 2)
    identity = create_identity(stage.root, bytes(range(64)))
    content = json.loads(export_json(ledger, site="north", at="noon", key=identity.key))
    del content["lines"][1:3]
    return len(verify_export(json.dumps(content).encode()).entries) == 3


def _judged(**privacy: int) -> bool:
    study = parse_study(_STUDY)
    weak = study.model_copy(update={"privacy": study.privacy.model_copy(update=privacy)})
    refuse_by_policy(Policy(), weak, None, StudyRequest("north"))
    return True


def _lenient(_real: object) -> Callable[..., Iterator[Any]]:
    return lambda *_: iter(())


@attack(
    "hub",
    guard="site_agent.policy.policy:_promise",
    without="ε is within the limit, and one curious site breaks it",
    stops="field 'fewest_colluding_sites'",
    instead=_lenient,
)
def promise_against_nobody(stage: Stage) -> bool:
    """Proposes a study within the limit of ε whose guarantee assumes that no party colludes."""
    return _judged(colluding_sites=0)


@attack(
    "hub",
    guard="site_agent.policy.policy:_promise",
    without="sums over a few sites of the hub's choice are within the rules",
    stops="field 'most_dropouts'",
    instead=_lenient,
)
def study_that_goes_on_without_most(stage: Stage) -> bool:
    """Proposes a study that may continue without most of its sites."""
    return _judged(dropouts=3)
