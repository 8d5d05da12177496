"""``functools.cached_property`` as it is from Python 3.12 on: without a lock.

The lock of earlier versions is one for all instances. So a data set on a slow disk would block
every other one. Two threads that ask at the same time both compute the value.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class cached_property(Generic[_T]):  # noqa: N801 - the name that it replaces
    """A property that is worked out once for each instance, and kept in its ``__dict__``."""

    def __init__(self, work: Callable[[Any], _T]) -> None:
        self._work = work
        self._name = work.__name__
        self.__doc__ = work.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> _T:
        """Work the value out. Afterwards the instance's own entry is found first."""
        if instance is None:
            raise AttributeError(self._name)
        value = instance.__dict__[self._name] = self._work(instance)
        return value
