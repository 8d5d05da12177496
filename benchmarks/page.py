"""Measured tables on their page, with the machine of the measurement."""

import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from threadpoolctl import threadpool_info

from benchmarks.peers import versions

PAGE = Path(__file__).parents[1] / "docs" / "replication" / "performance.md"


def put(name: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write a table, and the machine of its measurement, between its marks on the page.

    Raises
    ------
    ValueError
        If the page lacks these marks.
    """
    text = PAGE.read_text(encoding="utf-8")
    lines = [columns, ["---"] * len(columns), *rows]
    table = "\n".join(f"| {' | '.join(_plain(cell) for cell in line)} |" for line in lines)
    PAGE.write_text(replaced(text, name, f"{machine()}\n\n{table}"), encoding="utf-8")


def replaced(text: str, name: str, inside: str) -> str:
    """Return a page with other text between the marks of a name."""
    marks = re.compile(rf"(<!-- measured: {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not marks.search(text):
        raise ValueError(f"The page has no marks '{name}'; write them where the table belongs.")
    return marks.sub(lambda found: f"{found[1]}{inside}\n{found[2]}", text)


def machine() -> str:
    """Describe the processor, its memory and load, the system and the software, in sentences."""
    cores, pages = len(os.sched_getaffinity(0)), os.sysconf("SC_PHYS_PAGES")
    memory = pages * os.sysconf("SC_PAGE_SIZE") / 2**30
    day, system = datetime.now(UTC), f"{platform.system()} {platform.release().split('-')[0]}"
    return (
        f"Measured on {day.day} {day:%B %Y}: {processor()}, {cores} cores, {memory:.0f} GiB, "
        f"{system}; load {os.getloadavg()[0]:.0f} over the last minute. "
        f"Python {platform.python_version()}; BLAS {_blas()}, one thread. Peers: {versions()}."
    )


def _blas() -> str:
    kinds = {
        f"{each['internal_api']} {each['version']} for {each['architecture']}"
        for each in threadpool_info()
        if each["user_api"] == "blas"
    }
    return ", ".join(sorted(kinds))


def processor() -> str:
    """Name of the processor."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _plain(cell: str) -> str:
    return cell.replace("|", "\\|")
