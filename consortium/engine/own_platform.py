"""Where an analysis is computed: machine, libraries, and this very build of the software."""

import hashlib
import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

from consortium import __version__
from consortium.base.one_thread import blas_libraries


def own_platform() -> Mapping[str, str]:
    """Return the platform of an analysis, by `one_thread`, which decides its last digits."""
    return {
        "build": _own_build(),
        "cape-consortium": __version__,
        "libraries": blas_libraries(),
        "machine": platform.machine(),
        "numpy": version("numpy"),
        "processor": platform.processor(),
        "python": platform.python_version(),
        "scipy": version("scipy"),
        "system": platform.system(),
    }


@cache
def _own_build() -> str:
    """Start of a SHA-256 over the package's sources: two builds of one version differ in it."""
    package = Path(__file__).parents[1]
    sources = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        sources.update(f"{path.relative_to(package).as_posix()}\0".encode())
        sources.update(hashlib.sha256(path.read_bytes()).digest())
    return sources.hexdigest()[:16]
