"""Old names of parameters and methods, which work for one release and say so: the one mechanism."""

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from types import MappingProxyType
from typing import Any, TypeVar

Kind = TypeVar("Kind")


def renamed(
    arguments: Mapping[str, str] = MappingProxyType({}), /, **names: str
) -> Callable[[type[Kind]], type[Kind]]:
    """Let a class be used by earlier names of its attributes, as ``components="n_components"``.

    The constructor, `set_params` and attributes accept them. Each use is a FutureWarning with the
    new name. The constructor's signature has only the new names.

    Parameters
    ----------
    arguments : mapping of str to str
        Names of arguments of `fit` and `transform`, likewise.
    names : str
        The new name, by the old one.
    """

    def change(kind: type[Kind]) -> type[Kind]:
        for method in ("__init__", "set_params"):
            setattr(kind, method, _translating(getattr(kind, method), kind.__name__, names))
        for method in (each for each in ("fit", "transform") if arguments and hasattr(kind, each)):
            setattr(kind, method, _translating(getattr(kind, method), kind.__name__, arguments))
        for old, new in names.items():
            setattr(kind, old, property(_reader(kind.__name__, old, new)))
        return kind

    return change


def warn_of_order(method: str, order: str) -> None:
    """Warn that the order of arguments has changed."""
    warnings.warn(
        f"{method} takes {order}; the old order goes with the next release.",
        FutureWarning,
        stacklevel=3,
    )


def _translating(method: Any, kind: str, names: Mapping[str, str]) -> Any:
    @wraps(method)
    def call(self: Any, *args: Any, **given: Any) -> Any:
        for old in [name for name in given if name in names]:
            if names[old] in given:
                raise TypeError(f"{kind}: '{old}' is the old name of '{names[old]}'; give one.")
            _warn(kind, old, names[old])
            given[names[old]] = given.pop(old)
        return method(self, *args, **given)

    call.deprecated_original = method  # type: ignore[attr-defined]  # where scikit-learn looks
    return call


def _reader(kind: str, old: str, new: str) -> Callable[[Any], Any]:
    def read(self: Any) -> Any:
        _warn(kind, old, new)
        return getattr(self, new)

    return read


def _warn(kind: str, old: str, new: str) -> None:
    warnings.warn(
        f"{kind}: '{old}' is called '{new}' now; the old name goes with the next release.",
        FutureWarning,
        stacklevel=3,
    )
