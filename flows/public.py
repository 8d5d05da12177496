"""What a Prefect server is told: public sentences, and none of the logs, which hold paths."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from prefect.settings import PREFECT_LOGGING_TO_API_ENABLED, temporary_settings


def without_logs(more: Mapping[Any, Any] | None = None) -> AbstractContextManager[object]:
    """Keep every log on this machine: of a failure, Prefect's own engine logs the traceback.

    Parameters
    ----------
    more : mapping, optional
        Other settings of Prefect for as long.
    """
    return temporary_settings({PREFECT_LOGGING_TO_API_ENABLED: False, **(more or {})})
