"""A finished run with all the files stored next to its result, made once and copied."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.coordinator.evidence import keep_evidence
from consortium.coordinator.outputs import Publisher
from consortium.engine.centre import Centre
from tests.support.local_consortium import LocalConsortium, build

STUDY = """\
study: small
title: Small
sites: [north, east, south, west]
participants: {north: 10, east: 10, south: 10, west: 10}
data: {resolution: 30, standardize: subject, minimum_volumes: 10, volumes: 24}
privacy:
  {unit: subject, epsilon: 8, delta: 1.0e-5, boost: BOOST, colluding_sites: 1, dropouts: DROPOUTS}
algorithm: ica
analysis: {components: 2, rounds: 2, pca_solver: moment}
timing: {join: 4, answer: 4, late: 1}
"""


def carry_out(local: LocalConsortium, centre: Centre | None = None) -> Path:
    """Carry a run out to its published folder, which is returned."""
    centre = centre or local.centre()
    plan = centre.open()
    assert centre.session is not None
    while centre.session.pending is not None:
        centre.step()
    publish(local, centre)
    assert plan.rounds >= len(centre.session.rounds)
    return local.place.files.out


def publish(local: LocalConsortium, centre: Centre) -> None:
    """Write the output folder as the command ``run`` does."""
    files, result = local.place.files, centre.finish()
    assert centre.session is not None
    plan, rounds = centre.session.plan, centre.session.rounds
    Publisher(files.out, local.opened).publish(plan, rounds, result)
    keep_evidence(files.out, centre.releases, files.study, plan, len(rounds))


@dataclass(frozen=True)
class Finished:
    """A run's output folder and exchange, to be changed at will."""

    out: Path
    exchange: Path

    def copy(self, root: Path) -> Finished:
        """Copy both."""
        found = Finished(root / "out", root / "exchange")
        shutil.copytree(self.out, found.out)
        shutil.copytree(self.exchange, found.exchange)
        return found


OPEN = STUDY + "verification: {open: true}\n"


@cache
def finished(
    boost: str = "exact", dropouts: int = 0, *, absent: str = "", text: str = STUDY
) -> Finished:
    """Make a finished run, once for all tests of a process."""
    place = build(Path(mkdtemp()), boost=boost, dropouts=dropouts, text=text)
    return play(place, absent)


def play(place: DemoFolders, absent: str = "") -> Finished:
    """Carry a run out; one site may be absent from its second round on."""
    local = LocalConsortium(place)
    centre = local.centre()
    centre.open()
    assert centre.session is not None
    while centre.session.pending is not None:
        if centre.session.number == 2 and absent:
            local.absent.add(absent)
        centre.step()
    publish(local, centre)
    return Finished(place.files.out, Path(place.files.exchange))
