"""A small consortium on disk whose agents run in the test's own process, step by step.

The centre waits by pausing its clock; the pause lets every agent look at the
exchange once. So a whole study runs without threads, in a repeatable order, and
any party can be thrown away and built again from its disk at any moment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from consortium.conduct import Errand
from consortium.demo import Place
from consortium.engine.centre import Centre, Setting
from consortium.engine.wire import Clock
from consortium.exchange import DirectoryExchange
from consortium.identity import create_identity, load_identity
from consortium.progress import claim_run
from consortium.report.grid import Grid, study_grid
from consortium.roster import keys_of, load_roster, save_roster
from consortium.study import Study, load_study
from consortium.synthetic.bids import Recipe, make_consortium
from consortium.synthetic.signals import Levels
from site_agent.agent import Agent
from site_agent.approval import approve
from site_agent.config import Limits, SiteConfig

SITES = ("north", "east", "south", "west")
STUDY = """\
study: small
sites: [north, east, south, west]
data: {resolution: 30, standardize: subject, minimum_volumes: 10, volumes: 24}
privacy:
  {unit: subject, epsilon: 8, delta: 1.0e-5, scheme: SCHEME, colluding_sites: 1, dropouts: DROPOUTS}
algorithm: ica
analysis: {components: 2, rounds: 2}
timing: {join: 4, answer: 4}
"""


class Ticks:
    """Time that passes only when somebody waits; each pause lets the others work."""

    def __init__(self) -> None:
        self.now = 0.0
        self.others: Callable[[], object] = lambda: None

    def pause(self, seconds: float) -> None:
        """Let the others work, then let the time pass."""
        self.others()
        self.now += seconds

    def clock(self) -> Clock:
        """As the centre wants it."""
        return Clock(lambda: self.now, self.pause)


def build(
    root: Path, *, scheme: str = "cape", dropouts: int = 0, text: str = STUDY, subjects: int = 3
) -> Place:
    """Make scans, keys, roster and approvals; `tests` may change anything before the run."""
    root.mkdir(parents=True, exist_ok=True)
    place = Place(root)
    errand = place.errand
    text = text.replace("SCHEME", scheme).replace("DROPOUTS", str(dropouts))
    errand.study.write_text(text, encoding="utf-8")
    recipe = Recipe(SITES, subjects, 5, volumes=24, networks=2, resolution=30.0, levels=Levels())
    make_consortium(root / "hospitals", recipe, workers=1)
    errand.exchange.mkdir()
    errand.keys.mkdir()
    keys = {"centre": create_identity(errand.keys, _entropy("centre")).public}
    for name in SITES:
        folder = place.site(name)
        folder.mkdir(parents=True)
        config = SiteConfig(name=name, dataset=place.dataset(name), exchange=errand.exchange)
        config.save(folder)
        keys[name] = create_identity(folder, _entropy(name)).public
    save_roster(errand.roster, keys)
    for name in SITES:
        approve(place.site(name), errand.study, errand.roster)
    return place


def _entropy(name: str) -> bytes:
    return (name.encode() * 64)[:64]


def limit(place: Place, name: str, epsilon: float) -> None:
    """Set a site's own limit for unit subject."""
    config = SiteConfig.load(place.site(name))
    config.model_copy(update={"limits": Limits(subject=epsilon)}).save(place.site(name))


@dataclass
class Village:
    """The parties of one place, in one process.

    ``log`` holds (who, line) for everything that anybody told.
    """

    place: Place
    log: list[tuple[str, str]] = field(default_factory=list)
    absent: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.ticks = Ticks()
        self.ticks.others = self.pump
        self.agents: dict[str, Agent] = {}
        self.study: Study = load_study(self.place.errand.study)
        self.grid: Grid = study_grid(self.study.data, self.place.errand.study.parent)

    def agent(self, name: str) -> Agent:
        """A site's agent, built from its folder if it isn't there."""
        if name not in self.agents:
            tell = lambda line: self.log.append((name, line))  # noqa: E731
            clock = self.ticks.clock()
            self.agents[name] = Agent(self.place.site(name), clock, lambda: "now", tell)
        return self.agents[name]

    def pump(self) -> None:
        """Let every agent that is there look at the exchange once."""
        for name in self.study.sites:
            if name not in self.absent:
                self.agent(name).round_trip()

    def centre(self) -> Centre:
        """The centre, built from its folder."""
        errand: Errand = self.place.errand
        errand.out.mkdir(exist_ok=True)
        exchange = DirectoryExchange(errand.exchange)
        keys = keys_of(self.study, load_roster(errand.roster), "roster")
        record = claim_run(errand.out, self.study, exchange, keys)
        setting = Setting(record.run, self.study, keys, self.grid.digest, self.grid.features)
        return Centre(
            setting,
            load_identity(errand.keys).key,
            exchange,
            errand.out / "transcript",
            self.ticks.clock(),
            lambda line: self.log.append(("centre", line)),
        )

    def said(self, who: str) -> str:
        """Everything that one party told."""
        return "\n".join(line for name, line in self.log if name == who)


def conduct(centre: Centre) -> dict[str, bytes]:
    """Run all rounds; returns the result's arrays as bytes."""
    centre.open()
    assert centre.session is not None
    while centre.session.pending is not None:
        centre.step()
    return {name: array.tobytes() for name, array in centre.finish().arrays.items()}
