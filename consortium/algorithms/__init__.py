"""The registry of analyses, and their shared modules.

An analysis is one file, or one folder whose `kernels` are numerics that no other analysis uses. All
analyses share the contract, queries, results, findings, public sizes, subspaces, least squares,
units of privacy, and the forecast by assumed participants.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from consortium.algorithms.admm.centre import Admm
from consortium.algorithms.average import Average
from consortium.algorithms.base import AnalysisPlan
from consortium.algorithms.cca.centre import Cca
from consortium.algorithms.coordinate.centre import Coordinate
from consortium.algorithms.describe.centre import Describe
from consortium.algorithms.glm.centre import Glm
from consortium.algorithms.group_ica.centre import GroupIca
from consortium.algorithms.ica.centre import Ica
from consortium.algorithms.network.centre import NeuralNetwork
from consortium.algorithms.pca.centre import Pca
from consortium.algorithms.regression.centre import Regression
from consortium.algorithms.summarize.centre import Summarize
from consortium.algorithms.template_networks.centre import TemplateNetworks
from consortium.algorithms.tensor.centre import Tensor

REGISTRY: Mapping[str, type[AnalysisPlan[Any]]] = MappingProxyType(
    {
        "admm": Admm,
        "average": Average,
        "cca": Cca,
        "coordinate": Coordinate,
        "describe": Describe,
        "glm": Glm,
        "group_ica": GroupIca,
        "ica": Ica,
        "network": NeuralNetwork,
        "pca": Pca,
        "regression": Regression,
        "summarize": Summarize,
        "template_networks": TemplateNetworks,
        "tensor": Tensor,
    }
)

__all__ = ["REGISTRY", "AnalysisPlan"]
