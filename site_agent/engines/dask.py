"""A Dask cluster of the hospital: the agent is a client of its scheduler, and opens no port."""

import asyncio
from contextlib import suppress
from typing import Any

from distributed import Client
from distributed import TimeoutError as DaskTimeoutError

from site_agent.engines.remote import LostError, compute_request

_PATIENCE = 10.0  # s for the scheduler to answer, and between two looks whether workers are left


class DaskCluster:
    """Workers of a hospital's Dask cluster; fits `Workers`.

    The scheduler itself gives a dead worker's calls to others, three times.

    Parameters
    ----------
    address : str
        Address of the scheduler, such as tcp://10.0.0.5:8786, or tls://.
    """

    def __init__(self, address: str) -> None:
        try:
            self._client = Client(address, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError, ImportError) as error:
            raise LostError(f"no scheduler at {address}: {error}") from error
        self.count = max(1, self._threads())

    def submit(self, kind: str, call: bytes) -> object:
        """Submit a call to the cluster."""
        try:
            return self._client.submit(compute_request, kind, call, pure=False)
        except Exception as error:  # of many kinds: connections, loops that were stopped
            raise LostError(_words(error)) from error

    def collect(self, handle: Any) -> bytes:
        """Wait for an answer for as long as there are workers."""
        while True:
            try:
                return bytes(handle.result(timeout=_PATIENCE))
            except (TimeoutError, DaskTimeoutError) as error:
                if self._client.status != "running" or not self._threads():
                    raise LostError("the scheduler is gone, or has no workers") from error
            except (Exception, asyncio.CancelledError) as error:
                # `compute_request` raises nothing: the cluster failed, or the package is missing.
                raise LostError(_words(error)) from error

    def cancel(self, handle: Any) -> None:
        """Cancel an answer that no worker has begun."""
        with suppress(Exception, asyncio.CancelledError):  # the cluster may be gone
            handle.release()  # the scheduler forgets a result without a client

    def close(self) -> None:
        """Leave the cluster."""
        self._client.close(timeout=1.0)

    def _threads(self) -> int:
        try:
            return sum(self._client.nthreads().values())
        except (OSError, DaskTimeoutError):
            return 0


def _words(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
