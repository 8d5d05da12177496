"""A consortium whose parties share no folder: a relay carries messages over a platform.

The platform is one that nobody trusts. What it does to a message is a `Trouble`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

from cape_relay import Folder, Hub, Message, answer

from site_agent.config import SiteConfig
from tests.protocol.watched import Died
from tests.support.local_consortium import SITES, LocalConsortium

HUB = "hub"


class Trouble:
    """What a platform does to messages; this one does nothing."""

    def order(self, sites: list[str]) -> list[str]:
        """In which order sites are asked; one may be asked twice, or never."""
        return sites

    def asked(self, tick: int, site: str, message: Message) -> list[Message]:
        """Return what arrives at a site in the place of a message."""
        return [message]

    def said(self, tick: int, site: str, message: Message) -> list[Message]:
        """Return what arrives at the hub in the place of a site's answer."""
        return [message]

    def writes(self, tick: int, who: str) -> int | None:
        """After how many writes a party is killed, if it is."""
        return None


class _Mortal(Folder):
    """A folder whose writer may be killed between two writes."""

    left: int | None = None

    def put(self, name: str, data: bytes) -> bool:
        if self.left == 0:
            raise Died
        if self.left is not None:
            self.left -= 1
        return super().put(name, data)


@dataclass
class Relayed(LocalConsortium):
    """Parties with a folder each; before and after they work, the platform makes a tick."""

    trouble: Trouble = field(default_factory=Trouble)
    ticks_made: int = 0
    killed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        roots = {HUB: Path(self.place.files.exchange)}
        roots |= {site: self.place.root / "carried" / site for site in SITES}
        for site, root in roots.items():
            if site != HUB:
                root.mkdir(parents=True)
                config = SiteConfig.create(site, self.place.dataset(site), str(root))
                config.save(self.place.site(site))
        self.folders = {who: _Mortal(root) for who, root in roots.items()}
        self.hub = Hub(self.folders[HUB])

    def pump(self) -> None:
        """Let the platform make a tick, and every agent look at its folder once."""
        self.tick()
        super().pump()

    def tick(self) -> None:
        """Ask every site once, as far as the platform does."""
        self.ticks_made += 1
        asked = self.hub.request()
        for site in self.trouble.order(list(SITES)):
            for message in self.trouble.asked(self.ticks_made, site, deepcopy(asked)):
                self._ask(site, message)

    def _ask(self, site: str, message: Message) -> None:
        said = self._alive(site, lambda: answer(self.folders[site], message))
        if said is None:
            return
        for each in self.trouble.said(self.ticks_made, site, said):
            self._alive(HUB, lambda each=each: self.hub.take(site, each))

    def _alive(self, who: str, act: Callable[[], Message | None]) -> Message | None:
        """Let a party act; if it is killed, it begins again with nothing but its folder."""
        folder = self.folders[who]
        folder.left = self.trouble.writes(self.ticks_made, who)
        try:
            return act()
        except Died:
            self.killed += 1
            self.folders[who] = _Mortal(folder.root)
            if who == HUB:
                self.hub = Hub(self.folders[HUB])
            return None
        finally:
            folder.left = None

    def settled(self) -> list[dict[str, str]]:
        """Listings of all folders, once the platform is well again."""
        self.trouble = Trouble()
        for _ in range(5):  # agents hear of the end, and say that they did
            self.pump()
        for _ in range(2):
            self.tick()
        return [folder.listing() for folder in self.folders.values()]


# -- what a platform does -----------------------------------------------------------------------


@dataclass
class Reorders(Trouble):
    """Sites are asked in another order each time, and some are left out."""

    draw: random.Random

    def order(self, sites: list[str]) -> list[str]:
        return self.draw.sample(sites, self.draw.randint(1, len(sites)))


@dataclass
class Drops(Trouble):
    """Every second message is lost, of those asked and of those said."""

    draw: random.Random

    def asked(self, tick: int, site: str, message: Message) -> list[Message]:
        return [message] if self.draw.random() < 0.5 else []

    said = asked


@dataclass
class Repeats(Trouble):
    """Every message comes twice, and an old one of the same site once more."""

    draw: random.Random
    old: list[Message] = field(default_factory=list)

    def asked(self, tick: int, site: str, message: Message) -> list[Message]:
        self.old.append(message)
        return [message, self.draw.choice(self.old), message]

    def said(self, tick: int, site: str, message: Message) -> list[Message]:
        return [message, message]


@dataclass
class Delays(Trouble):
    """What a site says arrives a few ticks later, mixed with what it says then."""

    draw: random.Random
    under_way: dict[str, list[Message]] = field(default_factory=dict)

    def said(self, tick: int, site: str, message: Message) -> list[Message]:
        late = self.under_way.setdefault(site, [])
        late.append(message)
        if len(late) < 3:
            return []
        return [late.pop(self.draw.randrange(len(late)))]


@dataclass
class Kills(Trouble):
    """A party is killed between two writes, or before its first."""

    draw: random.Random
    whom: tuple[str, ...]

    def writes(self, tick: int, who: str) -> int | None:
        return self.draw.randrange(2) if who in self.whom and self.draw.random() < 0.5 else None


class Everything(Trouble):
    """All that does no lasting harm, at once."""

    def __init__(self, draw: random.Random) -> None:
        self.kinds = [
            Reorders(draw), Drops(draw), Repeats(draw), Delays(draw), Kills(draw, (HUB, *SITES)),
        ]  # fmt: skip

    def order(self, sites: list[str]) -> list[str]:
        return self.kinds[0].order(sites)

    def asked(self, tick: int, site: str, message: Message) -> list[Message]:
        kept = self.kinds[1].asked(tick, site, message)
        return [each for one in kept for each in self.kinds[2].asked(tick, site, one)]

    def said(self, tick: int, site: str, message: Message) -> list[Message]:
        kept = self.kinds[1].said(tick, site, message)
        return [each for one in kept for each in self.kinds[3].said(tick, site, one)]

    def writes(self, tick: int, who: str) -> int | None:
        return self.kinds[4].writes(tick, who)


@dataclass
class Forges(Trouble):
    """Once a site says a name, something is done to the message it is in."""

    what: str
    forge: Callable[[Message, str], None]
    over: bool = False

    def said(self, tick: int, site: str, message: Message) -> list[Message]:
        found = next((name for name in message["files"] if self.what in name), None)
        if found and not self.over:
            self.over = True
            self.forge(message, found)
        return [message]
