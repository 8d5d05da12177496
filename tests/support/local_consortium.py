"""A small consortium on disk whose agents run in the test's own process, step by step.

The centre waits by pausing its clock; the pause lets every agent look at the
exchange once. So a whole study runs without threads, in a repeatable order, and
any party can be thrown away and built again from its disk at any moment.
"""

import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from consortium.coordinator.demo.prepare import EXCHANGE, DemoFolders
from consortium.coordinator.run import RunFiles
from consortium.coordinator.run_folder import claim_run
from consortium.engine.centre import Centre
from consortium.engine.clock import Clock
from consortium.membership.keys import create_identity, load_identity
from consortium.membership.roster import Roster, found_roster, read_roster, save_roster
from consortium.membership.signed_study import read_signed, sign_study
from consortium.opened_study import OpenedStudy, open_study
from consortium.simulation.bids import Recipe, make_consortium
from consortium.simulation.signals import SignalLevels
from consortium.space.grid import Grid
from consortium.space.study_space import Space
from consortium.study.reader import read_study
from consortium.study.spec import Study
from site_agent.agent import Agent
from site_agent.approval.approval import Terms, approve
from site_agent.config import SiteConfig
from site_agent.loading.progress import Drive, at_once
from site_agent.policy.policy import Allowance, Policy

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
SITES = ("north", "east", "south", "west")
STUDY = """\
study: small
sites: [north, east, south, west]
participants: {north: 10, east: 10, south: 10, west: 10}
data: {resolution: 30, standardize: subject, minimum_volumes: 10, volumes: 24}
privacy:
  {unit: subject, epsilon: 8, delta: 1.0e-5, boost: BOOST, colluding_sites: 1, dropouts: DROPOUTS}
algorithm: ica
analysis: {components: 2, rounds: 2, pca_solver: moment}
timing: {join: 4, answer: 4}
"""


class Ticks:
    """Time that passes only when a party waits.

    Each pause lets the others work at its start, and again whenever one of them is to be woken.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.others: Callable[[], object] = lambda: None
        self.left: Callable[[], float] = lambda: math.inf
        """Returns the seconds until one of the others is to be woken."""

    def pause(self, seconds: float) -> None:
        """Let the others work, and the time pass."""
        end = self.now + seconds
        self.others()
        while (left := self.left()) < end - self.now:
            self.now += left
            self.others()
        self.now = max(self.now, end)

    def clock(self) -> Clock:
        """Return the clock that the centre requires."""
        return Clock(lambda: self.now, self.pause)


def make_scans(folder: Path, subjects: int = 3) -> None:
    """Write each site's simulated scans: copies of those that this process has made once."""
    shutil.copytree(_made_scans(subjects).name, folder)


@cache
def _made_scans(subjects: int) -> TemporaryDirectory[str]:
    folder = TemporaryDirectory()
    recipe = Recipe(
        SITES, subjects, 5, volumes=24, networks=2, resolution=30.0, levels=SignalLevels()
    )
    make_consortium(Path(folder.name), recipe, workers=1)
    return folder


def build(
    root: Path,
    *,
    boost: str = "exact",
    dropouts: int = 0,
    text: str = STUDY,
    subjects: int = 3,
    make: Callable[[Path, int], None] = make_scans,
    most: float | None = None,
) -> DemoFolders:
    """Make data, keys, roster and approvals; `tests` may change anything before the run."""
    root.mkdir(parents=True, exist_ok=True)
    place = DemoFolders(root)
    files = place.files
    text = text.replace("BOOST", boost).replace("DROPOUTS", str(dropouts))
    files.study.write_text(text, encoding="utf-8")
    make(root / "hospitals", subjects)
    (root / EXCHANGE).mkdir()
    files.keys.mkdir()
    members = found_roster(create_identity(files.keys, entropy("centre")).public)
    for name in SITES:
        folder = place.site(name)
        folder.mkdir(parents=True)
        SiteConfig.create(name, place.dataset(name), str(root / EXCHANGE)).save(folder)
        members = members.with_site(name, create_identity(folder, entropy(name)).public)
        if most is not None:
            limit(place, name, most)
    agree(place, members)
    return place


def agree(
    place: DemoFolders, members: Roster, *, runs: int = 1, only: Sequence[str] = SITES
) -> None:
    """Sign roster and study as they are now, and let sites approve them."""
    files, key = place.files, load_identity(place.files.keys).key
    save_roster(files.roster, members, key)
    sign_study(files.study, members, key)
    for name in only:
        say_yes(place, name, runs=runs)


def say_yes(place: DemoFolders, name: str, *, runs: int = 1) -> None:
    """Let one site approve the study as it is signed, for the given number of runs in all."""
    folder, files = place.site(name), place.files
    identity = load_identity(folder)
    approve(folder, name, identity, files.study, files.roster, Terms(runs))


def entropy(name: str) -> bytes:
    """Return the entropy of a party's keys."""
    return (name.encode() * 64)[:64]


def limit(place: DemoFolders, name: str, epsilon: float) -> None:
    """Set a site's own limit for unit subject."""
    allowance = Allowance(study=epsilon, total=epsilon)
    Policy(subject=allowance).save(place.site(name))


@dataclass
class LocalConsortium:
    """The parties of one place, in one process.

    ``log`` contains (who, line) for every line that any party logged.
    """

    place: DemoFolders
    log: list[tuple[str, str]] = field(default_factory=list)
    absent: set[str] = field(default_factory=set)
    drive: Drive = at_once

    def __post_init__(self) -> None:
        self.ticks = Ticks()
        self.ticks.others = self.pump
        self.ticks.left = lambda: min(map(self.left, self.agents), default=math.inf)
        self.agents: dict[str, Agent] = {}
        self.study: Study = read_study(self.place.files.study)
        self.opened: OpenedStudy = open_study(self.study, self.place.files.study.parent)
        self.space: Space = self.opened.space
        self.grid: Grid = self.space.grid

    def agent(self, name: str) -> Agent:
        """Return a site's agent, built from its folder at first."""
        if name not in self.agents:
            tell = lambda line: self.log.append((name, line))  # noqa: E731
            clock = self.ticks.clock()
            self.agents[name] = Agent(self.place.site(name), clock, lambda: NOON, tell, self.drive)
        return self.agents[name]

    def left(self, name: str) -> float:
        """Return the seconds until a site's time slot ends."""
        return self.agents[name].slot_left

    def pump(self) -> None:
        """Let every existing agent look at the exchange once."""
        for name in self.study.sites:
            if name not in self.absent:
                self.agent(name).round_trip()

    def centre(self) -> Centre:
        """Return the centre, built from its folder."""
        files: RunFiles = self.place.files
        files.out.mkdir(exist_ok=True)
        exchange = files.open_exchange()
        signed = read_signed(files.study, read_roster(files.roster))
        keys = signed.keys
        record = claim_run(files.out, self.study, exchange, keys)
        opened = replace(self.opened, keys=keys, file=signed.file)
        return Centre(
            opened.context(record.run),
            load_identity(files.keys).key,
            exchange,
            files.out,
            self.ticks.clock(),
            lambda line: self.log.append(("centre", line)),
        )

    def said(self, who: str) -> str:
        """Return every line that one party logged."""
        return "\n".join(line for name, line in self.log if name == who)


def conduct(centre: Centre) -> dict[str, bytes]:
    """Run all rounds; returns the result's arrays as bytes."""
    centre.open()
    assert centre.session is not None
    while centre.session.pending is not None:
        centre.step()
    return {name: array.tobytes() for name, array in centre.finish().arrays.items()}
