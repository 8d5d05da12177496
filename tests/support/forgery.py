"""Common parts of tests of hostile parties: copies of a place, forged messages, records."""

import functools
import json
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from consortium.algorithms.base import Query
from consortium.coordinator.demo.prepare import DemoFolders
from consortium.engine.names import QUERY, REFUSAL, Names
from consortium.engine.queries import encode_query
from consortium.exchange import DirectoryExchange
from consortium.membership.keys import load_identity
from consortium.secagg import CENTRE, messages, seal, unseal
from consortium.secagg.messages import BROADCAST
from site_agent.layout import LEDGER
from site_agent.ledger.ledger import Ledger, LedgerEntry
from tests.support.local_consortium import STUDY, LocalConsortium, build

RUN = "small-0001"
NAMES = Names(RUN)


@functools.cache
def _original(boost: str, dropouts: int, text: str) -> DemoFolders:
    return build(Path(tempfile.mkdtemp()) / "place", boost=boost, dropouts=dropouts, text=text)


def settle(
    target: Path, *, boost: str = "exact", dropouts: int = 0, text: str = STUDY
) -> DemoFolders:
    """Make a fresh copy of a place, built once for all tests."""
    source = _original(boost, dropouts, text).root
    shutil.copytree(source, target)
    for file in target.glob("hospitals/*/agent/site.yaml"):
        file.write_text(file.read_text().replace(str(source), str(target)))
    return DemoFolders(target)


def path_of(place: DemoFolders, name: str) -> Path:
    """Return the path at which the exchange stores a message."""
    return place.files.exchange / name


def write(place: DemoFolders, name: str, data: bytes) -> None:
    """Write bytes to the exchange as its owner can, over an existing message."""
    path = path_of(place, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def sign(place: DemoFolders, kind: str, number: int, body: bytes, who: str = CENTRE) -> bytes:
    """Sign as the centre or a site."""
    folder = place.files.keys if who == CENTRE else place.site(who)
    return seal(load_identity(folder).key, RUN, who, kind, number, body)


def manifests(
    place: DemoFolders, sites: Sequence[str], about: bytes, number: int = 1
) -> tuple[bytes, ...]:
    """Return the signed manifests of sites that have sent no vector."""
    body = messages.encode(messages.Manifest(about, 32, 0, 0, ()))
    return tuple(sign(place, messages.MANIFEST, number, body, site) for site in sites)


def ask(place: DemoFolders, query: Query | bytes, number: int = 1) -> bytes:
    """Post a query that the centre signs but never planned."""
    body, beside = (query, {}) if isinstance(query, bytes) else encode_query(query)
    for digest, data in beside.items():
        write(place, NAMES.array(digest), data)
    message = sign(place, QUERY, number, body)
    write(place, NAMES.round(number, "query"), message)
    return message


def opened(place: DemoFolders) -> LocalConsortium:
    """Return a consortium whose run is set up and has had no round; its centre is idle."""
    local = LocalConsortium(place)
    local.centre().open()
    pump(local)
    return local


def pump(local: LocalConsortium, times: int = 6) -> None:
    """Let every agent work for a while, long enough to receive a run's end."""
    for _ in range(times):
        local.pump()
        local.ticks.now += 0.1


def refusal(place: DemoFolders, site: str, keys: dict[str, bytes]) -> dict[str, str] | None:
    """Return a site's public refusal, if it refused."""
    path = path_of(place, NAMES.refusal(site))
    if not path.exists():
        return None
    found = unseal(path.read_bytes(), keys, run=RUN, kind=REFUSAL, limit=1 << 16, sender=site)
    return dict(json.loads(found.body))


def ledger(place: DemoFolders, site: str) -> list[LedgerEntry]:
    """Return the lines of rounds in a site's ledger after checking its chain."""
    entries = Ledger(place.site(site) / LEDGER).entries()
    return [entry for entry in entries if entry.is_of_round]


def rounds_of(place: DemoFolders, site: str, event: str = "reserve") -> list[int]:
    """Return the rounds that a site's ledger has charged."""
    return [entry.charge.round for entry in ledger(place, site) if entry.event == event]


class Mail:
    """Every message that any party ever put on an exchange, by name."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.sent: dict[str, set[bytes]] = defaultdict(set)
        real = DirectoryExchange.put

        def put(exchange: DirectoryExchange, name: str, data: bytes) -> None:
            self.sent[name].add(bytes(data))
            real(exchange, name, data)

        patch.setattr(DirectoryExchange, "put", put)

    def check_said_once(self) -> None:
        """Assert that no site gave a round two different messages."""
        said = ("/contribution/", "/unmasking/", f"/{BROADCAST}/")
        kinds = [n for n in self.sent if any(kind in n for kind in said)]
        assert kinds, "no site said anything; the check would be empty"
        doubled = [name for name in kinds if len(self.sent[name]) > 1]
        assert not doubled


def alter_reads(
    patch: pytest.MonkeyPatch, alter: Callable[[str, bytes, int], bytes | None]
) -> None:
    """Let the exchange's owner change the bytes read; ``alter`` gets the count of earlier reads."""
    real, seen = DirectoryExchange.get, defaultdict[str, int](int)

    def get(exchange: DirectoryExchange, name: str, limit: int) -> bytes | None:
        data = real(exchange, name, limit)
        if data is None:
            return None
        seen[name] += 1
        found = alter(name, data, seen[name] - 1)
        if found is not None and len(found) > limit:
            from consortium.errors import ExchangeError

            raise ExchangeError(f"{name} is too large")
        return found

    patch.setattr(DirectoryExchange, "get", get)
