"""The one name for an array of numbers of any kind and shape; docstrings say which."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
