"""Events that an agent waits for, shown to its staff."""

from collections.abc import Mapping

from consortium.engine.clock import WaitFile, Waiting
from site_agent.run.participation import Participation
from site_agent.run.preload import Preload
from site_agent.run.site_log import SiteLog


class WaitLog:
    """Record of the event that each run waits for. It reports once that the centre is overdue."""

    def __init__(self, file: WaitFile, log: SiteLog) -> None:
        self._file = file
        self._log = log
        self._prepared = False

    @property
    def shown(self) -> Waiting | None:
        """The wait that is recorded now."""
        return self._file.shown

    def clear(self) -> None:
        """Reset the recorded wait."""
        self._file.clear()

    def show(self, ahead: Preload, runs: Mapping[str, Participation], waited: float) -> None:
        """Record the awaited events.

        Parameters
        ----------
        ahead : Preload
            Data that are loaded before any run.
        runs : mapping of str to Participation
            Those that have not ended.
        waited : float
            Seconds.
        """
        if not runs:
            self._show_ahead(ahead, waited)
        for run, participation in runs.items():
            self._show_run(run, participation, waited)

    def _show_run(self, run: str, participation: Participation, waited: float) -> None:
        timing = participation.timing
        ready = timing.ready if participation.starts else 0.0  # others may be loading
        left = timing.join + ready + 2 * timing.answer - waited
        if participation.own_work:
            self._file.show(run, waited, left, {"this site": participation.own_work})
            return
        self._file.show(run, waited, left, {"centre": participation.awaited})
        if left < 0:
            self._log.write_once(
                f"{run}: {participation.awaited} is overdue. Ask the coordinator whether the "
                "study continues."
            )

    def _show_ahead(self, ahead: Preload, waited: float) -> None:
        words = ahead.words
        if words:
            self._file.show(ahead.study, waited, 0.0, {"this site": words})
        elif self._prepared:
            self._file.clear()
        self._prepared = bool(words)
