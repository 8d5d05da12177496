"""A Prefect API that lies to sites and coordinator: nothing foreign runs, nothing is told to it.

Two of the tests show that the lies are good ones: Prefect's own runner and engine fall for them.
"""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from prefect import Flow, flow
from prefect.client.orchestration import get_client
from prefect.runner import Runner
from prefect.settings import PREFECT_API_URL, temporary_settings
from rich.console import Console

from consortium.coordinator.demo.prepare import EXCHANGE, DemoFolders
from consortium.coordinator.deploy import DueRuns, deploy, new_schedule
from consortium.engine.clock import Clock
from consortium.errors import ConfigurationError, SiteError
from consortium.membership.consent import Consent, post_consent
from consortium.membership.keys import load_identity
from flows.site import agent_as_flow
from site_agent.config import SiteConfig
from tests.support.forgery import settle
from tests.support.hostile_prefect import (
    Liar,
    Tamper,
    everywhere,
    finished_with,
    hostile_prefect,
    plant_result,
)
from tests.support.local_consortium import SITES, STUDY, LocalConsortium, build, conduct
from tests.support.patience import PATIENCE
from tests.support.prefect_server import Server, free_port

SHELL = "prefect.deployments.steps.run_shell_script"


@dataclass
class Trap:
    """Foreign code, and the file that is there once it has run."""

    folder: Path

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.canary = self.folder / "canary"
        self.module = self.folder / "foreign.py"
        self.module.write_text(
            f"open({str(self.canary)!r}, 'w').close()\nimport prefect\n"
            "@prefect.flow\ndef foreign(**_): pass\n"
        )

    @property
    def pull_steps(self) -> list[dict[str, Any]]:
        return [{SHELL: {"script": f"touch {self.canary}"}}]

    def deployed(self) -> str:
        """Id of a deployment of the foreign code on the real server."""
        with get_client(sync_client=True) as client:
            made = client.create_deployment(
                client.create_flow_from_name("foreign"),
                f"foreign-{self.folder.parent.name}",
                entrypoint=f"{self.module}:foreign",
                path=str(self.folder),
                pull_steps=self.pull_steps,
            )
        return str(made)

    def lies(self, deployment: str) -> Tamper:
        """Name the foreign code, its deployment and other parameters wherever there is room."""
        said: dict[str, Any] = {
            "deployment_id": deployment,
            "entrypoint": f"{self.module}:foreign",
            "path": str(self.folder),
            "pull_steps": self.pull_steps,
            "parameters": {"study": "../../x", "out": str(self.folder), "site": "../../x"},
            "job_variables": {"command": f"touch {self.canary}", "env": {"HOME": "/x"}},
            "infra_overrides": {"command": f"touch {self.canary}"},
            "name": "foreign",
        }

        def change(answer: dict[str, Any]) -> None:
            state = "state_details" in answer  # its name is checked by Prefect's own models
            answer.update({k: v for k, v in said.items() if k in answer and not state})

        return everywhere(change)


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path / "trap")


@pytest.fixture(autouse=True)
def url(server: Server) -> Iterator[None]:
    with temporary_settings({PREFECT_API_URL: server.url}):
        yield


def harmless() -> Flow[[], None]:
    """A flow that would do nothing."""

    @flow(name="harmless")
    def nothing() -> None:
        return None

    return nothing


def test_prefects_own_runner_falls_for_another_deployments_id(server: Server, trap: Trap) -> None:
    foreign, before = trap.deployed(), signal.getsignal(signal.SIGTERM)
    with (
        hostile_prefect(server, trap.lies(foreign)) as liar,
        temporary_settings({PREFECT_API_URL: liar.url}),
    ):
        runner = Runner(name="harmless", pause_on_shutdown=False)
        ours = asyncio.run(_served(runner))
        with temporary_settings({PREFECT_API_URL: server.url}), get_client(sync_client=True) as c:
            c.create_flow_run_from_deployment(ours)
        asyncio.run(runner.start(run_once=True))
    signal.signal(signal.SIGTERM, before)
    assert trap.canary.exists()


async def _served(runner: Runner) -> Any:
    return await runner.aadd_flow(harmless(), name="harmless")


def test_prefects_own_engine_falls_for_a_planted_result(server: Server, trap: Trap) -> None:
    lie = finished_with(plant_result(trap.folder / "result", trap.canary))
    with (
        hostile_prefect(server, lie) as liar,
        temporary_settings({PREFECT_API_URL: liar.url}),
    ):
        harmless()()
    assert trap.canary.exists()


def endless(path: str, answer: Any) -> Any:
    """Make whoever asks to set a state wait for eleven days."""
    wait = {"type": "wait_details", "delay_seconds": 1_000_000, "reason": "later"}
    lie = {"state": None, "status": "WAIT", "details": wait}
    return lie if path.endswith("/set_state") else answer


def nonsense(path: str, answer: Any) -> Any:
    """Answer what nobody asked."""
    return ["nonsense", {"id": "../../x"}]


@pytest.mark.parametrize("lie", [endless, nonsense, None])
def test_a_sites_work_neither_waits_nor_fails(lie: Tamper | None, server: Server) -> None:
    with ExitStack() as stack:
        url = f"http://127.0.0.1:{free_port()}/api"
        if lie is not None:
            url = stack.enter_context(hostile_prefect(server, lie)).url
        stack.enter_context(temporary_settings({PREFECT_API_URL: url}))
        start, done = time.monotonic(), []
        agent_as_flow("north", lambda: done.append(True))
    assert done
    assert time.monotonic() - start < PATIENCE  # an endless answer is not read to its end


def test_what_ends_a_sites_work_is_raised_and_not_told(server: Server) -> None:
    def work() -> None:
        raise SiteError("north: secret-path")

    with (
        hostile_prefect(server, lambda _, answer: answer) as liar,
        temporary_settings({PREFECT_API_URL: liar.url}),
        pytest.raises(SiteError, match="secret-path"),
    ):
        agent_as_flow("north", work)
    assert b"secret-path" not in liar.heard()
    runs = server.rows("SELECT state_type FROM flow_run WHERE name = 'north'")
    assert runs[-1] == ("FAILED",)


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_the_run_of_an_agent_that_is_stopped_ends(
    by: signal.Signals, tmp_path: Path, server: Server
) -> None:
    place = settle(tmp_path / "place")
    agent = _agent(place, "west", server, server.url)
    asked = "SELECT state_type FROM flow_run WHERE name = 'west' ORDER BY created DESC LIMIT 1"
    _until(lambda: server.rows(asked) == [("RUNNING",)])
    agent.send_signal(by)
    agent.wait(15)
    _until(lambda: server.rows(asked) == [("CRASHED",)])  # a signal ends it on the spot


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_site_that_names_no_prefect_is_told_so() -> None:
    with (
        temporary_settings(restore_defaults={PREFECT_API_URL}),
        pytest.raises(ConfigurationError, match="PREFECT_API_URL"),
    ):
        agent_as_flow("north", lambda: None)


def test_sites_do_their_study_whatever_their_prefect_says(
    tmp_path: Path, server: Server, trap: Trap
) -> None:
    text = STUDY.replace("answer: 4", "answer: 4000").replace("join: 4", "join: 4000")
    place = build(tmp_path / "place", text=text)
    lies = {
        "north": trap.lies(trap.deployed()),
        "east": finished_with(plant_result(trap.folder / "result", trap.canary)),
    }
    before = _files(tmp_path, place)
    with ExitStack() as stack:
        liars = {n: stack.enter_context(hostile_prefect(server, lie)) for n, lie in lies.items()}
        agents = {name: _agent(place, name, server, liar.url) for name, liar in liars.items()}
        for agent in agents.values():
            stack.callback(agent.kill)
        local, deadline = LocalConsortium(place, absent=set(lies)), time.monotonic() + PATIENCE
        local.ticks.others = lambda: (local.pump(), _rest(agents, deadline))
        result = conduct(local.centre())
        said = {name: agent.communicate(timeout=PATIENCE)[0] for name, agent in agents.items()}
    assert result
    for name, agent in agents.items():
        assert agent.returncode == 0, said[name]
        assert "Traceback" not in said[name]
        assert liars[name].lies, f"{name}'s Prefect was not asked"
        _check_nothing_was_told(liars[name], place, name)
    assert not trap.canary.exists()
    assert _files(tmp_path, place) == before


def _agent(place: DemoFolders, name: str, server: Server, url: str) -> subprocess.Popen[str]:
    folder = place.site(name)
    SiteConfig.load(folder).model_copy(update={"prefect": True}).save(folder)
    return subprocess.Popen(
        [*(sys.executable, "-m", "site_agent", "start", "--once"), "--folder", str(folder)],
        env=server.environment(url, PREFECT_HOME=str(folder / "prefect")),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _rest(agents: dict[str, subprocess.Popen[str]], deadline: float) -> None:
    for name, agent in agents.items():
        assert not agent.poll(), f"{name}: {agent.communicate()[0]}"
    assert time.monotonic() < deadline, "the study waits for a site that does nothing"
    time.sleep(0.05)


def _files(root: Path, place: DemoFolders) -> set[Path]:
    """Every file but those of the sites' own folders, the exchange and the centre."""
    own = [place.root / EXCHANGE, place.files.out, *map(place.site, SITES)]
    found = (path for path in root.rglob("*") if path.is_file())
    return {path for path in found if not any(path.is_relative_to(folder) for folder in own)}


def _check_nothing_was_told(liar: Liar, place: DemoFolders, name: str) -> None:
    heard = liar.heard()
    assert name.encode() in heard
    config = SiteConfig.load(place.site(name))
    subjects = {path.name for path in config.dataset.glob("**/sub-*")}
    assert subjects
    secrets = {str(place.root), "small", "python", load_identity(place.site(name)).public.hex()}
    for secret in secrets | subjects | {"epsilon", "dataset", "exchange", "Error"}:
        assert secret.encode() not in heard, secret


def _office(place: DemoFolders) -> DueRuns:
    local, exchange = LocalConsortium(place), place.files.open_exchange()
    for name in local.study.sites:
        consent = Consent(name, local.study.digest, 1)
        post_consent(exchange, load_identity(place.site(name)).key, "small", consent)
    today = lambda: date(2026, 5, 1)  # noqa: E731
    return DueRuns(place.root / "home", today, local.ticks.clock(), Console(quiet=True))


@pytest.mark.parametrize(
    "lie",
    [
        "foreign code",
        "planted in its flow",
        pytest.param("planted in the study's", marks=pytest.mark.long),
    ],
)
def test_the_coordinators_service_runs_its_own_study_and_nothing_else(
    lie: str, tmp_path: Path, server: Server, trap: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = build(tmp_path / "place")
    desk, out = _office(place), place.files.out
    planted = plant_result(trap.folder / "result", trap.canary)
    honest = [100]  # while the service starts
    tamper = finished_with(planted, honest)
    if lie == "foreign code":
        tamper = trap.lies(trap.deployed())
    report, before, looks = out / "0001" / "report.html", _files(tmp_path, place), 0

    def stop() -> bool:
        nonlocal looks
        looks += 1
        if looks == 1:
            _order(server)
            honest[0] = 1 if lie == "planted in its flow" else 2  # it takes the run, and starts it
        time.sleep(0.05)
        return looks > 40 or report.exists()

    with hostile_prefect(server, tamper) as liar, temporary_settings({PREFECT_API_URL: liar.url}):
        monkeypatch.setenv("PREFECT_API_URL", liar.url)
        deploy(new_schedule(place.files, "0 0 1 1 *"), desk, stop, on_demand=True)
        assert liar.lies
    assert not trap.canary.exists()
    record = desk.home / "deployments" / "small.yaml"
    assert _files(tmp_path, place) - before == {record}
    assert report.exists() == (lie == "foreign code")
    secrets = [str(place.root), *(p.name for p in place.root.glob("hospitals/*/bids/**/sub-*"))]
    assert not [secret for secret in secrets if secret.encode() in liar.heard()]


def _order(server: Server) -> None:
    with temporary_settings({PREFECT_API_URL: server.url}), get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name("scheduled-study/small")
        client.create_flow_run_from_deployment(deployment.id)


@pytest.mark.parametrize("name", ["../../x", "other", "small.yaml", ""])
def test_a_study_that_is_not_in_the_records_is_not_run(name: str, tmp_path: Path) -> None:
    due = DueRuns(tmp_path, lambda: date(2026, 5, 1), Clock(), Console(quiet=True))
    outcome = due.run_due(name)
    assert outcome.state().is_failed()
    assert json.dumps(outcome.message).startswith('"configuration: ')
    assert str(tmp_path) not in outcome.message
