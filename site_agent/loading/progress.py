"""A study's data being loaded, checked and cached before anybody is asked anything."""

import threading
from collections import deque
from collections.abc import Callable, Iterator

from consortium.errors import ConsortiumError, SoftwareError
from site_agent.images.series import SiteDataset
from site_agent.loading.feature_vectors import FeatureDataset

Data = SiteDataset | FeatureDataset


Drive = Callable[[Iterator[object]], None]
"""Has pieces of work done to the last one, now or by and by."""


def at_once(work: Iterator[object]) -> None:
    """Do all the work before returning."""
    deque(work, maxlen=0)


def in_thread(work: Iterator[object]) -> None:
    """Do the work in a thread of its own, so that a slow disk keeps no other run waiting.

    The thread ends with the process; what it was about to write is written aside first.
    """
    threading.Thread(target=at_once, args=(work,), name="loading", daemon=True).start()


class Loading:
    """The data of one study, on their way into the site's cache.

    Parameters
    ----------
    data : SiteDataset or FeatureDataset
        Not to be used by others until ``over``.
    """

    def __init__(self, data: Data) -> None:
        self._data = data
        self._failure: ConsortiumError | None = None
        self._at = ""
        self.over = False

    def steps(self) -> Iterator[object]:
        """Load person by person; what goes wrong is kept for whoever asks for the data."""
        try:
            for at in self._data.load():
                self._at = at
                yield None
        except ConsortiumError as error:
            self._failure = error
        except Exception as error:  # of a library, in a thread where nobody would see it
            self._failure = SoftwareError.of(error)
        finally:
            self.over = True

    @property
    def words(self) -> str:
        """How far it has come."""
        return f"loading {self._at}".strip()

    @property
    def data(self) -> Data:
        """The data, loaded and found sound.

        Raises ConsortiumError: what went wrong while they were loaded.
        """
        if self._failure is not None:
            raise self._failure
        return self._data
