"""Runs that follow each other share one embedded server."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
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
