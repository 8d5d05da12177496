"""An order from outside to give a run up, obeyed where the centre waits."""

from dataclasses import dataclass, field, replace
from threading import Event

from consortium.engine.clock import Clock
from consortium.errors import RunCancelledError


@dataclass(frozen=True)
class Cancellation:
    """Whether somebody cancelled a run; it is never taken back."""

    order: Event = field(default_factory=Event)
    """Set by whoever hears of it, in any thread."""

    def check(self) -> None:
        """Go on, unless the run was cancelled; raises RunCancelledError if it was."""
        if self.order.is_set():
            raise RunCancelledError("The run was cancelled on the coordinator's Prefect.")

    def clock(self, clock: Clock) -> Clock:
        """Return the same time, whose waiting ends once the run is cancelled."""

        def pause(seconds: float) -> None:
            self.check()
            clock.pause(seconds)

        return replace(clock, pause=pause)
