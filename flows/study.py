"""The centre's flow: open, one task for each round, finish, publish.

Prefect receives a study's name, its run, public progress and the privacy report. The centre's
objects belong to the flow's own object and are never parameters, so no array, path or key is
recorded.

The ids of a study's flow runs on Prefect are kept on disk for a start after a kill.
"""

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect import State, flow, tags, task
from prefect.artifacts import (
    create_image_artifact,
    create_link_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    update_progress_artifact,
)
from prefect.cache_policies import NO_CACHE
from prefect.client.orchestration import get_client
from prefect.context import FlowRunContext, TagsContext
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY
from prefect.states import Cancelled, Failed

from consortium.algorithms.base import Result
from consortium.base.atomic import DAMAGED, write_bytes
from consortium.base.stopping import take_signals
from consortium.engine.centre import Centre
from consortium.engine.clock import Cancellation, Waiting
from consortium.engine.session import Session
from consortium.errors import (
    ConfigurationError,
    ConsortiumError,
    ExchangeError,
    OutputError,
    RunCancelledError,
)
from consortium.study.plan import Plan
from flows.outputs import Outputs, PublishedTexts
from flows.public import emit, join_runs, without_logs
from flows.reporter import Reporter
from flows.runs import UNHEARD, cancelled, end_orphaned_runs, watch_cancellation


def take_over(notes: Path, run: str, now: Sequence[UUID]) -> bool:
    """End the flow runs of a killed start of a run, and keep the ids of this start.

    Parameters
    ----------
    run : str
        Name of the study's run.
    now : sequence of UUID
        The flow runs of this start.

    Returns
    -------
    bool
        Whether the flow runs of the killed start were cancelled.
    """
    found = False
    with suppress(*DAMAGED, *UNHEARD), get_client(sync_client=True) as client:
        known = json.loads(notes.read_text(encoding="utf-8"))
        left = [UUID(each) for each in known[run]]
        found = cancelled(client, left)
        end_orphaned_runs(client, left)
    with suppress(OutputError):  # the run's own writing there will raise the error
        write_bytes(notes, json.dumps({run: [str(each) for each in now]}).encode())
    return found


_TASK: dict[str, Any] = {"cache_policy": NO_CACHE, "persist_result": False, "retries": 0}
_FLOW: dict[str, Any] = {"validate_parameters": False, "persist_result": False}


@dataclass
class _Progress:
    """Number of completed rounds of a study, as Prefect shows it."""

    study: str
    _artifact: UUID | None = None

    def show(self, percent: float) -> None:
        """Show the part of the rounds that are completed."""
        if self._artifact is not None:
            update_progress_artifact(self._artifact, percent)
            return
        key = f"rounds-{self.study}"
        made = create_progress_artifact(percent, key, f"Rounds of {self.study}")
        assert isinstance(made, UUID)  # noqa: S101 - not in an event loop
        self._artifact = made


def _show(shown: PublishedTexts, study: str) -> None:
    """Show a published result in Prefect."""
    create_markdown_artifact(shown.summary, key=f"privacy-{study}", description="Privacy report")
    if shown.picture:
        create_image_artifact(shown.picture, key=f"map-{study}", description="First map")
    if shown.link:
        create_link_artifact(shown.link, "report", key=f"report-{study}", description="Report")


class StudyFlow:
    """A study as a Prefect flow.

    Parameters
    ----------
    cancellation : Cancellation, optional
        Set when the run is cancelled on Prefect; the centre's clock should obey it.
    notes : Path, optional
        File that keeps the run's ids on Prefect for a start after a kill.
    """

    def __init__(
        self,
        centre: Centre,
        outputs: Outputs,
        cancellation: Cancellation | None = None,
        notes: Path | None = None,
    ) -> None:
        self._centre = centre
        self._outputs = outputs
        self._cancellation = cancellation or Cancellation()
        self._notes = notes
        self._ended: Exception | None = None
        self._published = False
        self._reporter = Reporter()
        self._awaited: Waiting | None = None  # in the current step
        centre.on_wait(self._waits)
        self.open = task(name="open", **_TASK)(self._open)
        self.round = task(name="round", task_run_name="{stage} {number}", **_TASK)(self._round)
        self.finish = task(name="finish", **_TASK)(self._finish)
        self.publish = task(name="publish", **_TASK)(self._publish)

    def conduct(self) -> None:
        """Carry out the study: its tasks in their order."""
        take_signals()  # Prefect's engine sets handlers that end with a traceback
        done: object = (plan := self.open())
        shown = _Progress(self._centre.context.study.study)
        self._reporter.replace("rounds", partial(shown.show, 0.0))
        while self._session.pending is not None:
            done = self.round(self._session.pending.stage, self._session.number, done)
            self._progressed(plan, shown)
        self.publish(plan, self.finish(done))

    def _open(self) -> Plan:
        with self._discreet("opening the run"):
            return self._centre.open()

    def _round(self, stage: str, number: int, after: object) -> object:
        """Perform a round; ``after``, the previous round's value, links both in Prefect's graph."""
        del after
        self._reporter.say(f"round {number} ({stage}) is open")
        self._emit("round.opened", stage=stage, round=number)
        with self._discreet(f"round {number} ({stage})"):
            self._cancellation.check()
            self._centre.step()
        return object()  # Prefect recognizes it by its identity

    def _finish(self, after: object) -> Result:
        del after
        with self._discreet("closing the run"):
            self._cancellation.check()
            return self._centre.finish()

    def _publish(self, plan: Plan, result: Result) -> None:
        with self._discreet("publishing the result"):
            shown = self._outputs.publish(plan, self._session.rounds, result)
        self._published = True
        study = self._centre.context.study.study
        self._reporter.do(partial(_show, shown, study))
        self._reporter.say("the result is published")

    def _waits(self, waiting: Waiting) -> None:
        """Report the sites that are awaited."""
        self._awaited = waiting
        sites = list(waiting.sites)
        self._reporter.say(f"{waiting.step}: waiting for {', '.join(sites)}")
        until = datetime.fromtimestamp(waiting.until, UTC).isoformat(timespec="seconds")
        self._emit("site.awaited", step=waiting.step, sites=sites, until=until)

    def _emit(self, event: str, **payload: Any) -> None:
        context = self._centre.context
        told = {"run": context.run, **payload}
        now = datetime.now(UTC)
        self._reporter.do(partial(emit, event, context.study.study, told, now))

    def run(self) -> None:
        """Let Prefect run the flow.

        Raises ConsortiumError if the study ended early; the sites have been informed.
        """

        @flow(name="consortium-study", flow_run_name="{run}", **_FLOW)
        def consortium_study(study: str, run: str) -> State[None] | None:
            del study, run  # shown by Prefect
            with self._reporter.at_work():
                ended = self._conducted(above)
                if ended:
                    self._reporter.say(ended, logging.ERROR)
                self._emit("study.finished", complete=not ended, message=ended)
            if isinstance(self._ended, RunCancelledError):
                return Cancelled(message=ended)
            return Failed(message=ended) if ended else None

        context = self._centre.context
        above = _this_run()
        # A synchronous run with heartbeats is padded to whole seconds; the rounds are its pulse.
        known = tags("consortium", context.study.algorithm)
        settings = {PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}
        # A server that can't be informed of the end of a published study does not undo it.
        with known, without_logs(settings), suppress(*UNHEARD):
            # As a state: a result would be unpickled from wherever the API's answer points.
            consortium_study(context.study.study, context.run, return_state=True)
        if self._ended is not None:
            _give_up(self._ended, self._centre)
            raise self._ended
        if not self._published:
            raise ConfigurationError(
                "Prefect did not let the study's flow run to its end. Check its server's log and "
                "start the study again; it continues where it stopped."
            )

    def _conducted(self, above: list[UUID]) -> str:
        """Carry out the study in this flow run; return a public sentence of what ended it early."""
        context = self._centre.context
        here = _this_run()
        self._reporter.do(partial(join_runs, above, here, context.study.study, context.run))
        try:
            # Tasks without tags: Prefect asks for a slot for each, in vain in a cancelled run.
            with self._watched(here + above), TagsContext(current_tags=set()):
                self.conduct()
        except _StoppedError as stopped:
            return str(stopped)
        except Exception:  # of Prefect's client, with any text
            return "The study ended before its time: prefect."
        return ""

    def _watched(self, runs: list[UUID]) -> AbstractContextManager[None]:
        """Follow a cancellation of these flow runs, or of those that a killed start left."""
        if self._notes is not None and take_over(self._notes, self._centre.context.run, runs):
            self._cancellation.order.set()
        return watch_cancellation(self._cancellation, runs)

    @property
    def _session(self) -> Session:
        assert self._centre.session is not None  # noqa: S101 - opened by the first task
        return self._centre.session

    def _progressed(self, plan: Plan, shown: _Progress) -> None:
        """Show the number of completed rounds, to the caller and to Prefect."""
        done = len(self._session.rounds)
        with self._discreet("showing progress"):
            self._outputs.progress(done, plan.rounds)
        self._reporter.replace("rounds", partial(shown.show, 100.0 * done / plan.rounds))

    @contextmanager
    def _discreet(self, step: str) -> Iterator[None]:
        """Keep an error for the caller, and report its kind, the step and the awaited sites.

        The report is not private: sites' names are in the study file.
        """
        self._awaited = None
        try:
            yield
        except Exception as error:
            self._ended = self._ended or error
            kind = error.code if isinstance(error, ConsortiumError) else "software"
            sentence = f"The study ended before its time: {kind}. It was at {step}{self._turn()}."
            raise _StoppedError(sentence) from None

    def _turn(self) -> str:
        """Return the awaited sites, by their public names in the study file."""
        refused = self._centre.refused
        said = ""
        if self._awaited is not None:
            said += f", waiting for {', '.join(self._awaited.sites)} ({self._awaited.step})"
        return said + (f"; {', '.join(refused)} took no further part" if refused else "")


def _this_run() -> list[UUID]:
    """Return the id of the flow run that this is in, if any."""
    context = FlowRunContext.get()
    return [context.flow_run.id] if context is not None and context.flow_run is not None else []


class _StoppedError(Exception):
    """Error as Prefect records it: kind, step and sites, and no path."""


def _give_up(error: Exception, centre: Centre) -> None:
    """End a run, unless the same command can resume it."""
    passing = isinstance(error, ExchangeError | OutputError)
    if isinstance(error, ConsortiumError) and not passing:
        centre.abort(error)
