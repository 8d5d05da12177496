"""The inbox as a process: on the loopback address only, next to an agent, killed at any time."""

import contextlib
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from consortium.base.lock import in_use, only_one
from consortium.coordinator.demo.prepare import DemoFolders
from consortium.membership.keys import load_identity
from site_agent.approval.approval import approvals
from site_agent.inbox.guard import Door, Guard
from site_agent.inbox.server import server_settings
from tests.support.command_line import refused
from tests.support.inbox_client import receive_study
from tests.support.membership_files import give_scans, papers
from tests.support.patience import PATIENCE


@pytest.fixture
def place(tmp_path: Path) -> DemoFolders:
    found, _ = papers(tmp_path)
    receive_study(found)
    return found


@contextlib.contextmanager
def _served(folder: Path, *words: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Start an inbox, and provide its process and the address that it prints."""
    command = [sys.executable, "-m", "site_agent", "serve", "-f", str(folder), *words]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        lines = iter(running.stdout.readline, "")
        yield running, next(line.split()[1] for line in lines if line.startswith("Open http"))
    finally:
        running.kill()
        running.communicate(timeout=PATIENCE)


def _visit(address: str) -> httpx.Client:
    client = httpx.Client(base_url=address.split("?")[0], timeout=PATIENCE)
    assert client.get(address).status_code == 200
    return client


def _listening(port: int) -> set[str]:
    """Return the addresses on which any process of this machine listens at a port."""
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            host, _, number = fields[1].partition(":")
            if fields[3] == "0A" and int(number, 16) == port:
                found.add(host)
    return found


def test_it_listens_on_the_loopback_address_only_and_logs_no_token(place: DemoFolders) -> None:
    with _served(place.site("east")) as (running, address):
        port = int(re.findall(r":(\d+)/", address)[0])
        assert _listening(port) == {"0100007F"}
        own = {each[4][0] for each in socket.getaddrinfo(socket.gethostname(), None)}
        for host in own - {"127.0.0.1", "::1"}:
            with pytest.raises(OSError), socket.create_connection((host, port), timeout=5):
                pass
        client = _visit(address)
        answer = client.get("")
        assert "Decisions" in answer.text
        assert "server" not in answer.headers
        running.send_signal(signal.SIGTERM)
        out, err = running.communicate(timeout=PATIENCE)
        assert running.returncode == 128 + signal.SIGTERM
        assert address.split("token=")[1] not in out + err
        assert err == "site-agent: stopped; the same command continues.\n"


def test_an_agent_and_an_inbox_outlive_each_other(place: DemoFolders) -> None:
    folder = place.site("east")
    give_scans(place)
    with _served(folder) as (running, address):
        client = _visit(address)
        assert "The agent is not running" in client.get("").text
        agent = subprocess.Popen(
            [sys.executable, "-m", "site_agent", "start", "-f", str(folder)],
            stderr=subprocess.DEVNULL,
        )
        try:
            until = time.monotonic() + PATIENCE
            while not in_use(folder):
                assert time.monotonic() < until
                time.sleep(0.05)
            assert "The agent is running" in client.get("").text
            study = re.findall(r"study/[0-9a-f]{16}", client.get("").text)[0]
            own = {"Origin": address.split("/", 3)[0] + "//" + address.split("/")[2]}
            token = re.findall(r'name="token" value="([^"]+)"', client.get(study).text)[0]
            started = client.post(f"{study}/check", data={"token": token}, headers=own)
            assert started.status_code == 303
            while not (shown := re.findall(r'name="shown" value="(\w+)"', client.get(study).text)):
                assert time.monotonic() < until
                time.sleep(0.1)
            agent.kill()
            agent.wait(PATIENCE)
            assert "The agent is not running" in client.get("").text
            fields = {"token": token, "shown": shown[0], "runs": "1"}
            done = client.post(f"{study}/approve", data=fields, headers=own)
            assert "Approved: small" in done.text
        finally:
            agent.kill()
            agent.wait(PATIENCE)
        running.kill()  # and leaves nothing that stops anybody
    assert len(approvals(folder, load_identity(folder))) == 1
    with only_one(folder, "agent"), _served(folder) as (_, address):
        assert "No study waits" in _visit(address).get("").text


def test_a_second_inbox_may_only_read(place: DemoFolders) -> None:
    folder = place.site("east")
    with _served(folder) as (_, address):
        said = refused("site-agent", "serve", "-f", folder)
        assert "is in use by another inbox" in said
        with _served(folder, "--read-only") as (_, other):
            assert "read-only" in _visit(other).get("").text
        assert "Decisions" in _visit(address).get("").text


def test_a_port_that_is_taken_or_a_folder_of_no_site_is_refused(
    place: DemoFolders, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused("site-agent", "serve", "-f", place.site("east"), "--port", port)
        assert "--port: the port must be free on 127.0.0.1" in said
    assert "site.yaml can't be read" in refused("site-agent", "serve", "-f", tmp_path / "none")


def test_the_server_believes_no_proxy_and_keeps_no_log_of_addresses() -> None:
    settings = server_settings(Guard(Guard(None, Door(1, print)), Door(1, print)))  # type: ignore[arg-type]
    assert not settings.proxy_headers
    assert not settings.access_log
