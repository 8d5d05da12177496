"""The relay over NVIDIA FLARE: a Controller at the coordinator, an Executor at every site."""

import math
import time
from collections.abc import Callable

from nvflare.apis.client import Client
from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal

from cape_relay.folder import Folder, RelayError, folder_of
from cape_relay.sync import Hub, answer

TASK = "sync"
_PATIENCE = "patience"
_LONGEST = 20.0  # s; a site receives nothing while it waits
_SILENCE = 60  # s without any answer, after which sites are asked again


class _StoppedError(Exception):
    """The platform ends the job."""


def _waiting(signal: Signal) -> Callable[[float], None]:
    def wait(seconds: float) -> None:
        if signal.triggered:
            raise _StoppedError
        time.sleep(seconds)

    return wait


class RelayController(Controller):
    """Controller that asks all sites until the study's last message has been carried to each.

    Parameters
    ----------
    only : list of str
        Beginnings of the names that are carried.
    last : str
        Pattern of the name after which nothing is expected.
    wait : float
        Seconds that a party waits for something to send before it reports that it has nothing;
        sites wait longer while nothing is moved.
    hours : float
        Time after which the job ends in any case.
    centre : str
        The coordinator's client, if the server's folder does not belong to a party.
    """

    def __init__(
        self,
        only: list[str],
        last: str = "",
        wait: float = 2.0,
        hours: float = 24.0,
        centre: str = "",
    ) -> None:
        super().__init__(task_check_period=0.05)
        self._only = only
        self._last = last
        self._wait = wait
        self._hours = hours
        self._centre = centre
        self._hub: Hub | None = None
        self._fault = ""

    def start_controller(self, fl_ctx: FLContext) -> None:
        """Open the coordinator's folder."""
        try:
            folder = folder_of("server", self._only)
            self._hub = Hub(folder, self._last, centre=self._centre)
        except RelayError as error:
            self.system_panic(str(error), fl_ctx)

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """Log a summary of the moved messages."""
        if self._hub is not None:
            self.log_info(fl_ctx, self._hub.summary())

    def process_result_of_unknown_task(
        self,
        client: Client,
        task_name: str,
        client_task_id: str,
        result: Shareable,
        fl_ctx: FLContext,
    ) -> None:
        """Take an answer that comes late, which is as valid as any other."""
        self._take(client.name, result)

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """Carry messages until the study is over, or an error occurs."""
        try:
            self._carry(abort_signal, fl_ctx)
        except _StoppedError:
            self.log_info(fl_ctx, "The relay was stopped by the platform.")
        except RelayError as error:
            self.system_panic(str(error), fl_ctx)

    def _carry(self, signal: Signal, fl_ctx: FLContext) -> None:
        end = time.monotonic() + 3600 * self._hours
        wait = _waiting(signal)
        while self._hub is not None and time.monotonic() < end:
            sites = [client.name for client in fl_ctx.get_engine().get_clients()]
            if self._hub.over(sites):
                break
            data = Shareable(self._hub.request(self._wait, wait))  # one object for all sites
            data[_PATIENCE] = self._hub.patience(self._wait, _LONGEST)
            task = Task(TASK, data, result_received_cb=self._received, timeout=_SILENCE)
            self.broadcast_and_wait(
                task, fl_ctx, sites, 1, math.ceil(self._wait), abort_signal=signal
            )
            if self._fault:
                raise RelayError(self._fault)
            wait(0.0)

    def _received(self, client_task: ClientTask, fl_ctx: FLContext) -> None:
        self._take(client_task.client.name, client_task.result)
        client_task.result = None

    def _take(self, site: str, result: Shareable | None) -> None:
        """Take an answer; an error would only be logged here, so it is kept for the next tick."""
        if result is None or self._hub is None:
            return
        try:
            if "fault" in result:
                raise RelayError(f"{site}: {result['fault']}")
            if result.get_return_code() == ReturnCode.OK:
                self._hub.take(site, result)
        except RelayError as error:
            self._fault = self._fault or str(error)


class RelayExecutor(Executor):
    """Executor that writes received messages to the site's folder and answers with its new ones.

    Parameters
    ----------
    only : list of str
        Beginnings of the names that are carried.
    """

    def __init__(self, only: list[str]) -> None:
        super().__init__()
        self._only = only
        self._folder: Folder | None = None

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        """Carry out a tick."""
        if task_name != TASK:
            return make_reply(ReturnCode.TASK_UNKNOWN)
        try:
            if self._folder is None:
                self._folder = folder_of(fl_ctx.get_identity_name(), self._only)
            seconds = min(float(shareable.get(_PATIENCE, 0.0)), _LONGEST)
            return Shareable(answer(self._folder, shareable, seconds, _waiting(abort_signal)))
        except _StoppedError:
            return make_reply(ReturnCode.TASK_ABORTED)
        except RelayError as error:
            self.log_error(fl_ctx, str(error))
            reply = make_reply(ReturnCode.EXECUTION_EXCEPTION)
            reply["fault"] = str(error)
            return reply
