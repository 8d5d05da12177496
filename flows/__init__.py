"""Prefect: order, progress and artifacts; nothing here computes.

Prefect tells its makers of its use from the moment it is imported. Only this package imports it, so
that is switched off here, before any of its modules can.
"""

import os
import sys
from importlib.util import find_spec

from consortium.errors import ConfigurationError

UNTOLD = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""Environment in which Prefect, its server and Ray tell their makers nothing."""

os.environ.update(UNTOLD)
# Despite these, Prefect makes an id of the machine at the first flow; it does without this module.
sys.modules["prefect._internal.analytics"] = None  # type: ignore[assignment]


def need_prefect() -> None:
    """Do nothing if Prefect can be imported, which a site's installation mostly lacks.

    Raises ConfigurationError if it, or what it needs, is not installed.
    """
    lacking = [name for name in ("prefect", "fastapi", "sqlalchemy") if find_spec(name) is None]
    if lacking:
        raise ConfigurationError(
            f"This command goes through Prefect, and {' and '.join(lacking)} can't be found; "
            "install a release's requirements-all.txt, or run 'pip install "
            '"cape-consortium[prefect]"\'.'
        )
