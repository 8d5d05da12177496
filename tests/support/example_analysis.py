"""Plugin of pytest: the analysis in the docstring of `algorithms.base` joins the registry.

It changes the registry before any other module imports it, and only in its own process.
"""

import doctest
from types import MappingProxyType
from typing import Any

from consortium import algorithms
from consortium.algorithms import base


def example() -> type[base.AnalysisPlan[Any]]:
    """Return the docstring's analysis."""
    names = dict(vars(base))
    (found,) = doctest.DocTestFinder(recurse=False).find(base)
    for step in found.examples:
        if step.source.startswith(("import", "from", "def", "class")):
            exec(step.source, names)
    analysis: type[base.AnalysisPlan[Any]] = names["Share"]
    return analysis


algorithms.REGISTRY = MappingProxyType({**algorithms.REGISTRY, "positives": example()})
