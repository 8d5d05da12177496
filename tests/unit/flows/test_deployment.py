"""Scheduled studies on a real Prefect server; the sites' agents work while the service pauses."""

import json
import re
import shutil
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import pytest
from prefect import State
from prefect.client.orchestration import get_client
from prefect.exceptions import ObjectNotFound
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.states import Pending, Running, Scheduled

from consortium.base.lock import only_one
from consortium.coordinator.deploy import deploy, not_covered
from consortium.coordinator.run_folder import claim_run
from consortium.engine.clock import Clock
from consortium.errors import ConfigurationError, OutputError
from consortium.membership.consent import withdraw
from consortium.membership.keys import load_identity
from flows import polling
from flows.deployment import scheduled_study
from tests.support.office import OFTEN, TODAY, YEARLY, Office, once
from tests.support.prefect_server import Server, free_port


class Killed(BaseException):
    """The service's end without a word."""


def test_a_schedule_opens_a_run_while_consents_cover_it_and_no_further(office: Office) -> None:
    office.consent(runs=1)
    assert not not_covered(office.record(), TODAY)
    office.serve(2, cron=OFTEN, told="no run left", on_demand=False)
    assert office.opened() == [("Completed", "Run 0001 is complete.")]
    (why,) = {why for _, why in office.states() if "no run left" in why}
    assert why.startswith("not opened: north has no run left of the 1 that it allowed")
    assert all(f"{site} has no run left" in why for site in office.local.study.sites)
    assert (why,) in office.server.once_there(f"SELECT message FROM log WHERE message = '{why}'")

    office.consent(runs=9, until=date(2026, 4, 30))
    ended = "east gave an approval that ended on 2026-04-30"
    office.serve(len(office.states()) + 1, order=1, told=ended)
    assert len(office.opened()) == 1
    assert len(not_covered(office.record(), office.today)) == 4
    office.today = date(2026, 4, 30)
    assert not not_covered(office.record(), office.today)

    assert office.runs() == ["small-0001"]
    out = office.place.files.out
    assert [path.name for path in sorted(out.glob("[!.]*")) if path.is_dir()] == ["0001"]
    assert list((out / "0001").glob("tpl-*/func/*_components.nii.gz"))
    _check_what_the_server_knows(office)


def _check_what_the_server_knows(office: Office) -> None:
    server = office.server
    ((entrypoint, path, pull_steps, parameters),) = server.rows(
        "SELECT entrypoint, path, pull_steps, parameters FROM deployment WHERE name = 'small'"
    )
    assert (entrypoint, path, pull_steps) == (None, None, "[]")
    shown = json.loads(str(parameters))
    assert (shown["study"], shown["algorithm"], shown["epsilon"]) == ("small", "ica", "8")
    ((description, tags, status),) = server.rows(
        "SELECT description, tags, status FROM deployment WHERE name = 'small'"
    )
    assert "- unit: subject" in str(description)
    assert json.loads(str(tags)) == ["consortium", "ica"]
    assert status == "READY"
    awaited = [
        *("consortium.round.opened", "consortium.study.finished"),
        *("consortium.budget.low", "consortium.approval.awaited"),
    ]
    events = server.events(*awaited, since=office.began)
    assert set(awaited) <= events.keys()
    assert json.loads(events[awaited[0]])["round"] == 3
    assert json.loads(events[awaited[1]])["complete"] is True
    assert "north has no run left" in events[awaited[2]]
    for name in awaited[2:]:
        assert json.loads(events[name])["sites"] == list(office.local.study.sites)
    assert str(office.place.root) not in str(events)
    lines = [str(line) for (line,) in server.rows("SELECT message FROM log")]
    assert "round 2 (ica) is open" in lines
    assert "the result is published" in lines
    assert YEARLY in str(server.rows("SELECT schedule FROM deployment_schedule"))
    _check_how_runs_are_joined(server)
    kept = server.written_since(office.began)
    assert "small-0001" in kept
    assert "privacy-small" in kept
    subjects = {path.name for path in office.place.root.glob("hospitals/*/bids/**/sub-*")}
    assert subjects
    for secret in (str(office.place.root), str(Path(__file__).parents[3]), "Traceback", *subjects):
        assert secret not in kept, secret


def _check_how_runs_are_joined(server: Server) -> None:
    """The schedule's run, the study's in it, and the rounds one after the other."""
    runs = server.rows(
        "SELECT f.name, r.id, r.parent_task_run_id, r.tags FROM flow_run r JOIN flow f"
        " ON r.flow_id = f.id WHERE r.name = 'small-0001' ORDER BY f.name"
    )
    assert [flow for flow, *_ in runs] == ["consortium-study", "scheduled-study"]
    (_, study, parent, tags), (_, above, _, _) = runs
    assert parent, "the study's flow is no subflow of the schedule's"
    assert set(json.loads(str(tags))) == {"consortium", "ica"}
    tasks = server.rows(
        f"SELECT id, name, task_inputs FROM task_run WHERE flow_run_id = '{study}'"
        " ORDER BY expected_start_time"
    )
    names = [re.sub("-[0-9a-f]{3}$", "", str(name)) for _, name, _ in tasks]
    assert names == ["open", "pca 1", "ica 2", "ica 3", "finish", "publish"]
    for before, after in pairwise(tasks):
        assert str(UUID(str(before[0]))) in str(after[2]), f"{after[1]} follows nothing"
    shown = dict(server.rows("SELECT key, data FROM artifact WHERE key LIKE '%small'"))
    assert f"/runs/flow-run/{UUID(str(study))}" in str(shown["run-small"])
    ((run,),) = server.rows("SELECT flow_run_id FROM artifact WHERE key = 'run-small'")
    assert run == above
    assert "map-small" not in shown, "no map was found in this study"
    assert "https://results.example/rest/0001/report.html" in str(shown["report-small"])


def test_a_run_that_nobody_scheduled_opens_no_study(office: Office) -> None:
    office.consent(runs=3)
    office.serve(1, order=1, told="no date of the schedule belongs to this run", on_demand=False)
    assert office.opened() == []
    assert office.runs() == []
    # Nor do dates that somebody gave to the deployment on the server.
    office.serve(2, foreign=OFTEN, on_demand=False)
    assert office.opened() == []
    assert office.runs() == []


def test_an_unfinished_run_is_taken_up_first_and_a_double_date_opens_one(office: Office) -> None:
    office.consent(runs=1)
    out = _killed_after_a_round(office)
    assert not (out / "report.html").exists()
    _as_if_killed(office)
    for site in office.local.study.sites:
        withdraw(
            office.exchange, load_identity(office.place.site(site)).key, site, office.local.study
        )

    office.serve(2, told="is complete")
    assert [name for name, _ in office.opened()] == ["Crashed", "Completed"]
    assert office.server.rows(office.of_type("RUNNING")) == []
    assert (out / "report.html").exists()
    assert len(list((out / "transcript").glob("round-*.npy"))) == 3

    office.serve(4, order=2, told="withdrawn")
    assert len(office.opened()) == 2
    assert "a later date" in str(office.states())
    assert office.runs() == ["small-0001"]


def _killed_after_a_round(office: Office) -> Path:
    """Kill the service after the first round of its first run, and return the run's folder."""
    whole, out = office.desk, office.place.files.out / "0001"

    def pause(seconds: float) -> None:
        if (out / "transcript" / "round-00001.json").exists():
            raise Killed
        whole.clock.pause(seconds)

    office.desk = replace(whole, clock=Clock(whole.clock.now, pause))
    with pytest.raises(Killed):
        office.serve(1, order=1)
    office.desk = whole
    return out


def _as_if_killed(office: Office) -> None:
    """Put the run back to running: a process that is killed writes no last word."""
    with get_client(sync_client=True) as client:
        state: State[None] = Running()
        crashed = office.server.rows(office.of_type("CRASHED"))
        assert len(crashed) == 2, "the schedule's flow and the study's in it"
        for (run,) in crashed:
            client.set_flow_run_state(str(run), state, force=True)
    assert office.opened() == []


def test_a_second_service_of_a_study_is_kept_out(office: Office) -> None:
    with only_one(office.place.files.out), pytest.raises(OutputError, match="in use"):
        office.serve(1)


def test_a_due_run_is_taken_once(office: Office) -> None:
    with get_client(sync_client=True) as client:
        flow = scheduled_study(office.desk.run_due)
        run = client.create_flow_run(flow, state=Scheduled())
        taken = [client.set_flow_run_state(run.id, Pending()).status.value for _ in range(2)]
    assert taken == ["ACCEPT", "ABORT"]


def test_without_a_server_there_is_one_sentence(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = f"http://127.0.0.1:{free_port()}/api"
    monkeypatch.setenv("PREFECT_API_URL", away)
    with (
        temporary_settings({PREFECT_API_URL: away}),
        pytest.raises(ConfigurationError, match="can't be used"),
    ):
        office.serve(1)
    monkeypatch.delenv("PREFECT_API_URL")
    with pytest.raises(ConfigurationError, match="PREFECT_API_URL"):
        office.serve(1)


@pytest.mark.parametrize("paused", [False, True])
def test_a_deployment_that_the_server_lost_is_made_again(paused: bool, office: Office) -> None:
    looks: list[int] = []
    lost: list[UUID] = []

    def stop() -> bool:
        looks.append(0)
        assert len(looks) < 50
        with get_client(sync_client=True) as client, suppress(ObjectNotFound):
            known = client.read_deployment_by_name("scheduled-study/small")
            if len(looks) == 2 and paused:
                client.pause_deployment(known.id)
            if len(looks) == 4:
                lost.append(known.id)
                client.delete_deployment(known.id)
            elif lost and known.id not in lost:
                assert known.paused is paused
                client.delete_deployment(known.id)
                return True
        return False

    deploy(office.record(), office.desk, stop)
    assert len(looks) == 5


def test_a_date_without_enough_sites_is_tried_again_and_opens_one_run(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "_AGAIN", timedelta(seconds=2))
    office.consent(runs=1)
    office.local.absent = {"south"}

    def come(states: list[tuple[str, str]]) -> None:
        if len(states) == 2:
            office.local.absent = set()

    office.serve(3, cron=once(), on_demand=False, again=timedelta(minutes=5), look=come)
    names = [name for name, _ in office.opened()]
    assert names == ["Failed", "Failed", "Completed"]
    assert office.runs() == ["small-0001", "small-0002", "small-0003"]
    out = office.place.files.out
    assert [path.name for path in sorted(out.glob("[0-9]*"))] == ["0001"]
    assert "absent: Too few sites were ready" in office.opened()[0][1]
    for name in office.local.study.sites:
        entries = office.local.agent(name).site.ledger.entries()
        runs = {entry.charge.run for entry in entries if entry.event == "spend"}
        assert runs == {"small-0003"}


def test_a_date_is_tried_again_only_for_the_stated_time(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "_AGAIN", timedelta(seconds=2))
    office.consent(runs=1)
    office.local.absent = {"south"}
    office.serve(1, cron=once(), on_demand=False)
    office.serve(2, order=1, on_demand=False, told="no date of the schedule")
    assert [name for name, _ in office.opened()] == ["Failed"]


def test_a_service_that_lost_its_output_opens_no_run_beside_the_open_one(office: Office) -> None:
    office.consent(runs=2)
    out = _killed_after_a_round(office)
    shutil.rmtree(office.place.files.out)
    office.serve(2, order=1, told="is open on the exchange")
    assert office.runs() == ["small-0001"]
    assert office.opened()[1:] == []
    assert str(office.place.root) not in str(office.states())
    keys = {"centre": load_identity(office.place.files.keys).public}
    claim_run(out, office.local.study, office.exchange, keys, "small-0001")
    office.serve(3, order=1, told="is complete")
    assert office.runs() == ["small-0001"]
