"""The centre's flow as its user starts it: a process with an embedded Prefect.

The sites' agents run in this process. One run is left alone; another is killed
in the middle and started again, and must end with the same releases.
"""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from consortium.base.work import work_folder
from consortium.coordinator.demo.prepare import DemoFolders
from consortium.report.privacy_report import read_privacy_report
from flows.embedded import DATABASE
from tests.support.local_consortium import STUDY, LocalConsortium, build, conduct
from tests.support.patience import PATIENCE


def _start(place: DemoFolders) -> subprocess.Popen[str]:
    files = place.files
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "consortium", "run", str(files.study)),
            *("--roster", str(files.roster), "--exchange", str(files.exchange)),
            *("--keys", str(files.keys), "--out", str(files.out)),
        ],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _attend(
    local: LocalConsortium, centre: subprocess.Popen[str], until: Path | None = None
) -> None:
    """Let the agents work until the centre ends, or until a file is there."""
    deadline = time.monotonic() + PATIENCE
    while centre.poll() is None and not (until is not None and until.exists()):
        assert time.monotonic() < deadline, "the centre hangs"
        local.pump()
        time.sleep(0.01)


def _servers(home: Path) -> list[int]:
    """Processes whose environment names this run's Prefect."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if f"PREFECT_HOME={home}".encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def _rounds(place: DemoFolders) -> list[bytes]:
    files = sorted((place.files.out / "transcript").glob("*.npy"))
    return [np.load(file).tobytes() for file in files]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[DemoFolders, DemoFolders]:
    root = tmp_path_factory.mktemp("flows")
    build(root / "killed", text=STUDY.replace("answer: 4", "answer: 100"))
    shutil.copytree(root / "killed", root / "whole")
    for file in (root / "whole").glob("hospitals/*/agent/site.yaml"):
        file.write_text(file.read_text().replace(str(root / "killed"), str(root / "whole")))
    return DemoFolders(root / "killed"), DemoFolders(root / "whole")


@pytest.mark.long
def test_a_killed_centre_goes_on_and_leaves_nothing_behind(
    places: tuple[DemoFolders, DemoFolders],
) -> None:
    killed, whole = places
    conduct(LocalConsortium(whole).centre())  # the unbroken run, in this process
    home = work_folder(killed.files.out.resolve()) / "prefect"
    local = LocalConsortium(killed)

    first = _start(killed)
    _attend(local, first, until=killed.files.out / "transcript" / "round-00001.json")
    assert first.poll() is None, first.communicate()[0]
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    _gone(home)

    kept = home.parent / "kept.db"
    for end in ("", "-wal"):  # they outlive the folder, which goes when the run is done
        os.link(home / f"{DATABASE}{end}", f"{kept}{end}")

    second = _start(killed)
    _attend(local, second)
    output, _ = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0, output
    assert "Traceback" not in output
    _gone(home)
    assert len(_rounds(killed)) == 3
    assert _rounds(killed) == _rounds(whole)
    _check_outputs(killed)
    assert not home.exists()
    _check_prefect(kept, killed)


def _gone(home: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while left := _servers(home):
        assert time.monotonic() < deadline, f"Prefect's processes {left} were left behind"
        time.sleep(0.2)


def _check_outputs(place: DemoFolders) -> None:
    out = place.files.out
    report = read_privacy_report(out / "privacy_report.json")
    assert [r.round for r in report.releases] == [1, 2, 3]
    assert report.guarantees.coalition.epsilon <= 8
    assert (out / "report.html").stat().st_size > 10_000
    assert list(out.glob("tpl-*/func/*_components.nii.gz"))


def _check_prefect(database: Path, place: DemoFolders) -> None:
    """The second run and its tasks are recorded whole; no array and no path is."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        states = dict(connection.execute("SELECT state_type, count(*) FROM flow_run GROUP BY 1"))
        assert states.get("COMPLETED") == 1, states
        tasks = [
            name
            for (name,) in connection.execute(
                "SELECT t.name FROM task_run t JOIN flow_run f ON t.flow_run_id = f.id"
                " WHERE f.state_type = 'COMPLETED' AND t.state_type = 'COMPLETED'"
            )
        ]
        assert sorted(t for t in tasks if t[:3] == "ica") == ["ica 2", "ica 3"]
        assert any(t.startswith("publish") for t in tasks)
        kept = [str(row) for row in connection.execute("SELECT parameters FROM flow_run")]
        assert all("small-0001" in text and str(place.root) not in text for text in kept)
        artifacts = list(connection.execute("SELECT key, data FROM artifact"))
    keys = {key for key, _ in artifacts}
    assert {"rounds-small", "privacy-small"} <= keys
    assert any("dp-accounting" in str(data) for key, data in artifacts if key == "privacy-small")
