"""What the guides have people give to their own Prefect, as it is printed there."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.public import emit
from tests.support.forgery import settle
from tests.support.patience import PATIENCE
from tests.support.prefect_server import Server

GUIDES = Path(__file__).parents[3] / "docs" / "guides"


def _printed(guide: str, holds: str) -> str:
    """A block of Python of a guide."""
    blocks = re.findall("```python\n(.*?)```", (GUIDES / guide).read_text(encoding="utf-8"), re.S)
    (found,) = [block for block in blocks if holds in block]
    return str(found)


def _until(true: Callable[[], object], seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.2)


@contextmanager
def _chat() -> Iterator[tuple[str, list[bytes]]]:
    """A place that takes messages."""
    heard: list[bytes] = []

    class Listener(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Listener) as place:
        threading.Thread(target=place.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{place.server_port}/hook", heard
        place.shutdown()


def test_the_guides_automation_sends_a_message(server: Server) -> None:
    program = _printed("schedule.md", "Automation(")
    events = ("site.awaited", "approval.awaited")
    with _chat() as (url, heard), temporary_settings({PREFECT_API_URL: server.url}):
        program = program.replace("https://chat.example.org/hook", url)
        made = [sys.executable, "-c", program]
        subprocess.run(made, env=server.environment(), check=True, capture_output=True)

        def told() -> bool:
            for event in events:
                emit(event, "automated", {"sites": ["north", "west"]})
            time.sleep(1)
            return len({*heard}) >= len(events)

        _until(told)
    said = {json.loads(each)["text"] for each in heard}
    assert said == {f"{event}: north, west" for event in events}


def test_the_guides_flow_ends_when_its_agent_is_killed(tmp_path: Path, server: Server) -> None:
    folder = settle(tmp_path / "place").site("north")
    script = tmp_path / "north_flow.py"
    script.write_text(_printed("site-operation.md", "take_part").replace("/srv/north", str(folder)))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    serving = subprocess.Popen(
        [sys.executable, str(script)],
        env=server.environment(PATH=path, PREFECT_RUNNER_POLL_FREQUENCY="1"),
        cwd=tmp_path,
    )
    try:
        with temporary_settings({PREFECT_API_URL: server.url}):
            _until(lambda: server.rows("SELECT id FROM deployment WHERE name = 'north'"))
            with get_client(sync_client=True) as client:
                deployment = client.read_deployment_by_name("take-part/north")
                run = client.create_flow_run_from_deployment(deployment.id).id
                _until(lambda: _agents(folder))
                os.kill(_agents(folder)[0], signal.SIGKILL)
                _until(lambda: client.read_flow_run(run).state.is_final())
                assert client.read_flow_run(run).state.is_failed()
                client.delete_deployment(deployment.id)
    finally:
        serving.terminate()
        serving.wait(30)


def _agents(folder: Path) -> list[int]:
    """Agents of a site that are at work, by the lock that they hold on its folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"--once" in words and str(folder).encode() in words:
                found.append(int(entry.name))
    return found
