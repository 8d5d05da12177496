"""What stands in a site's way, found before a study does: clock, keys, disk, exchange, ledger.

Nothing here raises and nothing leaves the site, but for probes of a few random letters on the
exchange, which are taken away again.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from consortium.base.formatting import count
from consortium.errors import ConsortiumError
from consortium.membership.keys import load_identity
from consortium.study.spec import Study
from site_agent.approval.approval import approvals
from site_agent.config import SiteConfig
from site_agent.data.bids import find_subjects, labels_in
from site_agent.data.people import candidates, read_left_out
from site_agent.doctor import exchange
from site_agent.doctor.check import Check
from site_agent.doctor.modes import shared_directory
from site_agent.enrolment.pinned_consortium import read_pinned
from site_agent.layout import POLICY
from site_agent.ledger.ledger import Ledger
from site_agent.ledger.totals import spent_in
from site_agent.policy.policy import Policy
from site_agent.policy.refusals import Request, Spent, refusals

__all__ = ["Check", "Surroundings", "examine"]

SCARCE, LITTLE = 200 << 20, 2 << 30
"""Bytes of free disk below which the agent may stop, or soon may."""
_PATIENCE = 3.0  # s for Prefect's answer
_LIBRARIES = ("cape-consortium", "numpy", "scipy", "cryptography", "pydantic")


def _free(folder: Path) -> int:
    return shutil.disk_usage(folder).free


@dataclass(frozen=True)
class Surroundings:
    """What is not in the site's folder.

    Parameters
    ----------
    now : callable
        Seconds since 1970.
    token : str
        A fresh random lower-case word, for the probe's name.
    environment : mapping
        Environment variables.
    arrival : callable, optional
        When the exchange stored a name, in seconds since 1970 by the exchange's own clock. A
        directory needs none.
    free : callable
        Free bytes of a folder's disk.
    """

    now: Callable[[], float]
    token: str
    environment: Mapping[str, str]
    arrival: Callable[[str], float] | None = None
    free: Callable[[Path], int] = field(default=_free)


def examine(folder: Path, around: Surroundings, study: Study | None = None) -> list[Check]:
    """Look at everything that a site needs.

    Parameters
    ----------
    folder : Path
        The site's folder.
    around : Surroundings
    study : Study, optional
        Look also whether this study would find data and be allowed.

    Returns
    -------
    list of Check
        In the order in which one would mend things. Without a configuration only what needs none.
    """
    found = [
        _guarded("configuration", lambda: _configuration(folder)),
        _guarded("policy", lambda: _policy(folder)),
        _guarded("keys", lambda: _keys(folder)),
        _guarded("disk", lambda: _disk(folder, around)),
        _guarded("software", _software),
    ]
    if found[0].state == "fail":
        return found
    config = SiteConfig.load(folder)
    shared = exchange.directory_of(config)
    later: dict[str, Callable[[], Check]] = {
        "data set": lambda: _data_set(config, study),
        "ledger": lambda: _ledger(config),
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
        later["Prefect"] = lambda: _prefect(around.environment)
    return found + [_guarded(name, look) for name, look in later.items()]


def _guarded(name: str, look: Callable[[], Check]) -> Check:
    try:
        return look()
    except ConsortiumError as error:
        message, _, remedy = str(error).rstrip(".").rpartition("; ")
        return Check(name, "fail", f"{message or remedy}.", f"{remedy}." if message else "")
    except Exception as error:  # a doctor does not fall ill
        message = f"It can't be looked at ({type(error).__name__}: {error})."
        return Check(name, "fail", message, "Check the folder's rights, or report this as a fault.")


def _configuration(folder: Path) -> Check:
    config = SiteConfig.load(folder)
    return Check("configuration", "ok", f"This is {config.name}.")


def _policy(folder: Path) -> Check:
    policy = Policy.load(folder)
    if (folder / POLICY).exists():
        return Check("policy", "ok", f"{policy.subject.total:g} is the largest ε for a person.")
    message = f"There is no {POLICY}, so the defaults hold (ε = {policy.subject.total:g} in all)."
    return Check("policy", "warn", message, f"Write {POLICY} with what your board allows.")


def _keys(folder: Path) -> Check:
    public = load_identity(folder).public.hex()
    return Check("keys", "ok", f"The site's public key begins with {public[:16]}.")


def _disk(folder: Path, around: Surroundings) -> Check:
    free = around.free(folder)
    message = f"{free / (1 << 30):.1f} GiB are free."
    if free >= LITTLE:
        return Check("disk", "ok", message)
    return Check("disk", "fail" if free < SCARCE else "warn", message, "Make room on the disk.")


def _software() -> Check:
    python = ".".join(map(str, sys.version_info[:3]))
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    return Check("software", "ok", f"Python {python}, {libraries}.")


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
        people = count(len(persons), "person")
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


def _ledger(config: SiteConfig) -> Check:
    if not config.ledger.exists():
        return Check("ledger", "ok", "There is no ledger yet; nothing was spent.")
    ledger = Ledger(config.ledger)
    ledger.verify()
    return Check("ledger", "ok", f"{count(ledger.head().seq, 'line')}, each as it was written.")


def _study(folder: Path, config: SiteConfig, study: Study) -> Check:
    """Hold a study against the policy, and against all that was spent."""
    spent, used = Spent(), ""
    if config.ledger.exists():
        trust, ledger = read_pinned(folder), Ledger(config.ledger)
        centres = trust.centres if trust else frozenset()
        dataset, people = str(config.dataset.resolve()), candidates(config, study.data)
        spent = spent_in(ledger, dataset, study, centres, people)
        used = _used_up(folder, ledger, study, centres)
    runs = 0 if used else 1  # no other is asked of the policy before it is approved
    request = Request(config.name, spent, runs)
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


def _prefect(environment: Mapping[str, str]) -> Check:
    url = environment.get("PREFECT_API_URL", "")
    if not url:
        message = "PREFECT_API_URL is not set, so that Prefect's own profile decides."
        return Check("Prefect", "warn", message, "Set it, or write prefect: false in site.yaml.")
    remedy = "Start Prefect's server, correct PREFECT_API_URL, or write prefect: false."
    if not url.startswith(("http://", "https://")):
        return Check("Prefect", "fail", "PREFECT_API_URL is no http address.", remedy)
    try:
        with urlopen(f"{url.rstrip('/')}/health", timeout=_PATIENCE) as answer:  # noqa: S310 - http
            healthy = answer.status == 200
    except (URLError, OSError, ValueError) as error:
        return Check("Prefect", "fail", f"Its API does not answer ({error}).", remedy)
    if not healthy:
        return Check("Prefect", "fail", "Its API says that it is not well.", remedy)
    return Check("Prefect", "ok", "Its API answers.")
