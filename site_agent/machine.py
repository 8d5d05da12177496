"""Cores and memory that this process may use, as the kernel and its control group state them."""

import os
from pathlib import Path

_GROUPS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores() -> int:
    """Return the number of cores that the account and its container may use, 1 or more."""
    cores = len(os.sched_getaffinity(0))
    quota, _, period = _content(_QUOTA).partition(" ")
    if quota.isdecimal() and period.strip().isdecimal() and int(period) > 0:
        cores = min(cores, int(quota) // int(period))
    return max(1, cores)


def usable_memory() -> int:
    """Return the bytes of memory of the machine, or of its container if that has fewer."""
    sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    sizes += [int(text) for text in map(_content, _GROUPS) if text.isdecimal()]
    return min(sizes)


def _content(path: Path) -> str:
    """Return a file's text, or nothing if the kernel has no such file."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
