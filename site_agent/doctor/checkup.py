"""What stands in a site's way, found before a study does: clock, keys, disk, exchange, ledger.

Nothing here raises and nothing leaves the site, but for probes of a few random letters on the
exchange, which are taken away again.
"""

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from consortium.base.checkup import (
    Check,
    Surroundings,
    disk,
    prefect_server,
    run_check,
    software,
)
from consortium.base.formatting import count, number
from consortium.errors import ConsortiumError
from consortium.exchange.checkup import directory_of
from consortium.exchange.modes import shared_directory
from consortium.membership.keys import load_identity
from consortium.privacy.gdp import epsilon_of
from consortium.study.spec import Study
from site_agent.approval.approval import approvals
from site_agent.config import SiteConfig
from site_agent.data.bids import find_subjects, labels_in
from site_agent.data.people import candidates, read_left_out
from site_agent.doctor import exchange
from site_agent.enrolment.pinned_consortium import read_pinned
from site_agent.layout import POLICY
from site_agent.ledger.ledger import Ledger
from site_agent.ledger.summary import budget
from site_agent.ledger.totals import spent_in
from site_agent.policy.policy import Policy
from site_agent.policy.refusals import SpentLoss, StudyRequest, refusals

__all__ = ["Check", "Surroundings", "examine"]

_NO_PREFECT = "write prefect: false in site.yaml"
_ROOM = "Make room on the disk, or name another for prepared scans with 'cache' in site.yaml."
_LIBRARIES = ("cape-consortium", "numpy", "scipy", "cryptography", "pydantic")


def examine(folder: Path, around: Surroundings, study: Study | None = None) -> list[Check]:
    """Look at everything that a site needs.

    Parameters
    ----------
    folder : Path
        The site's folder.
    study : Study, optional
        Look also whether this study would find data and be allowed.

    Returns
    -------
    list of Check
        In the order in which one would mend things. Without a configuration only what needs none.
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
        "ledger": lambda: _ledger(folder, config),
        **({"modes": lambda: shared_directory(shared)} if shared and shared.is_dir() else {}),
        "exchange": lambda: exchange.probe(config, around.token),
        "clock": lambda: exchange.clock(config, around.token, around.now, around.arrival),
        "heads": lambda: exchange.anchor(config, folder),
        "version": lambda: exchange.announced(
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
    message = f"There is no {POLICY}, so the defaults hold (ε = {policy.subject.total:g} in all)."
    return Check("policy", "warn", message, f"Write {POLICY} with what your board allows.")


def _of_which(folder: Path, policy: Policy) -> str:
    """How much of the limit is spent; nothing where another check says why it can't be told."""
    try:
        config = SiteConfig.load(folder)
        spent = Ledger(config.ledger).most_charged("subject") if config.ledger.exists() else 0.0
    except ConsortiumError:
        return ""
    return f", of which {number(epsilon_of(spent, policy.delta))} is spent"


def _keys(folder: Path) -> Check:
    public = load_identity(folder).public.hex()
    return Check("keys", "ok", f"The site's public key begins with {public[:16]}.")


def _data_set(config: SiteConfig, study: Study | None) -> Check:
    folder = config.dataset
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.X_OK):
        remedy = "Correct 'dataset' in site.yaml, or the folder's rights."
        return Check("data set", "fail", f"{folder} is not a folder that can be read.", remedy)
    persons = labels_in(folder)
    if not persons:
        remedy = "Correct 'dataset' in site.yaml, or mount the share that holds the data."
        return Check("data set", "fail", f"{folder} holds no sub-* folder.", remedy)
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
        remedy = "Preprocess them, or leave them out on purpose."
        return Check("data set", "warn", f"{message}; {len(skipped)} have none that fits.", remedy)
    return Check("data set", "ok", f"{message}.")


def _spared(config: SiteConfig, persons: Sequence[str]) -> str:
    """Say how many of these the hospital's own table leaves out."""
    if config.left_out is None:
        return ""
    out = set(read_left_out(config.left_out)).intersection(persons)
    return f", of whom {config.left_out} leaves out {len(out)}"


def _ledger(folder: Path, config: SiteConfig) -> Check:
    if not config.ledger.exists():
        return Check("ledger", "ok", "There is no ledger yet; nothing was spent.")
    ledger = Ledger(config.ledger)
    ledger.verify()
    sentence = f"{count(ledger.head().seq, 'line')}, each as it was written."
    return Check("ledger", "ok", " ".join((sentence, *budget(ledger, Policy.load(folder)))))


def _study(folder: Path, config: SiteConfig, study: Study) -> Check:
    """Hold a study against the policy, and against all that was spent."""
    spent, used = SpentLoss(), ""
    if config.ledger.exists():
        trust, ledger = read_pinned(folder), Ledger(config.ledger)
        centres = trust.centres if trust else frozenset()
        dataset, people = str(config.dataset.resolve()), candidates(config, study.data)
        spent = spent_in(ledger, dataset, study, centres, people)
        used = _used_up(folder, ledger, study, centres)
    runs = 0 if used else 1  # no other is asked of the policy before it is approved
    request = StudyRequest(config.name, spent, runs)
    problems = [str(error) for error in refusals(Policy.load(folder), study, None, request)]
    if not problems:
        return Check("study", "ok", f"The policy allows '{study.study}'{used}.")
    message, _, remedy = problems[0].rstrip(".").rpartition("; ")
    more = f" ({len(problems) - 1} more)" if problems[1:] else ""
    return Check("study", "fail", f"{message}{more}.", f"{remedy}.")


def _used_up(folder: Path, ledger: Ledger, study: Study, centres: Collection[str]) -> str:
    """Say that an approved study has had all its runs; empty if it has not."""
    for approval in approvals(folder, load_identity(folder)):
        allowed = approval.terms.runs
        if approval.study == study and len(ledger.runs(study.study, centres)) >= allowed:
            had = "run, which it has" if allowed == 1 else "runs, which it has all"
            return f", which was approved for {allowed} {had} had"
    return ""
