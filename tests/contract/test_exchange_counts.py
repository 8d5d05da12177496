"""What a site puts on the exchange, and when, doesn't depend on how many participants it has."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import yaml

from consortium.algorithms import REGISTRY
from consortium.coordinator.demo.prepare import DemoFolders
from consortium.engine.clock import Clock
from consortium.errors import ConsortiumError
from consortium.exchange import DirectoryExchange
from consortium.simulation.dataset import start_derivatives
from consortium.study.slots import SHORTEST
from site_agent.agent import Agent
from site_agent.run import rounds
from tests.support.cases import SITES, study_of
from tests.support.local_consortium import NOON, LocalConsortium, build

NOMINAL, HOME = 10, "north"
SEEN = {
    name: case
    for name, algorithm in sorted(REGISTRY.items())
    for case in reversed(algorithm.cases)
    if case.views and case.unit == "subject" and not case.mesh and case.rows == 1
}
"""The first example of each analysis that is for tables."""


def table_of(views, persons, generator):
    """The text of a table of participants with a column for each entry."""
    names = [f"{name}{k + 1}" for name, size in views for k in range(size)]
    lines = ["\t".join(("participant_id", *names))]
    for number in range(persons):
        cells = [
            str(generator.choice(["no", "yes"]))
            if name.startswith("group")
            else f"{generator.uniform(-1, 1):.3f}"
            for name in names
        ]
        lines.append("\t".join((f"sub-{number:03d}", *cells)))
    return "\n".join(lines) + "\n"


def place_of(root: Path, name: str, persons: int) -> DemoFolders:
    """A consortium in which one site has so many participants."""
    case = SEEN[name]
    values = study_of(name, case, epsilon=90.0).model_dump(mode="json", exclude_none=True)
    values |= {"participants": dict.fromkeys(SITES, NOMINAL), "timing": {"join": 4, "answer": 4}}

    def make(folder: Path, _subjects: int) -> None:
        generator = np.random.default_rng(1)
        for site in SITES:
            many = persons if site == HOME else NOMINAL
            labels = [f"{number:03d}" for number in range(many)]
            start_derivatives(folder / site / "bids", "simulated tables", labels)
            text = table_of(case.views, many, generator)
            (folder / site / "bids" / "participants.tsv").write_text(text)

    return build(root, text=yaml.safe_dump(values), make=make, most=100.0)


def end_of(local: LocalConsortium) -> str:
    """Conduct a run, and return how it ends."""
    centre, end = local.centre(), "complete"
    try:
        centre.open()
        assert centre.session is not None
        while centre.session.pending is not None:
            centre.step()
        centre.finish()
    except ConsortiumError as error:
        end = type(error).__name__
    return end


def sent_by_one_of(root: Path, name: str, persons: int) -> tuple[dict[str, int], str]:
    """Sizes by name of all that one site puts on the exchange in a run, and how the run ends."""
    end = end_of(LocalConsortium(place_of(root, name, persons)))
    exchange = root / "exchange"
    files = (path for path in exchange.rglob("*") if path.is_file() and HOME in path.parts)
    return {str(path.relative_to(exchange)): path.stat().st_size for path in files}, end


def rounds_in(sent: dict[str, int]) -> int:
    """The number of rounds that were answered."""
    return len([name for name in sent if "/contribution/" in name])


def until(sent: dict[str, int], last: int) -> dict[str, int]:
    """The messages of set-up and of so many rounds, without what follows the last of them."""
    found = {name: re.fullmatch(r"runs/[^/]+/(\d+)/.*", name) for name in sent}
    ends = ("ledgers/", "/attestation/")
    return {
        name: size
        for name, size in sent.items()
        if not any(end in name for end in ends)
        and (found[name] is None or int(found[name][1]) <= last)
    }


@pytest.mark.parametrize("name", SEEN)
def test_names_sizes_and_ends_are_alike_with_nobody_and_with_many(name, tmp_path):
    """Releases may end an analysis a round earlier, so that rounds of both runs are compared."""
    counts = (0, 1, 300) if name == "average" else (0, 30)
    runs = [sent_by_one_of(tmp_path / str(persons), name, persons) for persons in counts]
    assert {end for _, end in runs} == {"complete"}
    rounds = [rounds_in(sent) for sent, _ in runs]
    seen = [sent for sent, _ in runs]
    if len(set(rounds)) > 1:
        seen = [until(sent, min(rounds)) for sent in seen]
    assert len(seen[0]) > 4
    assert all(each == seen[0] for each in seen)


@dataclass
class TimedConsortium(LocalConsortium):
    """One site takes simulated time to load and to compute; when it posts what is written down."""

    loading: float = 0.0
    """Seconds of the one site."""
    computing: float = 0.0
    """Seconds of the one site in each round."""
    posted: list[tuple[float, str]] = field(default_factory=list)
    _works: list[tuple[Iterator[object], float]] = field(default_factory=list)
    _busy: float = 0.0  # until when the one site computes
    _at_work: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.drive = self._queue

    def _queue(self, work: Iterator[object]) -> None:
        seconds = self.loading if self._at_work == HOME else 0.0
        self._works.append((work, self.ticks.now + seconds))

    def left(self, name: str) -> float:
        ahead = max(0.0, self._busy - self.ticks.now) if name == HOME else 0.0
        return ahead + super().left(name)

    def home_clock(self) -> Clock:
        """Clock of the one site, which is ahead of the others while it computes."""
        return Clock(lambda: max(self.ticks.now, self._busy), self.ticks.pause)

    def agent(self, name: str) -> Agent:
        if name not in self.agents:
            clock = self.home_clock() if name == HOME else self.ticks.clock()
            tell = lambda line: self.log.append((name, line))  # noqa: E731
            self.agents[name] = Agent(self.place.site(name), clock, lambda: NOON, tell, self.drive)
        return self.agents[name]

    def pump(self) -> None:
        for work, due in self._works[:]:
            if due <= self.ticks.now:
                list(work)
                self._works.remove((work, due))
        for name in self.study.sites:
            if name != HOME or self._busy <= self.ticks.now:
                self._at_work = name
                self.agent(name).round_trip()
                self._at_work = ""

    def computes(self) -> None:
        """The site at work has computed a statistic."""
        if self._at_work == HOME:
            self._busy = self.ticks.now + self.computing

    def puts(self, name: str) -> None:
        """The site at work puts a message on the exchange."""
        if self._at_work == HOME:
            self.posted.append((round(self.ticks.now, 6), name))


def posted_by_one(
    root: Path, patch: pytest.MonkeyPatch, persons: int, loading: float, computing: float
) -> list[tuple[float, str]]:
    """When one site puts what on the exchange in a run."""
    place = place_of(root, "average", persons)
    local = TimedConsortium(place, loading=loading, computing=computing)
    put, statistic = DirectoryExchange.put, rounds.local_statistic

    def watched_put(self, name, data):
        local.puts(name)
        return put(self, name, data)

    def slow_statistic(*args):
        local.computes()
        return statistic(*args)

    with patch.context() as within:
        within.setattr(DirectoryExchange, "put", watched_put)
        within.setattr(rounds, "local_statistic", slow_statistic)
        assert end_of(local) == "complete"
    return local.posted


def test_times_are_alike_with_nobody_and_with_many(tmp_path, monkeypatch):
    cases = ((0, 0.0, 0.0), (1, 0.001, 0.02), (300, 0.04, 0.0499), (300, SHORTEST, SHORTEST))
    seen = [
        posted_by_one(tmp_path / str(number), monkeypatch, *case)
        for number, case in enumerate(cases)
    ]
    assert len(seen[0]) > 6
    assert all(each == seen[0] for each in seen)


def test_a_site_that_overruns_uses_the_next_end_of_a_slot(tmp_path, monkeypatch):
    cases = ((0.0, 0.0), (0.0, 0.051), (0.0, 0.09), (0.051, 0.0), (0.09, 0.0), (0.101, 0.0))
    times = [
        {name: at for at, name in posted_by_one(tmp_path / str(number), monkeypatch, 9, *case)}
        for number, case in enumerate(cases)
    ]
    punctual, computing, loading, longest = times[0], times[1], times[3], times[5]
    assert computing == times[2]
    assert loading == times[4]
    present, notice = (f"runs/small-0001/{kind}/{HOME}" for kind in ("present", "loading"))
    answer = f"runs/small-0001/00001/contribution/{HOME}"
    assert computing[answer] == pytest.approx(punctual[answer] + SHORTEST)
    assert notice not in punctual
    loaded = pytest.approx(punctual[present] - SHORTEST)  # before the ledger is written
    assert loading[notice] == longest[notice] == loaded
    assert loading[present] == pytest.approx(punctual[present] + SHORTEST)
    assert longest[present] == pytest.approx(punctual[present] + 2 * SHORTEST)
