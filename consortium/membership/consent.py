"""A site's standing approval of a study: number of runs, total privacy loss and last day.

A site posts a signed consent on the exchange, and the coordinator's schedule opens a new run only
while every site's consent covers it. The site is protected by its own approval and its own ledger.
The consent informs the coordinator in advance. So no run is opened in vain.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Literal

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consortium.errors import ConsortiumError, ExchangeError, StudyError
from consortium.exchange.base import Exchange
from consortium.privacy.gdp import compose, epsilon_of, mu_of
from consortium.secagg import OVERHEAD, seal, unseal
from consortium.study.spec import Study

KIND = "consent"
MOST_SERIAL = 4096
"""Number of serials that are read: a site decides a few times, but an attacker may post many."""
MOST_RUNS = 10_000
"""Runs of one study that are looked at, the first ones."""
_MOST = OVERHEAD + 1024
_ROUNDING = 1 + 1e-9  # ε survives the way to μ and back only so far


@dataclass(frozen=True)
class Terms:
    """How often, with which loss and how long an approved study may run.

    Raises StudyError if a number allows nothing, or is none.
    """

    runs: int = 1
    """Runs that may ever cost something, those of before included."""
    epsilon: float | None = None
    """Largest ε of all these runs together, at the study's δ; None sets no bound of its own."""
    until: date | None = None
    """Last day on which a run may begin."""

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise StudyError(f"--runs: must be at least 1, got {self.runs}. Correct it.")
        if self.epsilon is not None and not 0 < self.epsilon < math.inf:
            raise StudyError(
                f"--epsilon: must be a finite number above 0, got {self.epsilon:g}. Correct it."
            )

    def ended(self, today: date) -> bool:
        """Return whether the last day has passed."""
        return self.until is not None and today > self.until

    def refusal(
        self, runs: int, epsilon: float, today: date
    ) -> Literal["runs", "until", "epsilon"] | None:
        """Name the term that another run would not keep to; None if it keeps to all.

        Parameters
        ----------
        runs : int
            Runs that would then have been charged, including that one.
        epsilon : float
            Their total privacy loss.
        """
        if runs > self.runs:
            return "runs"
        if self.ended(today):
            return "until"
        # Written this way to refuse NaN.
        if self.epsilon is not None and not epsilon <= self.epsilon * _ROUNDING:
            return "epsilon"
        return None


@dataclass(frozen=True)
class Consent:
    """A site's terms for one exact study, as they are posted on the exchange.

    Raises StudyError if a number is out of range.
    """

    site: str
    study_digest: str
    """`Study.digest`: another study of the same name is not covered."""
    runs: int
    """As in `Terms`; 0 withdraws."""
    epsilon: float | None = None
    until: date | None = None
    """In UTC."""
    declined: bool = False
    """Whether the site's staff declined the study; there is no run then."""

    def __post_init__(self) -> None:
        if self.declined and self.runs:
            raise StudyError(f"{self.site}: a declined study must have 0 runs, got {self.runs}.")
        try:
            _ = self.terms
        except StudyError as error:
            raise StudyError(f"{self.site}: {error}") from error

    @property
    def terms(self) -> Terms | None:
        """The terms; None if the consent is withdrawn."""
        return Terms(self.runs, self.epsilon, self.until) if self.runs else None


def post_consent(
    exchange: Exchange, identity_key: Ed25519PrivateKey, study_name: str, consent: Consent
) -> str:
    """Sign a consent and post it on the exchange, where it replaces the site's earlier ones.

    Raises ExchangeError if the exchange can't be used, or has no free name left.

    Parameters
    ----------
    identity_key : Ed25519PrivateKey
        The site's.

    Returns
    -------
    str
        Name of the message.
    """
    place = _place(study_name, consent.site)
    keys = {consent.site: identity_key.public_key().public_bytes_raw()}
    newest, _ = next(_genuine(exchange, study_name, consent.site, keys), (0, None))
    taken = set(_serials(exchange, place))
    serial = next((s for s in range(newest + 1, MOST_SERIAL + 1) if s not in taken), None)
    if serial is None:
        raise ExchangeError(
            f"{place} has no serial left below {MOST_SERIAL}. Have the exchange's owner remove "
            "what isn't signed by the site, and post again."
        )
    name = f"{place}/{serial:06d}"
    exchange.put(
        name,
        seal(
            key=identity_key,
            run=KIND,
            sender=consent.site,
            kind=KIND,
            round=serial,
            body=_body(consent),
        ),
    )
    return name


def withdraw(exchange: Exchange, identity_key: Ed25519PrivateKey, site: str, study: Study) -> str:
    """Take a site's consent back: a newer one for no run at all."""
    return post_consent(exchange, identity_key, study.study, Consent(site, study.digest, 0))


def decline(
    exchange: Exchange, identity_key: Ed25519PrivateKey, site: str, study_name: str, digest: str
) -> bool:
    """Post to the coordinator that the site's staff decided against a study; False if it is known.

    Raises errors as `post_consent`.

    Parameters
    ----------
    digest : str
        `Study.digest` of exactly the study that was declined.
    """
    declined = Consent(site, digest, 0, declined=True)
    keys = {site: identity_key.public_key().public_bytes_raw()}
    if _newest(exchange, study_name, digest, site, keys) == declined:
        return False
    post_consent(exchange, identity_key, study_name, declined)
    return True


def read_consents(
    exchange: Exchange, study: Study, keys: Mapping[str, bytes]
) -> dict[str, Consent | None]:
    """Return each site's newest consent to exactly this study; None if it gave none.

    A forged, damaged or oversized message and one for another study are ignored. Raises
    ExchangeError if the exchange can't be read.

    Parameters
    ----------
    keys : mapping of str to bytes
        Public keys of the sites.
    """
    return {site: _newest(exchange, study.study, study.digest, site, keys) for site in study.sites}


def runs_joined(exchange: Exchange, study: Study) -> dict[str, int]:
    """Count for each site the runs in which it answered a round: those that cost it something."""
    pattern = re.compile(re.escape(study.study) + "-[0-9]{4,9}")
    runs = [run for run in exchange.children("runs") if pattern.fullmatch(run)][:MOST_RUNS]
    counts = dict.fromkeys(study.sites, 0)
    for run in runs:
        for site in exchange.children(f"runs/{run}/00001/contribution"):
            if site in counts:
                counts[site] += 1
    return counts


def missing_consents(
    study: Study,
    consents: Mapping[str, Consent | None],
    runs_so_far: Mapping[str, int],
    epsilon_per_run: float,
    today: date,
) -> dict[str, str]:
    """Return a sentence for each site whose consent does not cover one more run.

    Parameters
    ----------
    consents : mapping of str to Consent or None
        As `read_consents` returns them.
    runs_so_far : mapping of str to int
        Runs that cost each site something already.
    epsilon_per_run : float
        ε of one run for the worst-placed site, at the study's δ.
    today : date
        In UTC.

    Returns
    -------
    dict of str to str
        Sentences by site; empty if all are covered.
    """
    delta = study.privacy.delta
    found = {}
    for site in study.sites:
        runs = runs_so_far.get(site, 0) + 1
        mu = compose([mu_of(epsilon_per_run, delta)] * runs)
        reason = _reason(consents.get(site), runs, epsilon_of(mu, delta), today)
        if reason:
            found[site] = f"{site} {reason}"
    return found


def uncovered_sites(
    exchange: Exchange, study: Study, keys: Mapping[str, bytes], today: date
) -> dict[str, str]:
    """Return a sentence for each site whose consent on the exchange does not cover one more run.

    Every command of the coordinator takes its sentence from here. Raises ExchangeError if the
    exchange can't be read.

    Parameters
    ----------
    exchange : Exchange
        The consortium's.
    study : Study
        Which is to be run.
    keys : mapping of str to bytes
        Public keys of the sites.
    today : date
        In UTC.
    """
    consents = read_consents(exchange, study, keys)
    runs = runs_joined(exchange, study)
    return missing_consents(study, consents, runs, study.privacy.epsilon, today)


def _reason(consent: Consent | None, runs: int, epsilon: float, today: date) -> str:
    if consent is None:
        return "has given no standing approval of this study. Ask it for one."
    if consent.declined:
        return "has declined this study. Ask its staff for the reason."
    if consent.terms is None:
        return "has withdrawn its approval. Ask it for a new one."
    match consent.terms.refusal(runs, epsilon, today):
        case "runs":
            allowed = consent.runs
            return f"has no run left of the {allowed} that it allowed. Ask it for a new approval."
        case "until":
            return f"gave an approval that ended on {consent.until}. Ask it for a new one."
        case "epsilon":
            return (
                f"allows ε = {consent.epsilon:g} in all, and {runs} runs come to {epsilon:.4g}. "
                "Ask it for a new approval."
            )
    return ""


def _newest(
    exchange: Exchange, study_name: str, digest: str, site: str, keys: Mapping[str, bytes]
) -> Consent | None:
    for _, consent in _genuine(exchange, study_name, site, keys):
        if consent.study_digest == digest:
            return consent
    return None


def _genuine(
    exchange: Exchange, study_name: str, site: str, keys: Mapping[str, bytes]
) -> Iterator[tuple[int, Consent]]:
    """Yield the messages that the site has signed, with their serials, newest first."""
    place = _place(study_name, site)
    for serial in _serials(exchange, place):
        try:
            message = exchange.get(f"{place}/{serial:06d}", _MOST)
            opened = unseal(
                message or b"", keys, run=KIND, kind=KIND, limit=_MOST, sender=site, round=serial
            )
            consent = msgspec.json.decode(opened.body, type=Consent)
        except (ConsortiumError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue  # any party may write to the exchange; only a signature counts
        if consent.site == site and _body(consent) == opened.body:
            yield serial, consent


def _serials(exchange: Exchange, place: str) -> list[int]:
    """Return serials in use, newest first, however many other names there are."""
    names = (name for name in exchange.children(place) if re.fullmatch("[0-9]{6}", name))
    return sorted((s for name in names if 0 < (s := int(name)) <= MOST_SERIAL), reverse=True)


def _place(study_name: str, site: str) -> str:
    return f"consent/{study_name}/{site}"


def _body(consent: Consent) -> bytes:
    """Return the signed bytes; a consent that is not declined has those of earlier versions."""
    content = asdict(consent)
    if not consent.declined:
        del content["declined"]
    return msgspec.json.encode(content)
