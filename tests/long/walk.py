"""The way to a first result, walked: python -m tests.long.walk [FOLDER] [--deadline SECONDS].

Four hospitals and a coordinator are five users of this machine, with the umask 0077 and a group
for the exchange. The software is what the wheel installs; each command is one of the guides', with
this machine's values put in; scans lie on a disk that gives each hospital 1 MB/s. Users, group,
disk and folder are taken away again. Needs root, and a kernel that can slow a disk.
"""

import grp
import json
import math
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from consortium.privacy.gdp import epsilon_of
from tests.long.guides import command
from tests.long.installation import for_coordinator, install_both
from tests.long.slow_disk import SlowDisk, can_slow

SITES = ("north", "east", "south", "west")
CENTRE = "coordinator"
PREFIX = "walk-"
GROUP = "walk-exchange"
PACE = 1_000_000  # bytes of scans that a hospital reads in a second
PERSONS = 20
VOLUMES = 80
EPSILON = 8
RUN = "rest-2026-0001"
COORDINATOR, SITE = "guides/coordinator.md", "guides/site.md"


@dataclass(frozen=True)
class Typed:
    """One command: who typed it, what, and the seconds it took."""

    who: str
    words: tuple[str, ...]
    seconds: float


@dataclass
class Walk:
    """All parties of a consortium on one machine.

    Parameters
    ----------
    root : Path
        An empty folder that all users may enter.
    software : Path
        Where the wheel is installed, and beside it for the coordinator.
    """

    root: Path
    software: Path
    typed: list[Typed] = field(default_factory=list)
    slowed: dict[str, list[str]] = field(default_factory=dict)
    agents: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    minutes: float = 0.0
    commands: int = 0

    def exchange(self, who: str) -> Path:
        """The place that is a party's exchange: one for all."""
        return self.root / "exchange"

    def home(self, who: str) -> Path:
        return self.root / who

    def log(self, who: str) -> Path:
        return self.root / f"{who}.log"

    def program(self, who: str, name: str) -> str:
        """Path of a program as a party has it."""
        place = for_coordinator(self.software) if who == CENTRE else self.software
        return str(place / "bin" / name)

    def start(self, who: str, words: Sequence[str], **streams: object) -> subprocess.Popen[str]:
        """Start a command as a user who lets nobody read what they make."""
        line = [*self.slowed.get(who, []), self.program(who, words[0]), *words[1:]]
        home = self.home(who)
        bare = {
            "HOME": str(home),
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "OMP_NUM_THREADS": "1",
        }
        user = pwd.getpwnam(PREFIX + who)
        return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
            line, cwd=home, env=bare, user=user.pw_uid, group=user.pw_gid, text=True,
            extra_groups=[grp.getgrnam(GROUP).gr_gid], umask=0o077, **streams,
        )  # fmt: skip

    def type(self, who: str, words: Sequence[str], answer: str = "") -> str:
        """Type a command and wait for its end; one that fails ends the walk."""
        begun, pipe = time.monotonic(), subprocess.PIPE
        process = self.start(who, words, stdin=pipe, stdout=pipe, stderr=pipe)
        out, err = process.communicate(answer, timeout=1800)
        self.typed.append(Typed(who, tuple(words), time.monotonic() - begun))
        if process.returncode:
            raise SystemExit(f"{who}: {' '.join(words)}\n{out}{err}")
        return out

    def mail(self, who: str, to: str, *names: str) -> None:
        """Send files, as by mail: what arrives is the receiver's own."""
        user = pwd.getpwnam(PREFIX + to)
        for name in names:
            arrived = self.home(to) / Path(name).name
            shutil.copyfile(self.home(who) / name, arrived)
            os.chown(arrived, user.pw_uid, user.pw_gid)


@contextmanager
def users(root: Path) -> Iterator[None]:
    """Make the parties' users, homes and exchange; and take the users away."""
    names = (*SITES, CENTRE)
    try:
        subprocess.run(["groupadd", GROUP], check=True)
        for who in names:
            home = ("--no-create-home", "--home-dir", root / who, "--groups", GROUP)
            subprocess.run(["useradd", "--system", "--user-group", *home, PREFIX + who], check=True)
            subprocess.run(["install", "-d", "-m", "700", "-o", PREFIX + who, "-g", PREFIX + who, root / who], check=True)  # fmt: skip  # noqa: E501
        # As guides/installing.md has it.
        subprocess.run(["install", "-d", "-m", "2770", "-g", GROUP, root / "exchange"], check=True)
        yield
    finally:
        for who in names:
            subprocess.run(["userdel", PREFIX + who], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["groupdel", GROUP], check=False)


def make_scans(disk: SlowDisk) -> int:
    """Make scans up on the disk; returns the bytes of one hospital's."""
    disk.make(2048)
    words = ["--subjects", str(PERSONS), "--volumes", str(VOLUMES), "--networks", "4"]
    words += ["--resolution", "4"]
    make = [sys.executable, "-m", "consortium.simulation", str(disk.mount / "made")]
    subprocess.run([*make, "--sites", *SITES, *words], check=True)
    disk.seal()
    scans = (disk.mount / "made" / SITES[0] / "bids").rglob("*_bold.nii.gz")
    return sum(path.stat().st_size for path in scans)


def found(walk: Walk, scans: Path) -> None:
    """Keys, requests and a roster: six commands."""
    said = walk.type(CENTRE, command(COORDINATOR, "consortium init ", {}))
    (key,) = re.findall(r"^[0-9a-f]{64}$", said, re.MULTILINE)
    for site in SITES:
        values = {"north": site, "bids/derivatives": str(scans / site / "bids")}
        theirs = next(w for w in command(SITE, "site-agent init ", {}) if len(w) == 64)
        values |= {"shared": str(walk.exchange(site)), theirs: key}
        said = walk.type(site, command(SITE, "site-agent init ", values))
        walk.told[site] = said.splitlines()[-1]
        walk.mail(site, CENTRE, f"{site}/{site}.join.yaml")
    requests = [f"{site}.join.yaml" for site in SITES]
    words = command(COORDINATOR, "consortium admit ", {})
    at = words.index("*/*.join.yaml")  # they came by mail, into one folder
    said = walk.type(CENTRE, [*words[:at], *requests, *words[at + 1 :]], answer="y\n" * 4)
    assert all(f"{site}: {told}" in said for site, told in walk.told.items()), said


def agree(walk: Walk, deadline: int | None, added: str = "") -> None:
    """Write and sign a study, with lines added to it, and four yeses whose agents go to work."""
    files = ("study.yaml", "study.yaml.sig", "centre/roster.yaml")
    signed = ("--keys", "centre", "--subjects", str(PERSONS), "--volumes", str(VOLUMES))
    values = {"ica": "group_ica", "1": "0", "8": str(EPSILON)}
    walk.type(CENTRE, command(COORDINATOR, "consortium new-study ", values, signed))
    if deadline is not None or added:
        study = walk.home(CENTRE) / files[0]
        text = study.read_text()
        assert text.count(": 600 ") == 2, text  # join and answer
        study.write_text(text.replace(": 600 ", f": {deadline or 600} ") + added)
        walk.type(CENTRE, command(COORDINATOR, "consortium sign ", {}))
    for site in SITES:
        walk.mail(CENTRE, site, *files)
        words = command(SITE, "site-agent approve ", {"north": site}, ("--yes", "--start"))
        log = walk.log(site).open("w")
        walk.agents[site] = walk.start(site, words, stdout=log, stderr=log)
        walk.typed.append(Typed(site, tuple(words), 0.0))
    if deadline is not None:  # too short for an impatient coordinator
        for site in SITES:
            wait_for(walk, site, "Approved: ")


def wait_for(walk: Walk, site: str, said: str) -> None:
    """Wait until a site's agent or command has said something, as over the telephone."""
    deadline = time.monotonic() + 900
    while said not in walk.log(site).read_text():
        assert time.monotonic() < deadline, f"{site} does not say {said!r}"
        assert walk.agents[site].poll() is None, walk.log(site).read_text()
        time.sleep(0.2)


def run(walk: Walk) -> str:
    """The run, begun as soon as the yeses are; and the agents' end."""
    values = {"shared": str(walk.exchange(CENTRE))}
    said = walk.type(CENTRE, command(COORDINATOR, "consortium run ", values))
    for site, agent in walk.agents.items():
        wait_for(walk, site, " has ended: ")
        agent.terminate()
        assert agent.wait(30) in (0, 130, 143), site
    return said


def check(walk: Walk) -> None:
    """Hold the four ledgers to what the one run has cost, and to nothing else."""
    report = json.loads((walk.home(CENTRE) / "out" / "privacy_report.json").read_text())
    cost = {site["name"]: site["mu_coalition"] for site in report["sites"]}
    delta = report["delta"]
    for site in SITES:
        log = walk.log(site).read_text()
        assert log.count(" has ended: ") == log.count(f"{RUN} has ended: complete") == 1, log
        words = command(SITE, "site-agent ledger -f", {"north": site}, ("--json",))
        lines = json.loads(walk.type(site, words))["lines"]
        assert {line["run"] for line in lines} == {RUN}
        charged = Counter((line["event"], line["round"]) for line in lines)
        assert set(charged.values()) == {1}, charged
        assert charged["void", 1] == 0, charged
        mu = math.hypot(*(line["mu"] for line in lines if line["event"] == "reserve"))
        assert math.isclose(mu, cost[site], rel_tol=1e-12), (site, mu, cost)
        epsilon = epsilon_of(mu, delta)
        assert EPSILON * (1 - 1e-6) < epsilon <= EPSILON, (site, epsilon)
        print(f"{site}: the ledger holds ε = {epsilon:.6f} at δ = {delta:g}, of {RUN} alone")


def walk_all(root: Path, software: Path | None, deadline: int | None) -> Walk:
    """Walk the whole way; returns what was typed."""
    with ExitStack() as undo:
        disk = SlowDisk(root / "disk.img", root / "scans")
        undo.callback(disk.remove)
        if software is None:
            software = root / "opt"
            install_both(software)
        undo.enter_context(users(root))
        size = make_scans(disk)
        print(f"{size / 1e6:.0f} MB of scans at each hospital, {size / PACE:.0f} s to read")
        walk = Walk(root, software)
        undo.callback(lambda: [agent.kill() for agent in walk.agents.values()])
        for site in SITES:
            user = pwd.getpwnam(PREFIX + site).pw_uid
            walk.slowed[site] = disk.reader(PREFIX + site, user, PACE)
        walk.began = time.monotonic()
        found(walk, disk.mount / "made")
        agree(walk, deadline)
        print(run(walk))
        walk.minutes, walk.commands = (time.monotonic() - walk.began) / 60, len(walk.typed)
        print(f"{walk.commands} commands, {walk.minutes:.1f} minutes")
        check(walk)
        return walk


def main() -> None:
    """Walk in a folder of one's choice, or in a fresh one."""
    parser = ArgumentParser("python -m tests.long.walk")
    parser.add_argument("folder", nargs="?", type=Path, help="empty; by default a temporary one")
    parser.add_argument("--software", type=Path, help="where the wheel is; else it is installed")
    parser.add_argument("--deadline", type=int, help="s for joining and answering, by default 600")
    asked = parser.parse_args()
    if reason := can_slow():
        sys.exit(f"The walk can't be walked here: {reason}.")
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="walk-") as own:
        root = asked.folder or Path(own)
        root.chmod(0o755)
        walk = walk_all(root.resolve(), asked.software, asked.deadline)
    for one in walk.typed:
        print(f"{one.who:12s} {one.seconds:6.1f} s  {' '.join(one.words)}")


if __name__ == "__main__":
    main()
