"""Checks of a coordinator's installation before a study is signed or a run is opened.

Nothing here raises an error, and only probes that can't be removed stay on the exchange.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib.util import find_spec
from pathlib import Path

from consortium.base.checkup import Check, Surroundings, disk, prefect_server, run_check, software
from consortium.base.formatting import count, said_together
from consortium.coordinator.approvals import approved_sentence
from consortium.exchange.address import open_exchange
from consortium.exchange.checkup import check_probe, compared_clock, directory_of
from consortium.exchange.modes import shared_directory
from consortium.membership.consent import uncovered_sites
from consortium.membership.keys import load_identity
from consortium.membership.roster import read_roster
from consortium.membership.signed_study import read_signed

CENTRE = "centre"
_NO_PREFECT = "let the run start a server of its own"
_LIBRARIES = ("cape-consortium", "numpy", "scipy", "nilearn", "cryptography", "pydantic")


@dataclass(frozen=True)
class CoordinatorParts:
    """What `consortium doctor` looks at: the coordinator's folders, keys and exchange."""

    keys: Path
    roster: Path
    """The consortium's keys and its roster, of 'init'."""
    exchange: str
    """Address of the place that all parties share."""
    credentials: Path | None = None
    """File with the centre's credentials for it."""
    study: Path | None = None
    """A signed study file."""


def check_centre(office: CoordinatorParts, around: Surroundings) -> list[Check]:
    """Check everything that a run needs at the coordinator, in the order of its correction.

    Returns
    -------
    list of Check
    """
    place = office.exchange
    shared = directory_of(office.exchange)
    looks: dict[str, Callable[[], Check]] = {
        "keys": lambda: _keys(office),
        "roster": lambda: _roster(office),
        "disk": lambda: disk(around.free(office.keys)),
        "software": lambda: software(_LIBRARIES),
        **({"modes": lambda: shared_directory(shared)} if shared and shared.is_dir() else {}),
        "exchange": lambda: check_probe(
            open_exchange(place, office.credentials), CENTRE, around.token
        ),
        "clock": lambda: compared_clock(
            open_exchange(place, office.credentials), CENTRE, around.token, around.now
        ),
        "Prefect": lambda: _prefect(around.environment),
    }
    if office.study is not None:
        path = office.study
        today = datetime.fromtimestamp(around.now(), UTC).date()
        looks |= {
            "study": lambda: _study(office, path),
            "approvals": lambda: _approvals(office, path, today),
        }
    return [run_check(name, look) for name, look in looks.items()]


def _keys(office: CoordinatorParts) -> Check:
    public = load_identity(office.keys).public.hex()
    return Check("keys", "ok", f"The consortium's public key begins with {public[:16]}.")


def _roster(office: CoordinatorParts) -> Check:
    members = read_roster(office.roster)
    members.check_owner(load_identity(office.keys).key)
    if members.sites:
        return Check("roster", "ok", f"It has {count(len(members.sites), 'site')} and is signed.")
    return Check("roster", "warn", "It is signed and has no site.", "Admit sites: 'admit'.")


def _prefect(environment: Mapping[str, str]) -> Check:
    if find_spec("prefect") is None:
        return Check("Prefect", "fail", "It is not installed.", "Install cape-consortium[prefect].")
    if not environment.get("PREFECT_API_URL"):
        return Check("Prefect", "ok", "No server is named: each run starts one of its own.")
    return prefect_server(environment, _NO_PREFECT)


def _study(office: CoordinatorParts, path: Path) -> Check:
    study = read_signed(path, read_roster(office.roster)).study
    sites = count(len(study.sites), "site")
    return Check("study", "ok", f"'{study.study}' is signed for {sites} of this roster.")


def _approvals(office: CoordinatorParts, path: Path, today: date) -> Check:
    """State which sites' standing approvals on the exchange cover one more run."""
    signed = read_signed(path, read_roster(office.roster))
    study = signed.study
    exchange = open_exchange(office.exchange, office.credentials)
    missing = uncovered_sites(exchange, study, signed.keys, today)
    if not missing:
        return Check("approvals", "ok", "Every site's approval covers the next run.")
    approved = len(study.sites) - len(missing)
    message = approved_sentence(approved, study)
    return Check("approvals", "warn", message, " ".join(said_together(missing)))
