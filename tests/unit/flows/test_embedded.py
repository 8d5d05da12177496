"""One embedded server for runs that follow each other, and an empty database for the next."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from flows.embedded import DATABASE, keep_database, kept_database, take_database


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "caches"


def home_of(folder: Path, revision: str = "") -> Path:
    folder.mkdir()
    if revision:
        with closing(sqlite3.connect(folder / DATABASE)) as made:
            made.execute("CREATE TABLE alembic_version (version_num TEXT)")
            made.execute("INSERT INTO alembic_version VALUES (?)", (revision,))
            made.commit()
    return folder


def revision_of(home: Path) -> str:
    with closing(sqlite3.connect(home / DATABASE)) as made:
        return str(made.execute("SELECT version_num FROM alembic_version").fetchone()[0])


def test_a_server_takes_what_an_earlier_one_kept(tmp_path: Path) -> None:
    second = home_of(tmp_path / "second")
    assert not take_database(second)
    assert not (second / DATABASE).exists()
    keep_database(home_of(tmp_path / "first", "abc"))
    assert take_database(second)
    assert revision_of(second) == "abc"
    assert [path.name for path in kept_database().parent.iterdir()] == [kept_database().name]


def test_a_run_that_goes_on_keeps_its_own(tmp_path: Path) -> None:
    keep_database(home_of(tmp_path / "first", "abc"))
    broken = home_of(tmp_path / "broken", "its own")
    assert take_database(broken)
    assert revision_of(broken) == "its own"


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + bytes(4000)])
def test_one_that_cannot_be_read_is_not_taken_and_is_replaced(
    content: bytes, tmp_path: Path
) -> None:
    kept_database().parent.mkdir(parents=True)
    kept_database().write_bytes(content)
    home = home_of(tmp_path / "home")
    assert not take_database(home)
    assert not (home / DATABASE).exists()
    keep_database(home_of(tmp_path / "other", "abc"))
    assert take_database(home)


def test_no_place_for_it_is_no_error(caches: Path, tmp_path: Path) -> None:
    caches.write_text("a file where a folder should be")
    keep_database(home_of(tmp_path / "home", "abc"))
    assert not take_database(home_of(tmp_path / "other"))


TWO_RUNS = """
import sys
from pathlib import Path
from flows.embedded import embedded_prefect

with embedded_prefect(Path("around")):
    from prefect import flow
    from prefect.client.orchestration import get_client
    from prefect.server.api.server import SubprocessASGIServer

    server, names = SubprocessASGIServer().server_process, []
    for name in ("one", "two"):
        with embedded_prefect(Path(name)):
            flow(name=name, persist_result=False)(lambda: None)()
        assert not Path(name).exists()
        assert SubprocessASGIServer().server_process is server and server.poll() is None
    with get_client(sync_client=True) as client:
        print(sorted(run.name for run in client.read_flows()))
assert server.poll() is not None
"""


def test_the_server_around_several_runs_serves_them_all(tmp_path: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT")}
    done = subprocess.run(
        [sys.executable, "-c", TWO_RUNS],
        cwd=tmp_path,
        env=clean | {"PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "['one', 'two']" in done.stdout
