"""Start-up time of every process: imports, the template's voxels and the smooth basis."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping

from benchmarks.peers import installed
from benchmarks.table import Row

_TURNS = 5
_SPACE = """
from consortium.algorithms.subspace import smooth_basis
from consortium.space.grid import template_grid
from consortium.space.study_space import Space
smooth_basis(Space(template_grid({edge}.0)).places, {cutoff}.0).for_series
"""
EDGE, CUTOFF = 4, 22


def starts() -> list[Row]:
    """Return the rows of the one table; a process's whole processor time."""
    codes = ["import site_agent.agent", "import consortium.coordinator.run, flows.study"]
    codes += ["import nilearn.maskers, nilearn.glm"] if installed("nilearn") else []
    turns = [[_seconds(code, {}) for code in codes] for _ in range(_TURNS)]
    agent, centre, *others = map(min, zip(*turns, strict=True))
    peer = others[0] if others else None
    beside = f"imports of nilearn {installed('nilearn')}'s masker and glm"
    return [
        Row("start of an agent: imports", agent, beside, peer, "≤ 0.7"),
        Row("start of the centre's run: imports", centre, beside, peer, "≤ 1.2"),
        _space(),
    ]


def _space() -> Row:
    """Time a process that needs a smooth basis, with and without a stored one."""
    code, known = _SPACE.format(edge=EDGE, cutoff=CUTOFF), float("inf")
    with tempfile.TemporaryDirectory() as caches:
        fresh = _seconds(code, {"XDG_CACHE_HOME": caches})
        for _ in range(_TURNS):
            known = min(known, _seconds(code, {"XDG_CACHE_HOME": caches}))
    work = f"voxels of {EDGE} mm and waves of {CUTOFF} mm, in a process of its own"
    return Row(work, known, "the first such process of a user", fresh, "≤ 0.5")


def _seconds(code: str, environment: Mapping[str, str]) -> float:
    """Return the processor time of a new interpreter in milliseconds."""
    # As on a machine that has started it before: where no bytecode may be kept, all is compiled.
    kept = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}
    process = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, **kept, **environment}
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, code)
    return 1e3 * (usage.ru_utime + usage.ru_stime)
