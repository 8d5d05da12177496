"""Brain networks found together by hospitals that do not show each other their patients.

Python's public names are here, as ``import consortium as cc``. Each name is imported when it is
first used, so the programs start at once.

Examples
--------
>>> import consortium as cc
>>> model = cc.PrivateGroupICA(10, epsilon=8.0, delta=1e-5)
>>> model.get_params()["epsilon"]
8.0
"""

from importlib import import_module

__version__ = "0.2.0"

_PLACES = {
    "Privacy": "privacy",
    "PrivateGLM": "regression",
    "PrivateGroupICA": "networks",
    "PrivatePCA": "networks",
    "StudyResult": "result",
    "compare": "comparison",
    "load_study": "simulated",
    "open_result": "result",
    "simulate": "simulated",
}
"""Modules of `consortium.python` by public name. ``__init__.pyi`` declares the names' types."""

__all__ = [
    "Privacy",
    "PrivateGLM",
    "PrivateGroupICA",
    "PrivatePCA",
    "StudyResult",
    "__version__",
    "compare",
    "load_study",
    "open_result",
    "simulate",
]


def __getattr__(name: str) -> object:
    """Import a name when it is first asked for (PEP 562)."""
    if name not in _PLACES:
        raise AttributeError(f"module 'consortium' has no attribute '{name}'")
    return getattr(import_module(f"consortium.python.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    """Return the names of the module, public ones included before their import."""
    return sorted({*globals(), *__all__})
