"""Prefect: order, progress and artifacts; nothing here computes.

Prefect reports its use to its vendor from the moment it is imported. Only this package imports it.
So this reporting is switched off here, before any of its modules can import it.
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
"""Environment in which Prefect, its server and Ray report nothing to their vendors."""

os.environ.update(UNTOLD)
# Despite these, Prefect makes an id of the machine at the first flow; it does without this module.
sys.modules["prefect._internal.analytics"] = None  # type: ignore[assignment]


def need_prefect() -> None:
    """Require that Prefect can be imported, which a site's installation usually lacks.

    Raises ConfigurationError if it, or a package that it needs, is not installed.
    """
    lacking = [name for name in ("prefect", "fastapi", "sqlalchemy") if find_spec(name) is None]
    if lacking:
        raise ConfigurationError(
            f"This command goes through Prefect, and {' and '.join(lacking)} can't be found. "
            "Install a release's requirements-all.txt, or run 'pip install "
            '"cape-consortium[prefect]"\'.'
        )
