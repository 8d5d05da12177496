"""Checks of studies that the inbox has started: one at a time, while its pages are served."""

import secrets
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from consortium.errors import ConfigurationError, ConsortiumError, SoftwareError
from site_agent.approval.inspection import Inspection, Watch

Work = Callable[[Watch], Inspection]


@dataclass
class StudyCheck:
    """One check of a study that the inbox started, under way or finished."""

    shown: str
    """Digest of the state that is checked, as `state_digest` computes it."""
    at: datetime
    """Time at which it began."""
    done: int = 0
    """Participants loaded so far."""
    many: int = 0
    """Participants to be loaded; 0 until it is known."""
    found: Inspection | None = None
    """Result of a check that has finished."""
    trouble: str = ""
    """Reason why it ended without a result."""
    mark: str = field(default_factory=secrets.token_hex)
    """Random name of this check, which the forms of its result carry."""

    @property
    def is_running(self) -> bool:
        """Whether it is under way."""
        return self.found is None and not self.trouble

    def perform(self, work: Work) -> None:
        """Run the work; an error becomes a sentence on the page."""
        try:
            self.found = work(self._watch)
        except ConsortiumError as error:
            self.trouble = str(error)
        except Exception as error:  # or the page would wait for ever
            self.trouble = str(SoftwareError.of(error))

    def _watch(self, loaded: Iterable[object], many: int) -> Iterator[object]:
        self.many = many
        for each in loaded:
            yield each
            self.done += 1


@dataclass
class StudyChecks:
    """The last check of each study, by the name of its file in addresses."""

    _by_ident: dict[str, StudyCheck] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, ident: str) -> StudyCheck | None:
        """Return the last check of a study, or None."""
        return self._by_ident.get(ident)

    def start(self, ident: str, shown: str, now: datetime, work: Work) -> None:
        """Start a check in a thread that ends with the process.

        Raises ConfigurationError if one is under way: each needs memory for scans.

        Parameters
        ----------
        ident : str
            Name of the study's file in addresses.
        shown : str
            Digest of the state that is checked.
        now : datetime
            The time.
        work : callable
            Inspects the study.
        """
        with self._lock:
            if any(each.is_running for each in self._by_ident.values()):
                raise ConfigurationError(
                    "Only one check can be under way, and another has not finished. Try again "
                    "when it has."
                )
            check = StudyCheck(shown, now)
            self._by_ident[ident] = check
        threading.Thread(target=check.perform, args=(work,), name="check", daemon=True).start()
