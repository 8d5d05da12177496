import time
from dataclasses import asdict, replace
from datetime import date
from functools import partial

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import ExchangeError, StudyError
from consortium.exchange import MemoryExchange
from consortium.membership.consent import (
    KIND,
    MOST_SERIAL,
    Consent,
    decline,
    missing_consents,
    post_consent,
    read_consents,
    runs_joined,
    withdraw,
)
from consortium.privacy.gdp import epsilon_of, mu_of
from consortium.secagg import seal
from consortium.study.reader import parse_study
from consortium.study.spec import Study

STUDY = parse_study(
    "study: small\nsites: [east, west]\nparticipants: {east: 10, west: 10}\n"
    "algorithm: pca\nanalysis: {components: 2}\n"
    "privacy: {epsilon: 2, delta: 1.0e-5, colluding_sites: 1}\n"
)
KEYS = {name: Ed25519PrivateKey.from_private_bytes(name.encode() * 8) for name in STUDY.sites}
PUBLIC = {name: key.public_key().public_bytes_raw() for name, key in KEYS.items()}
TODAY = date(2026, 5, 1)


def give(site: str, runs: int = 3, **more: object) -> Consent:
    return Consent(site, STUDY.digest, runs, **more)  # type: ignore[arg-type]


def read(exchange: MemoryExchange, study: Study = STUDY) -> dict[str, Consent | None]:
    return read_consents(exchange, study, PUBLIC)


@given(
    runs=st.integers(0, 10**9),
    epsilon=st.none() | st.floats(1e-6, 1e6),
    until=st.none() | st.dates(),
)
def test_what_a_site_posts_is_what_the_coordinator_reads(
    runs: int, epsilon: float | None, until: date | None
) -> None:
    exchange, consent = MemoryExchange(), give("east", runs, epsilon=epsilon, until=until)
    name = post_consent(exchange, KEYS["east"], "small", consent)
    assert name == "consent/small/east/000001"
    assert read(exchange) == {"east": consent, "west": None}


def test_the_newest_counts_and_a_withdrawal_is_the_newest() -> None:
    exchange = MemoryExchange()
    post_consent(exchange, KEYS["east"], "small", give("east", 1))
    post_consent(exchange, KEYS["east"], "small", give("east", 5))
    assert read(exchange)["east"] == give("east", 5)
    assert withdraw(exchange, KEYS["east"], "east", STUDY).endswith("000003")
    assert read(exchange)["east"] == give("east", 0)


def test_a_consent_is_for_one_exact_study() -> None:
    exchange = MemoryExchange()
    other = STUDY.model_copy(update={"title": "Another"})
    post_consent(exchange, KEYS["east"], "small", give("east"))
    post_consent(exchange, KEYS["east"], "small", replace(give("east", 9), study_digest="0" * 64))
    assert read(exchange)["east"] == give("east")
    assert read(exchange, other)["east"] is None


def _bytes_of(consent: Consent) -> bytes:
    """Return the body as earlier versions signed it, without the field of a declined study."""
    content = asdict(consent)
    del content["declined"]
    return msgspec.json.encode(content)


def test_a_declined_study_is_its_sites_newest_decision_until_it_is_approved() -> None:
    exchange = MemoryExchange()
    decline(exchange, KEYS["east"], "east", STUDY.study, STUDY.digest)
    consent = read(exchange)["east"]
    assert consent == Consent("east", STUDY.digest, 0, declined=True)
    missing = missing_consents(STUDY, read(exchange), {}, 1.0, TODAY)
    assert "declined" in missing["east"]
    assert "declined" not in missing["west"]
    post_consent(exchange, KEYS["east"], "small", give("east"))
    assert read(exchange)["east"] == give("east")


@pytest.mark.parametrize("declined", [False, True])
def test_an_earlier_decision_that_is_copied_does_not_replace_a_newer_one(declined: bool) -> None:
    exchange = MemoryExchange()
    own = (exchange, KEYS["east"])
    decisions = [
        lambda: decline(*own, "east", STUDY.study, STUDY.digest),
        lambda: post_consent(*own, STUDY.study, give("east")),
    ]
    for decide in reversed(decisions) if declined else decisions:
        decide()
    newest = read(exchange)["east"]
    assert newest is not None
    assert newest.declined == declined
    message = exchange.get("consent/small/east/000001", 10_000)
    assert message is not None
    exchange.put("consent/small/east/000003", message)  # a newer number
    exchange.put("consent/small/west/000001", message)  # another site
    exchange.put("consent/other/east/000001", message)  # another study
    assert read(exchange) == {"east": newest, "west": None}
    other = STUDY.model_copy(update={"study": "other"})
    assert read(exchange, other) == {"east": None, "west": None}


def test_a_known_decline_is_posted_once() -> None:
    exchange = MemoryExchange()
    assert decline(exchange, KEYS["east"], "east", STUDY.study, STUDY.digest)
    assert not decline(exchange, KEYS["east"], "east", STUDY.study, STUDY.digest)
    assert exchange.children("consent/small/east") == ["000001"]


def test_a_declined_study_has_no_run() -> None:
    with pytest.raises(StudyError):
        Consent("east", STUDY.digest, 1, declined=True)


def forgeries() -> dict[str, bytes]:
    """Messages that lie at east's place and aren't its consent."""
    body = _bytes_of(give("east", 1000))
    by_east = partial(seal, KEYS["east"], sender="east")
    genuine = by_east(run=KIND, kind=KIND, round=1, body=body)
    return {
        "garbage": b"\x00" * 40,
        "empty": b"",
        "too large": bytes(10_000),
        "signed by west": seal(KEYS["west"], KIND, "west", KIND, 7, body),
        "west as east": seal(KEYS["west"], KIND, "east", KIND, 7, body),
        "an older one under a newer serial": genuine,
        "a message of a run": by_east(run="small-0001", kind=KIND, round=7, body=body),
        "a refusal": by_east(run=KIND, kind="refusal", round=7, body=body),
        "of west's, signed by east": by_east(
            run=KIND, kind=KIND, round=7, body=_bytes_of(give("west"))
        ),
        "not canonical": by_east(run=KIND, kind=KIND, round=7, body=body + b" "),
        "no JSON": by_east(run=KIND, kind=KIND, round=7, body=b"\xff"),
        "altered": seal(KEYS["east"], KIND, "east", KIND, 7, body)[:-1] + b"\x00",
    }


@pytest.mark.parametrize("forgery", forgeries())
def test_a_forgery_neither_counts_nor_stops(forgery: str) -> None:
    exchange = MemoryExchange()
    post_consent(exchange, KEYS["east"], "small", give("east"))
    exchange.put("consent/small/east/000007", forgeries()[forgery])
    assert read(exchange)["east"] == give("east")
    withdraw(exchange, KEYS["east"], "east", STUDY)
    assert read(exchange)["east"] == give("east", 0)


def test_the_message_that_is_forged_above_would_count_if_it_were_right() -> None:
    exchange = MemoryExchange()
    body = _bytes_of(give("east", 1000))
    exchange.put("consent/small/east/000007", seal(KEYS["east"], KIND, "east", KIND, 7, body))
    assert read(exchange)["east"] == give("east", 1000)


class Cluttered(MemoryExchange):
    """An exchange whose owner shows a million names everywhere, and counts what is fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched = 0
        self.clutter = [f"{n:06d}" for n in range(1, 1_000_000)] + ["x", "00000a", "-1", "٠٠٠٠٠٢"]

    def children(self, prefix: str) -> list[str]:
        return self.clutter or super().children(prefix)

    def get(self, name: str, limit: int) -> bytes | None:
        self.fetched += 1
        return super().get(name, limit)


def test_a_million_names_are_bounded_work_and_hide_nothing() -> None:
    exchange = Cluttered()
    clutter, exchange.clutter = exchange.clutter, []
    post_consent(exchange, KEYS["east"], "small", give("east"))
    exchange.clutter = clutter
    start = time.process_time()
    assert read(exchange)["east"] == give("east")
    assert exchange.fetched <= 2 * MOST_SERIAL
    assert time.process_time() - start < 60
    with pytest.raises(ExchangeError, match="no serial left"):
        withdraw(exchange, KEYS["east"], "east", STUDY)


def say(
    east: Consent | None, *, runs: int = 0, epsilon: float = 2.0, today: date = TODAY
) -> list[str]:
    consents = {"east": east, "west": give("west", 1000)}
    found = missing_consents(STUDY, consents, {"east": runs, "west": 0}, epsilon, today)
    assert all(sentence.startswith(f"{site} ") for site, sentence in found.items())
    return [*found.values()]


@pytest.mark.parametrize(
    ("consent", "runs", "told"),
    [
        (None, 0, "no standing approval"),
        (give("east", 0), 0, "withdrawn"),
        (give("east", 3), 3, "has no run left of the 3"),
        (give("east", until=date(2026, 4, 30)), 0, "ended on 2026-04-30"),
        (give("east", epsilon=1.99), 0, "allows ε = 1.99 in all, and 1 runs come to 2"),
        (give("east", epsilon=2.5), 1, "allows ε = 2.5 in all, and 2 runs come to"),
    ],
)
def test_one_sentence_says_whose_consent_does_not_cover(
    consent: Consent | None, runs: int, told: str
) -> None:
    (line,) = say(consent, runs=runs)
    assert line.startswith("east ")
    assert told in line


def test_the_last_run_and_the_last_day_are_covered() -> None:
    assert say(give("east", 3, epsilon=2.0), runs=0) == []
    assert say(give("east", 3), runs=2) == []
    assert say(give("east", until=TODAY)) == []


@given(runs=st.integers(0, 30), epsilon=st.floats(0.05, 5))
def test_epsilon_in_all_is_the_exact_composition(runs: int, epsilon: float) -> None:
    together = epsilon_of(mu_of(epsilon, 1e-5) * (runs + 1) ** 0.5, 1e-5)
    enough = give("east", 100, epsilon=together * (1 + 1e-6))
    short = give("east", 100, epsilon=together * (1 - 1e-6))
    assert say(enough, runs=runs, epsilon=epsilon) == []
    assert len(say(short, runs=runs, epsilon=epsilon)) == 1


def test_only_runs_that_a_site_answered_are_counted() -> None:
    exchange = MemoryExchange()
    for name in (
        "runs/small-0001/00001/contribution/east",
        "runs/small-0002/00001/contribution/east",
        "runs/small-0002/00001/contribution/stranger",
        "runs/small-0003/advertise/west",
        "runs/smaller-0001/00001/contribution/west",
        "runs/other-small-0001/00001/contribution/west",
    ):
        exchange.put(name, b"x")
    assert runs_joined(exchange, STUDY) == {"east": 2, "west": 0}


@pytest.mark.parametrize("wrong", [{"runs": -1}, {"epsilon": 0.0}, {"epsilon": float("nan")}])
def test_a_consent_out_of_range_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(StudyError, match="east"):
        replace(give("east"), **wrong)  # type: ignore[arg-type]
