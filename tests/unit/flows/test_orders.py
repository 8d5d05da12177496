"""Orders of a Prefect server to do less: a cancelled run is given up, and a pause stays."""

import time
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import httpx
import pytest
from prefect import State
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.states import Cancelled, Cancelling, Running

from consortium.engine.clock import Clock
from flows import runs
from flows.deployment import DueRunOutcome, scheduled_study
from tests.support.hostile_prefect import hostile_prefect
from tests.support.office import Office
from tests.support.prefect_server import Server

CANCELLED = "The run was cancelled on the coordinator's Prefect."


class Killed(BaseException):
    """The service's end without a word."""


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_LOOK", 0.1)


def _in_round_two(office: Office, act: Callable[[], None], then: float) -> Clock:
    """The desk's clock; once, while the second round is awaited, something else happens instead."""
    clock, done = office.desk.clock, list[float]()
    record = office.place.files.out / "0001" / "transcript" / "round-00001.json"

    def pause(seconds: float) -> None:
        if not record.exists():
            clock.pause(seconds)
            return
        if not done:
            act()
            done.append(time.monotonic())
        if time.monotonic() - done[0] > then:
            clock.pause(seconds)
        time.sleep(0.02)

    return Clock(clock.now, pause)


def _of_flow(office: Office, flow: str) -> list[tuple[str, str]]:
    """Ids and states of this office's runs of a flow."""
    rows = office.server.rows(
        "SELECT r.id, r.state_type FROM flow_run r JOIN flow f ON r.flow_id = f.id"
        f" WHERE f.name = '{flow}' AND r.created > '{office.began}' ORDER BY r.created"
    )
    return [(str(run), str(state)) for run, state in rows]


def _tasks(office: Office, state: str) -> str:
    """Ask for this office's tasks in a state."""
    return f"SELECT id FROM task_run WHERE state_type = '{state}' AND created > '{office.began}'"


def _cancel(office: Office, flow: str) -> None:
    """As ``prefect flow-run cancel`` and the button do."""
    state: State[None] = Cancelling()
    (run,) = [run for run, known in _of_flow(office, flow) if known == "RUNNING"]
    with get_client(sync_client=True) as client:
        told = client.set_flow_run_state(UUID(run), state)
    assert told.status.value == "ACCEPT"


@pytest.mark.parametrize("flow", ["scheduled-study", "consortium-study"])
def test_a_cancelled_run_is_given_up(flow: str, office: Office) -> None:
    office.consent(runs=1)
    clock = _in_round_two(office, lambda: _cancel(office, flow), then=20.0)
    office.desk = replace(office.desk, clock=clock)
    office.serve(1, order=1, told=CANCELLED)
    assert office.opened() == [("Cancelled", CANCELLED)]
    assert [state for _, state in _of_flow(office, "consortium-study")] == ["CANCELLED"]
    assert not (office.place.files.out / "0001" / "report.html").exists()
    for _ in range(6):
        office.local.pump()
        office.local.ticks.now += 0.25  # the end is looked for now and then
    for name in office.local.study.sites:
        said = office.local.said(name)
        assert "small-0001 has ended: aborted" in said
        assert "round 2" not in said or "which sent nothing and is charged nothing" in said
        entries = office.local.agent(name).site.ledger.entries()
        assert {entry.charge.round for entry in entries if entry.event == "spend"} == {1}


def test_a_run_that_was_cancelled_while_its_service_was_away_is_given_up(office: Office) -> None:
    office.consent(runs=1)
    whole = office.desk

    def kill() -> None:
        raise Killed

    office.desk = replace(whole, clock=_in_round_two(office, kill, then=20.0))
    with pytest.raises(Killed):
        office.serve(1, order=1)
    with get_client(sync_client=True) as client:  # a process that is killed writes no last word
        for flow in ("scheduled-study", "consortium-study"):
            running: State[None] = Running()
            (run,) = [run for run, known in _of_flow(office, flow) if known == "CRASHED"]
            client.set_flow_run_state(UUID(run), running, force=True)
        ((task,),) = office.server.once_there(_tasks(office, "CRASHED"))
        client.set_task_run_state(UUID(str(task)), Running(), force=True)
    _cancel(office, "scheduled-study")
    office.desk = whole
    office.serve(2, told=CANCELLED)
    assert office.opened()[-1] == ("Cancelled", CANCELLED)
    known = [*_of_flow(office, "scheduled-study"), *_of_flow(office, "consortium-study")]
    assert office.server.once_gone(_tasks(office, "RUNNING")) == []
    assert {state for _, state in known} == {"CANCELLED", "CRASHED", "SCHEDULED"}
    assert not (office.place.files.out / "0001" / "report.html").exists()


def test_what_a_server_says_of_other_runs_cancels_nothing(server: Server) -> None:
    with temporary_settings({PREFECT_API_URL: server.url}), get_client(sync_client=True) as client:
        ours, other = (
            client.create_flow_run(scheduled_study(_never), state=state)
            for state in (Running(), Cancelled())
        )
        assert runs.cancelled(client, [other.id])
        lie = httpx.get(f"{server.url}/flow_runs/{other.id}").json()
    with (
        hostile_prefect(server, lambda path, told: [lie] if "filter" in path else told) as liar,
        temporary_settings({PREFECT_API_URL: liar.url}),
        get_client(sync_client=True) as client,
    ):
        assert not runs.cancelled(client, [ours.id])
        assert liar.lies


def _never(_study: str, _may_open: bool) -> DueRunOutcome:
    raise AssertionError


@pytest.mark.parametrize("how", ["the deployment", "its schedule", "no schedule"])
def test_a_pause_outlives_the_service(how: str, office: Office) -> None:
    office.serve(0)
    asked = (
        "SELECT d.paused OR NOT s.active FROM deployment d JOIN deployment_schedule s"
        " ON s.deployment_id = d.id WHERE d.name = 'small'"
    )
    with get_client(sync_client=True) as client:
        known = client.read_deployment_by_name("scheduled-study/small")
        one = known.schedules[0].id
        try:
            if how == "the deployment":
                client.pause_deployment(known.id)
            elif how == "no schedule":
                client.delete_deployment_schedule(known.id, one)
            else:
                client.update_deployment_schedule(known.id, one, active=False)
            for _ in range(2):
                office.serve(0)
                assert office.server.rows(asked) == [(1,)]
        finally:
            client.delete_deployment(known.id)
