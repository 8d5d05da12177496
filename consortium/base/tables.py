"""Tables of an output folder, which another party may have written."""

import csv
from pathlib import Path

from consortium.errors import OutputError

MOST_BYTES = 1 << 26


def read_rows(path: Path) -> list[dict[str, str]]:
    """Read a tab-separated table of an output folder whose lines are all as wide as its first.

    Raises OSError if it can't be read. Raises OutputError if it is too large, or no such table.
    """
    if path.stat().st_size > MOST_BYTES:
        raise OutputError(f"{path} is too large to be a table of results.")
    try:
        with path.open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file, delimiter="\t")
            return [dict(zip(header, row, strict=True)) for row in rows]
    except (csv.Error, ValueError) as error:  # no line, or one of another width
        raise OutputError(f"{path} is damaged. Ask for the run's folder again.") from error
