"""A site's own preparation of its scans: one Prefect task per participant, on any runner.

This is work of the site's owner on the owner's machines, before a study and separate from it: the
tasks take a number, return nothing, and write to the site's cache. The agent, which answers a
study, is never run by Prefect.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from consortium.errors import ConfigurationError, ConsortiumError, SoftwareError
from flows.embedded import embedded_prefect

RUNNERS = {
    "threads": "prefect.task_runners:ThreadPoolTaskRunner",
    "processes": "prefect.task_runners:ProcessPoolTaskRunner",
    "dask": "prefect_dask:DaskTaskRunner",
    "ray": "prefect_ray:RayTaskRunner",
}
"""Short names of task runners; any other is written as module:Class."""


def prepare_all(
    work: Callable[[int], None], count: int, runner: str, options: dict[str, Any], home: Path
) -> None:
    """Call ``work`` with 0 to count - 1, as tasks on a runner.

    Prefect's server records one task run per participant, and therefore their number. The caller
    makes sure that the server is the hospital's own.

    Raises ConfigurationError if the runner is not installed or takes other options. Raises
    ConsortiumError of the first participant whose scans can't be prepared.

    Parameters
    ----------
    work : callable
        Function that a cluster's runner sends to its machines. It must be importable there.
    runner : str
        A key of `RUNNERS`, or module:Class.
    options : dict
        The runner's own options, such as ``max_workers`` or a scheduler's ``address``.
    home : Path
        Folder of the embedded Prefect, if PREFECT_API_URL names none.
    """
    with embedded_prefect(home):
        from prefect import State, flow, task
        from prefect.cache_policies import NO_CACHE
        from prefect.states import Completed, Failed

        from flows.public import without_logs

        chosen = _runner(runner, options)

        @task(name="prepare", cache_policy=NO_CACHE, persist_result=False, retries=0)
        def prepare_one(number: int) -> str | None:
            return _trouble(work, number)

        lines: list[str] = []
        ended: list[Exception] = []

        @flow(name="prepare-scans", task_runner=chosen, persist_result=False)
        def prepare_scans() -> State[None]:  # without parameters, which Prefect records
            try:
                futures = [prepare_one.submit(number) for number in range(count)]
                lines.extend(said for each in futures if (said := each.result()) is not None)
            except Exception as error:  # the runner's own failure
                ended.append(error)
                return Failed(message="The preparation ended before its time.")
            return Completed()

        with without_logs():
            state = prepare_scans(return_state=True)
    for error in ended:
        raise error
    if lines:
        raise ConsortiumError(lines[0])
    if not state.is_completed():
        raise ConfigurationError(
            "Prefect did not let the preparation run to its end. Check its server's log and "
            "start it again; it continues where it stopped."
        )


def _trouble(work: Callable[[int], None], number: int) -> str | None:
    """Perform one participant's work, and return the error, if any, as a public sentence."""
    try:
        work(number)
    except ConsortiumError as error:
        return str(error)
    except Exception as error:  # Prefect would keep its text
        return str(SoftwareError.of(error))
    return None


def _runner(name: str, options: dict[str, Any]) -> Any:
    module, _, kind = RUNNERS.get(name, name).partition(":")
    try:
        return getattr(import_module(module), kind)(**options)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"site.yaml: field 'task_runner': {name} is not installed here ({error}). Install the "
            "package with the agent, or choose threads."
        ) from error
    except TypeError as error:
        raise ConfigurationError(
            f"site.yaml: field 'task_runner_options': {name} does not take them ({error}). See the "
            "runner's own documentation."
        ) from error
