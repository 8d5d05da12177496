"""A study over NeuroFLAME's contract: what its clients mount and start, on this machine.

What its web application does besides is left out: it hands out kits and starts containers. Here a
container is a process in a copy of the image's folder.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from tests.long.platforms import (
    HUB,
    SITES,
    apart,
    centre_at_work,
    check_all_alike,
    check_no_participant,
    follow,
    python_with,
    write_job,
)

IDS = {who: f"6650f0c2a1b2c3d4e5f6000{k}" for k, who in enumerate((HUB, *SITES))}
"""As the platform numbers its members."""
COORDINATOR = "Coordinating centre"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("neuroflame")
    return python_with("nvflare==2.8.0", folder, "CAPE_NEUROFLAME_PYTHON")


class Containers:
    """The image's folder, once for each container that NeuroFLAME starts."""

    def __init__(self, python: Path, image: Path, place: DemoFolders) -> None:
        self.python, self.image, self.root = python, image, place.root / "containers"

    def start(self, who: str, entry: str, *words: object) -> "subprocess.Popen[bytes]":
        home = self.root / who
        around = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "PATH": f"{self.python.parent}:/usr/bin:/bin", "HOME": str(home),
        }  # fmt: skip
        line = [self.python, home / "system" / f"entry_{entry}.py", *words]
        return subprocess.Popen(
            list(map(str, line)), env=around, cwd=home, start_new_session=True,
            stdout=(home / "said.txt").open("ab"), stderr=subprocess.STDOUT,
        )  # fmt: skip

    def make(self, who: str) -> Path:
        shutil.copytree(self.image, self.root / who)
        return self.root / who

    def said(self, who: str) -> str:
        return (self.root / who / "said.txt").read_text()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def provision_input(parameters: str) -> dict[str, object]:
    """What the platform's central client writes."""
    names = {HUB: COORDINATOR, **{site: site.title() for site in SITES}}
    members = [
        {"participantId": number, "kind": "user", "displayName": names[who], "userId": number}
        for who, number in IDS.items()
    ]
    return {
        "active_participants": members, "user_ids": list(IDS.values()),
        "computation_parameters": parameters, "fed_learn_port": free_port(),
        "admin_port": free_port(), "host_identifier": "localhost",
    }  # fmt: skip


def end(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


@contextmanager
def run_started(python: Path, place: DemoFolders) -> Iterator[tuple[Containers, dict]]:
    """Provision, and start the central container and one for each member."""
    image = write_job("neuroflame", place)
    parameters = json.loads((image / "parameters.json").read_text())
    parameters |= {"coordinator": COORDINATOR}
    boxes, kits = Containers(python, image, place), place.root / "provisioning"
    kits.mkdir()
    given = kits / "provision_input.json"
    given.write_text(json.dumps(provision_input(json.dumps(parameters))))
    boxes.make("provision")
    assert boxes.start("provision", "provision", "--input", given).wait(120) == 0, boxes.said(
        "provision"
    )
    running = {}
    with ExitStack() as undo:
        for who in ("central", HUB, *SITES):
            home = boxes.make(who)
            shutil.copytree(kits / "runKits" / IDS.get(who, "centralNode"), home / "runKit")
            if who != "central":
                (home / "data").symlink_to(place.root / "carried" / who)
            entry = "central" if who == "central" else "edge"
            running[who] = undo.enter_context(boxes.start(who, entry))
            undo.callback(end, running[who].pid)
        yield boxes, running


def test_the_entries_carry_a_study_that_can_be_shown(python: Path, tmp_path: Path) -> None:
    place = apart(tmp_path / "place")
    with centre_at_work(place) as centre:
        begun = time.monotonic()
        with run_started(python, place) as (boxes, running):
            said = follow(centre, running["central"])
            assert centre.returncode == 0, said
            codes = {who: each.wait(180) for who, each in running.items()}
        print(f"{time.monotonic() - begun:.0f} s")
    assert set(codes.values()) == {0}, {who: boxes.said(who)[-2000:] for who in codes}
    check_all_alike(place)
    check_no_participant(place, boxes.root)
