"""An exchange's operator for the tests, who can read and change everything on it."""

import hashlib
import itertools
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.errors import ConsortiumError
from consortium.exchange import DirectoryExchange
from consortium.privacy.mechanism import Mechanism
from consortium.secagg import keystream, shamir
from tests.support.forgery import rounds_of
from tests.support.local_consortium import SITES, STUDY, LocalConsortium

TEXT = STUDY.replace("rounds: 2", "rounds: 1").replace(
    "timing: {join: 4, answer: 4}", "timing: {join: 0.3, answer: 0.3}"
)
FIRST, SECOND = "runs/small-0001", "runs/small-0002"
Mail = dict[str, bytes]
Act = Callable[[str, bytes, int], bytes | None]


@dataclass
class Operator:
    """Operator between all parties and the exchange's disk.

    ``act`` gets a name, the stored bytes and the number of this party's earlier reads, and returns
    the bytes that the party receives.
    """

    patch: pytest.MonkeyPatch
    act: Act
    sent: dict[str, set[bytes]] = field(default_factory=lambda: defaultdict(set))
    handed: set[bytes | None] = field(default_factory=set)

    def __post_init__(self) -> None:
        put, get = DirectoryExchange.put, DirectoryExchange.get
        looks: dict[tuple[DirectoryExchange, str], Iterator[int]] = defaultdict(itertools.count)

        def keep(exchange: DirectoryExchange, name: str, data: bytes) -> None:
            self.sent[name].add(bytes(data))
            put(exchange, name, data)

        def hand_out(exchange: DirectoryExchange, name: str, limit: int) -> bytes | None:
            data = get(exchange, name, limit)
            if data is None:
                return None
            found = self.act(name, data, next(looks[exchange, name]))
            if found != data:
                self.handed.add(found)
            return found if found is None else found[:limit]

        self.patch.setattr(DirectoryExchange, "put", keep)
        self.patch.setattr(DirectoryExchange, "get", hand_out)


def exchange_of(place: DemoFolders) -> Path:
    return place.root / "exchange"


def sender(name: str) -> str:
    """Return the sender of a message."""
    told = "/shares/" in name  # by the centre, to a site
    return "centre" if told else next((word for word in name.split("/") if word in SITES), "centre")


@dataclass(frozen=True)
class Scene:
    """A place where one run has ended and another is about to begin; its mail and its result."""

    place: DemoFolders
    mail: Mail
    result: dict[str, bytes]
    secrets: dict[str, list[bytes]]

    def copy(self, target: Path) -> DemoFolders:
        shutil.copytree(self.place.root, target)
        for file in target.glob("hospitals/*/agent/site.yaml"):
            file.write_text(file.read_text().replace(str(self.place.root), str(target)))
        return DemoFolders(target)

    def said_by(self, who: str) -> list[str]:
        """Return the names of a party's messages in the second run, and around it."""
        names = [name for name in self.mail if not name.startswith(FIRST)]
        return [name for name in names if sender(name) == who]


def note_secrets(patch: pytest.MonkeyPatch, found: dict[str, list[bytes]]) -> None:
    """Record the sites' unsent computations while the sites continue as usual."""
    protect, split, add_streams = Mechanism.protect, shamir.split, keystream.add_streams

    def noted_protect(mechanism, site, statistic, sampler, part=1.0):
        share = protect(mechanism, site, statistic, sampler, part)
        found["statistic"].append(np.asarray(statistic).tobytes())
        found["noise and statistic"] += [share.masked.tobytes(), share.opened.tobytes()]
        return share

    def noted_split(secret, threshold, points, noise):
        shares = split(secret, threshold, points, noise)
        found["seed"].append(secret)
        found["share"] += shares
        return shares

    def noted_add(total, added, subtracted, source=None):
        found["mask's key"] += [*added, *subtracted]
        found["mask"] += [keystream.key_stream(key, total.nbytes) for key in (*added, *subtracted)]
        add_streams(total, added, subtracted, source)

    patch.setattr(Mechanism, "protect", noted_protect)
    patch.setattr(shamir, "split", noted_split)
    patch.setattr(keystream, "add_streams", noted_add)


# -- the acts --------------------------------------------------------------------------------


def flipped(scene: Scene, name: str) -> bytes:
    """Flip one bit, whose place depends on the name, which covers all parts of a message."""
    data = bytearray(scene.mail[name])
    bit = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]) % (8 * len(data))
    data[bit // 8] ^= 1 << bit % 8
    return bytes(data)


def cut(scene: Scene, name: str) -> bytes:
    return scene.mail[name][: -1 - len(name) % 40]


def of_a_sibling(scene: Scene, name: str) -> bytes | None:
    """Return another site's message in the same step, or one to it."""
    site = next((word for word in name.split("/") if word in SITES), None)
    if site is None:
        return None
    return scene.mail.get(name.replace(site, SITES[SITES.index(site) - 1]))


def of_another_step(scene: Scene, name: str) -> bytes | None:
    """Return the same party's message of another round, or of the other step of the set-up."""
    for step, other in (("00001", "00002"), ("advertise", "share"), ("keys", "shares")):
        for one, two in ((step, other), (other, step)):
            swapped = re.sub(rf"/{one}(?=/|$)", f"/{two}", name)
            places = (swapped, f"{swapped}/{SITES[0]}", swapped.rpartition("/")[0])
            found = next((place for place in places if place in scene.mail), None)
            if swapped != name and found is not None:
                return scene.mail[found]
    return None


def of_the_earlier_run(scene: Scene, name: str) -> bytes | None:
    """Return the message of the same name in the earlier run; only the run's number differs."""
    return scene.mail[name.replace(SECOND, FIRST)] if name.startswith(SECOND) else None


ACTS = (flipped, cut, of_a_sibling, of_another_step, of_the_earlier_run)


def deceive(name: str, false: tuple[bytes, ...]) -> Act:
    """Deliver false messages in turn, and first omit other sites' messages of the same step."""
    beside = {name.replace(sender(name), site) for site in SITES} - {name}
    waiting = len(false)

    def act(found: str, data: bytes, looks: int) -> bytes | None:
        nonlocal waiting
        if found == name:
            waiting -= 1
            return false[looks % len(false)]
        return None if found in beside and waiting > 0 else data

    return act


@dataclass(frozen=True)
class Trial:
    """How the second run went under an act of the operator."""

    end: dict[str, bytes] | ConsortiumError
    handed: set[bytes | None]
    local: LocalConsortium


def check_no_harm(place: DemoFolders, local: LocalConsortium, operator: Operator) -> None:
    """Assert that no site contradicted itself, was charged twice, or had an unforeseen error."""
    for name, versions in operator.sent.items():
        assert len(versions) == 1 or sender(name) == "centre", name
    for site in SITES:
        paid = rounds_of(place, site)
        assert paid == list(range(1, len(paid) + 1))
    assert not [line for _, line in local.log if "fault of the software" in line]
