"""Checks of a site before a study: clock, keys, disk, exchange, ledger.

Nothing here raises. Nothing leaves the site except probes of a few random letters on the exchange,
which are removed again.
"""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from consortium import __version__
from consortium.base.checkup import Check, Surroundings, disk, prefect_server, run_check, software
from consortium.base.formatting import count, number
from consortium.engine.names import ANNOUNCEMENT, MOST_ANNOUNCEMENT, Names
from consortium.engine.queries import read_announcement
from consortium.errors import ConsortiumError, ExchangeError, ProtocolError
from consortium.exchange import Exchange
from consortium.exchange.checkup import SET_IT, SLOW, check_probe, compared_clock, directory_of
from consortium.exchange.modes import shared_directory
from consortium.membership.keys import load_identity
from consortium.privacy.gdp import epsilon_of
from consortium.secagg import CENTRE, OVERHEAD, unseal
from consortium.study.spec import Study
from site_agent.approval.approval import Approval, approvals
from site_agent.approval.folder_states import FolderStates
from site_agent.config import SiteConfig
from site_agent.data.bids import find_subjects, labels_in
from site_agent.data.people import candidates, left_out_here, site_tables
from site_agent.data.table_summary import no_participants
from site_agent.data.tsv import person_rows
from site_agent.data.wording import Wording
from site_agent.engines.open import open_engine
from site_agent.enrolment.pinned_consortium import read_pinned
from site_agent.enrolment.request import open_anchor
from site_agent.layout import POLICY, STORE
from site_agent.ledger.disk import network_type
from site_agent.ledger.export import budget
from site_agent.ledger.ledger import Ledger, spent_in
from site_agent.policy.policy import Policy, SpentLoss, StudyRequest, refusals
from site_agent.run.message_store import MessageStore

_MOST_RUNS = 20  # maximum number of announcements read for the centre's version
__all__ = ["Check", "Surroundings", "examine"]

_NO_PREFECT = "write prefect: false in site.yaml"
_ROOM = "Make room on the disk, or name another for prepared scans with 'cache' in site.yaml."
_LIBRARIES = ("cape-consortium", "numpy", "scipy", "cryptography", "pydantic")


def probe(config: SiteConfig, token: str) -> Check:
    """Put, list and fetch a probe, and see that it can't be written over."""
    return check_probe(config.open_exchange(), config.name, token)


def engine_works(config: SiteConfig) -> Check:
    """Let the engine compute one number, as it would a participant's sums."""
    engine = open_engine(config)
    try:
        (found,) = engine.map(abs, [-1])
    finally:
        engine.close()
    if found != 1:
        message = f"Engine {config.engine} computes other numbers than this machine."
        return Check("engine", "fail", message, "Repair its workers, or choose engine threads.")
    return Check("engine", "ok", f"Engine {config.engine} works.")


def clock(config: SiteConfig, token: str, now: Callable[[], float]) -> Check:
    """Compare the clock with the exchange's and with the ledger's last line."""
    last = _last_entry(config)
    if last is not None and last > now() + SLOW:
        message = f"The clock is {last - now():.0f} s before the ledger's last line."
        return Check("clock", "fail", message, SET_IT)
    return compared_clock(config.open_exchange(), config.name, token, now)


def anchor(config: SiteConfig, folder: Path) -> Check:
    """Check the site's ledger against the heads that the site signed."""
    exchange = config.open_exchange()
    if not config.ledger.exists():  # the doctor does not make one
        if not exchange.children(f"ledgers/{config.name}"):
            return Check("heads", "ok", "Nothing was spent, and the exchange has no head.")
        message = f"{config.ledger} is missing, but the exchange has heads of it."
        return Check("heads", "warn", message, "Restore the ledger if this site had one.")
    ledger = Ledger(config.ledger)
    store = MessageStore(folder / STORE) if (folder / STORE).exists() else None
    agreeing = open_anchor(folder, config, load_identity(folder), store).check()
    if ledger.head().seq and not agreeing:
        message = "The exchange has none of this site's signed heads of its ledger."
        return Check(
            "heads", "warn", message, "It will have one after the next round, if none was deleted."
        )
    return Check("heads", "ok", f"{count(agreeing, 'signed head')} on the exchange agree.")


def announced(exchange: Exchange, known: list[Approval]) -> Check:
    """Compare the version with the one that the centre of an approved study announced last."""
    found = next(_versions(exchange, known), None)
    if found is None:
        return Check(
            "version", "ok", f"This is {__version__}; no approved run states the centre's version."
        )
    if found == __version__:
        return Check("version", "ok", f"The centre also runs {found}.")
    message = f"The centre runs {found[:40]} and this site {__version__}."
    return Check("version", "warn", message, "Install the centre's version.")


def _versions(exchange: Exchange, known: list[Approval]) -> Iterator[str]:
    """Yield versions from the announcements of approved studies, newest numbers first."""
    names = {approval.study.study for approval in known}
    runs = [run for run in exchange.children("runs") if run.rpartition("-")[0] in names]
    for run in runs[: -_MOST_RUNS - 1 : -1]:
        try:
            message = exchange.get(Names(run).study(), MOST_ANNOUNCEMENT + OVERHEAD)
        except ExchangeError:
            continue
        for approval in known if message else []:
            version = _version(message or b"", approval, run)
            if version:
                yield version


def _version(message: bytes, approval: Approval, run: str) -> str:
    try:
        opened = unseal(
            message,
            approval.keys,
            run=run,
            kind=ANNOUNCEMENT,
            limit=MOST_ANNOUNCEMENT + OVERHEAD,
            sender=CENTRE,
        )
        return str(read_announcement(opened.body).get("version", ""))
    except ProtocolError:  # another consortium's, or forged
        return ""


def _last_entry(config: SiteConfig) -> float | None:
    """Return the time of the ledger's last line, in seconds since 1970, if known."""
    if not config.ledger.exists():
        return None
    entries = Ledger(config.ledger).entries()
    try:
        return datetime.fromisoformat(entries[-1].at).timestamp() if entries else None
    except ValueError:
        return None


def examine(folder: Path, around: Surroundings, study: Study | None = None) -> list[Check]:
    """Check everything that a site needs for a study.

    Parameters
    ----------
    folder : Path
        The site's folder.
    study : Study, optional
        Look also whether this study would find data and be allowed.

    Returns
    -------
    list of Check
        In the order in which problems should be fixed. Without a configuration, only checks that
        need none.
    """
    found = [
        run_check("configuration", lambda: _configuration(folder)),
        run_check("policy", lambda: _policy(folder)),
        run_check("keys", lambda: _keys(folder)),
        run_check("disk", lambda: disk(around.free(folder), _ROOM)),
        run_check("software", lambda: software(_LIBRARIES)),
    ]
    if found[0].state == "fail":
        return found
    config = SiteConfig.load(folder)
    shared = directory_of(config.exchange)
    later: dict[str, Callable[[], Check]] = {
        "data set": lambda: _data_set(config, study),
        "participants": lambda: _participants(config),
        "ledger": lambda: _ledger(folder, config),
        **({"modes": lambda: shared_directory(shared)} if shared and shared.is_dir() else {}),
        "engine": lambda: engine_works(config),
        "exchange": lambda: probe(config, around.token),
        "clock": lambda: clock(config, around.token, around.now),
        "heads": lambda: anchor(config, folder),
        "folder": lambda: _states(folder, config),
        "version": lambda: announced(
            config.open_exchange(), approvals(folder, load_identity(folder))
        ),
    }
    if study is not None:
        later["study"] = lambda: _study(folder, config, study)
    if config.prefect:
        later["Prefect"] = lambda: prefect_server(around.environment, _NO_PREFECT)
    return found + [run_check(name, look) for name, look in later.items()]


def _configuration(folder: Path) -> Check:
    config = SiteConfig.load(folder)
    return Check("configuration", "ok", f"This is {config.name}.")


def _policy(folder: Path) -> Check:
    policy = Policy.load(folder)
    if (folder / POLICY).exists():
        limit = f"{policy.subject.total:g} is the largest ε for a participant"
        return Check("policy", "ok", f"{limit}{_of_which(folder, policy)}.")
    message = f"There is no {POLICY}, so the defaults apply (ε = {policy.subject.total:g} in all)."
    return Check("policy", "warn", message, f"Write {POLICY} with what your board allows.")


def _of_which(folder: Path, policy: Policy) -> str:
    """Return the spent part of the limit; nothing where another check reports its absence."""
    try:
        config = SiteConfig.load(folder)
        spent = Ledger(config.ledger).most_charged("subject") if config.ledger.exists() else 0.0
    except ConsortiumError:
        return ""
    return f"; {number(epsilon_of(spent, policy.delta))} of this is spent"


def _keys(folder: Path) -> Check:
    public = load_identity(folder).public.hex()
    return Check("keys", "ok", f"The site's public key begins with {public[:16]}.")


def _data_set(config: SiteConfig, study: Study | None) -> Check:
    folder = config.dataset
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.X_OK):
        remedy = "Correct 'dataset' in site.yaml, or the folder's rights."
        return Check("data set", "fail", f"{folder} is not a folder that can be read.", remedy)
    persons = labels_in(folder)
    if not persons and site_tables(config).participants_of(folder).exists():
        return Check("data set", "ok", f"{folder} can be read; it has tables but no sub-* folder.")
    if not persons:
        remedy = "Correct 'dataset' in site.yaml, or mount the share with the data."
        return Check("data set", "fail", f"{folder} has no sub-* folder.", remedy)
    if study is None:
        people = count(len(persons), "participant")
        return Check("data set", "ok", f"{folder} can be read, {people}{_spared(config, persons)}.")
    subjects, skipped = find_subjects(folder, study.data)
    among = set(candidates(config, study.data))
    subjects = tuple(each for each in subjects if each.label in among)
    skipped = tuple(each for each in skipped if each.label in among)
    files = [run.bold for subject in subjects for run in subject.runs]
    closed = [path for path in files if not os.access(path, os.R_OK)]
    if closed:
        message = f"{len(closed)} of {count(len(files), 'image')} can't be read, {closed[0]} first."
        return Check("data set", "fail", message, "Let the agent's user read the images.")
    people = f"{count(len(subjects), 'subject')} with {count(len(files), 'image')}"
    message = f"'{study.study}' would find {people}"
    if skipped:
        remedy = "Preprocess them, or exclude them deliberately."
        return Check("data set", "warn", f"{message}; {len(skipped)} have none that fits.", remedy)
    return Check("data set", "ok", f"{message}.")


def _participants(config: SiteConfig) -> Check:
    """Report whether the site has a table of participants."""
    table = site_tables(config).participants_of(config.dataset)
    if not table.exists():
        message = no_participants(config.dataset, site_tables(config))
        return Check("participants", "ok" if config.participants is None else "fail", message)
    rows = sum(1 for _ in person_rows(table, (), Wording(tables=site_tables(config))))
    return Check("participants", "ok", f"{table} can be read, {count(rows, 'row')}.")


def _spared(config: SiteConfig, persons: Sequence[str]) -> str:
    """Return how many of these participants the hospital's own table excludes."""
    if config.left_out is None:
        return ""
    out = [*left_out_here(config.left_out, site_tables(config))(persons)]
    return f"; {config.left_out} excludes {len(out)} of them"


def _ledger(folder: Path, config: SiteConfig) -> Check:
    if not config.ledger.exists():
        return Check("ledger", "ok", "No ledger exists yet; nothing was spent.")
    ledger = Ledger(config.ledger)
    ledger.verify()
    sentence = f"{count(ledger.head().seq, 'line')}, each as it was written."
    network = network_type(config.ledger)
    if network:
        sentence += f" It is on a network file system ({network}): only one machine may use it."
    return Check("ledger", "ok", " ".join((sentence, *budget(ledger, Policy.load(folder)))))


def _states(folder: Path, config: SiteConfig) -> Check:
    """Compare approvals, roster and left-out table with the ledger."""
    if config.ledger.exists():
        FolderStates(folder, config, load_identity(folder), Ledger(config.ledger)).verify()
    message = "Approvals, roster and left-out table are not older than the ledger records."
    return Check("folder", "ok", message)


def _study(folder: Path, config: SiteConfig, study: Study) -> Check:
    """Compare a study with the policy, and with the spent budget."""
    spent = SpentLoss()
    used = ""
    if config.ledger.exists():
        trust = read_pinned(folder)
        ledger = Ledger(config.ledger)
        centres = trust.centres if trust else frozenset()
        dataset = str(config.dataset.resolve())
        people = candidates(config, study.data)
        spent = spent_in(ledger, dataset, study, centres, people)
        used = _used_up(folder, ledger, study, centres)
    runs = 0 if used else 1  # the policy is asked about no other before its approval
    request = StudyRequest(config.name, spent, runs)
    problems = [str(error) for error in refusals(Policy.load(folder), study, None, request)]
    if not problems:
        return Check("study", "ok", f"The policy allows '{study.study}'{used}.")
    more = f"Further reasons for a refusal: {len(problems) - 1}." if problems[1:] else ""
    return Check("study", "fail", problems[0], more)


def _used_up(folder: Path, ledger: Ledger, study: Study, centres: Collection[str]) -> str:
    """Return a sentence if an approved study has had all its runs; empty otherwise."""
    for approval in approvals(folder, load_identity(folder)):
        allowed = approval.terms.runs
        if approval.study == study and len(ledger.runs(study.study, centres)) >= allowed:
            had = "run, which it has" if allowed == 1 else "runs, which it has all"
            return f", which was approved for {allowed} {had} had"
    return ""
