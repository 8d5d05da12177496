"""Loading, checks and caching of a study's data before the first query."""

import threading
from collections import deque
from collections.abc import Callable, Iterator

from consortium.errors import ConsortiumError, SoftwareError
from site_agent.images.series import SiteDataset
from site_agent.loading.feature_vectors import FeatureDataset

Data = SiteDataset | FeatureDataset


Drive = Callable[[Iterator[object]], None]
"""Function that performs all pieces of work, now or gradually."""


def at_once(work: Iterator[object]) -> None:
    """Perform all the work of a loading before returning."""
    deque(work, maxlen=0)


def in_thread(work: Iterator[object]) -> None:
    """Load data in a thread of its own, so a slow disk delays no other run.

    The thread ends with the process. Its files are written under temporary names first.
    """
    threading.Thread(target=at_once, args=(work,), name="loading", daemon=True).start()


class Loading:
    """Loading of one study's data into the site's cache.

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
        """Load participant by participant. An error is kept for the next request of the data."""
        try:
            for at in self._data.load():
                self._at = at
                yield None
        except ConsortiumError as error:
            self._failure = error
        except Exception as error:  # a library's error would not be seen in this thread
            self._failure = SoftwareError.of(error)
        finally:
            self.over = True

    @property
    def words(self) -> str:
        """Progress of the loading, in words."""
        return f"loading {self._at}".strip()

    @property
    def data(self) -> Data:
        """The data, loaded and found valid.

        Raises the ConsortiumError that occurred while they were loaded.
        """
        if self._failure is not None:
            raise self._failure
        return self._data
