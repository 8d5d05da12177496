"""The registry: an algorithm is one file and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from consortium.algorithms.admm import Admm
from consortium.algorithms.average import Average
from consortium.algorithms.base import Algorithm
from consortium.algorithms.cca import Cca
from consortium.algorithms.coordinate import Coordinate
from consortium.algorithms.ica import Ica
from consortium.algorithms.network import Network
from consortium.algorithms.pca import Pca
from consortium.algorithms.regression import Regression
from consortium.algorithms.summarize import Summarize
from consortium.algorithms.tensor import Tensor

REGISTRY: Mapping[str, Algorithm] = MappingProxyType(
    {
        "admm": Admm(),
        "average": Average(),
        "cca": Cca(),
        "coordinate": Coordinate(),
        "ica": Ica(),
        "network": Network(),
        "pca": Pca(),
        "regression": Regression(),
        "summarize": Summarize(),
        "tensor": Tensor(),
    }
)

__all__ = ["REGISTRY", "Algorithm"]
