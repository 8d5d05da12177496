"""A consortium on disk, its coordinator's desk, and a Prefect server."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from prefect.client.orchestration import get_client
from prefect.client.schemas.schedules import CronSchedule as PrefectCron
from rich.console import Console

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.coordinator.deploy import DueRuns, ScheduledStudy, deploy, new_schedule
from consortium.membership.consent import Consent, post_consent
from consortium.membership.keys import load_identity
from flows.deployment import NOT_OPENED
from tests.support.local_consortium import LocalConsortium
from tests.support.patience import PATIENCE
from tests.support.prefect_server import Server

TODAY = date(2026, 5, 1)
YEARLY, OFTEN = "0 0 1 1 *", "* * * * * */4"
"""Never while a test runs; every four seconds (a sixth field, which the help text keeps quiet)."""


def once(seconds: float = 4.0) -> str:
    """Return a schedule with one date, in so many seconds."""
    date = datetime.now(UTC) + timedelta(seconds=seconds)
    return f"{date.minute} {date.hour} {date.day} {date.month} * {date.second}"


@dataclass
class Office:
    """A consortium on disk, its coordinator's desk, and the server."""

    place: DemoFolders
    server: Server

    def __post_init__(self) -> None:
        self.local = LocalConsortium(self.place)
        self.exchange = self.place.files.open_exchange()
        self.today = TODAY
        clock, quiet = self.local.ticks.clock(), Console(quiet=True)
        self.desk = DueRuns(self.place.root / "home", lambda: self.today, clock, quiet)
        self.began = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f}"

    def record(self, cron: str = YEARLY) -> ScheduledStudy:
        return new_schedule(replace(self.place.files, url="https://results.example/rest/"), cron)

    def consent(self, runs: int, until: date | None = None) -> None:
        for name in self.local.study.sites:
            given = Consent(name, self.local.study.digest, runs, None, until)
            post_consent(self.exchange, load_identity(self.place.site(name)).key, "small", given)

    def serve(
        self,
        ends: int,
        *,
        cron: str = YEARLY,
        order: int = 0,
        told: str = "",
        on_demand: bool = True,
        foreign: str = "",
        again: timedelta = timedelta(),
        look: Callable[[list[tuple[str, str]]], object] = len,
    ) -> None:
        """Let the service work until ``ends`` runs of the schedule are over and one is reported."""
        deadline = time.monotonic() + PATIENCE
        orders = [order]

        def stop() -> bool:
            assert time.monotonic() < deadline, self.states()
            if orders:
                self._order(orders.pop(), foreign)
            time.sleep(0.05)
            states = self.states()
            look(states)
            return len(states) >= ends and told in str(states)

        deploy(self.record(cron), self.desk, stop, on_demand=on_demand, again=again)

    def _order(self, count: int, foreign: str) -> None:
        """Ask for runs, or for another schedule, as an operator does in Prefect's pages."""
        with get_client(sync_client=True) as client:
            deployment = client.read_deployment_by_name("scheduled-study/small")
            for _ in range(count):
                client.create_flow_run_from_deployment(deployment.id)
            if foreign:
                dates = [(PrefectCron(cron=foreign), True)]
                client.create_deployment_schedules(deployment.id, dates)

    def states(self) -> list[tuple[str, str]]:
        """Name and message of every run of the schedule of this office that is over."""
        rows = self.server.rows(
            "SELECT s.name, s.message FROM flow_run r JOIN flow_run_state s ON r.state_id = s.id"
            " JOIN flow f ON r.flow_id = f.id WHERE f.name = 'scheduled-study'"
            " AND r.state_type IN ('COMPLETED', 'FAILED', 'CANCELLED', 'CRASHED')"
            f" AND r.created > '{self.began}' ORDER BY s.timestamp"
        )
        return [(str(name), str(message)) for name, message in rows]

    def opened(self) -> list[tuple[str, str]]:
        """Return the runs that opened a study, since a busy machine misses dates of a schedule."""
        return [state for state in self.states() if state[0] != NOT_OPENED]

    def of_type(self, state: str) -> str:
        """Ask for all flow runs of this office in a state."""
        return f"SELECT id FROM flow_run WHERE state_type = '{state}' AND created > '{self.began}'"

    def runs(self) -> list[str]:
        return self.exchange.children("runs")
