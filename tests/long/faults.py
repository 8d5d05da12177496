"""``python -m tests.long.faults [BOOST] [PARTY ...]``: a run's steps under every kind of fault.

Prints the whole matrix: a row for each write of each party, a column for each kind of fault. A cell
says 'same' where the result is that of the undisturbed run, byte for byte, and otherwise how the
run ended, or with which rounds a lost site is missing. Exits with 1 if any cell is bad: another
result, a stop that names nobody or can't be recovered from, a round charged or answered twice, a
secret in a log, other bytes of what others check the result by. With a numeric boost only
the steps that it alone has are played.
"""

import itertools
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import track
from rich.table import Table

WORKERS = 2
TELL_EVERY = 50
"""Cells between two lines where no bar can be drawn."""
LONGEST = 40
"""Characters of a step's name; a digest has more."""


class Cell(NamedTuple):
    """One step of one party under one kind of fault."""

    party: str
    step: str
    column: str
    boost: str
    ends: tuple[str, ...]
    problems: tuple[str, ...]


Step = tuple[str, str, str, str]


def steps(party: str, boost: str) -> list[Step]:
    """(party, step, column, boost) of every cell of a party."""
    from tests.protocol.fault_cells import COLUMNS, DEFAULT, rows

    known = set() if boost == DEFAULT else {str(at) for at in rows(party, COLUMNS[0])}
    return [
        (party, str(at), column, boost)
        for column in COLUMNS
        for at in rows(party, column, boost)
        if str(at) not in known
    ]


def play(step: Step) -> Cell:
    """Play a cell's trials; whatever is raised that nobody foresaw is a problem, too."""
    from tests.protocol.fault_cells import attempt, rows, trials

    party, name, column, boost = step
    at = next(w for w in rows(party, column, boost) if str(w) == name)
    ends: list[str] = []
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, trial in enumerate(trials(column, at, boost)):
            try:
                outcome = attempt(trial, at, Path(folder) / str(number), boost)
            except Exception as error:
                ends.append("fails")
                problems.append(f"{type(error).__name__}: {error}")
            else:
                ends.append(outcome.end)
                problems += outcome.problems
    return Cell(party, name, column, boost, tuple(ends), tuple(problems))


def matrix(cells: list[Cell]) -> Table:
    """Rows of steps as they were made, columns of faults."""
    from tests.protocol.fault_cells import COLUMNS

    columns = [column for column in COLUMNS if any(cell.column == column for cell in cells)]
    table = Table("party", "step", *columns, title="fault matrix")
    found = {(cell.party, cell.step, cell.column): cell for cell in cells}
    for party, step in dict.fromkeys((cell.party, cell.step) for cell in cells):
        shown = [_shown(found.get((party, step, column))) for column in columns]
        table.add_row(party, _short(step), *shown)
    return table


def _shown(cell: Cell | None) -> str:
    if cell is None:
        return "·"
    text = ", ".join(dict.fromkeys(cell.ends))
    return f"[red]BAD[/red] {text}" if cell.problems else text


def _complaint(cell: Cell) -> str:
    return f"{cell.party}, {cell.step}, {cell.column}: {'; '.join(cell.problems)}"


def _short(step: str) -> str:
    words = step.removeprefix("runs/").replace("small-0001/", "").split("/")
    return "/".join(word if len(word) < LONGEST else f"{word[:6]}…" for word in words)


def main(words: list[str]) -> int:
    """Play and print all cells of some parties; returns the exit code."""
    from tests.protocol.fault_cells import COLUMNS, DEFAULT
    from tests.support.local_consortium import SITES

    boost = next((word for word in words if word[0].isdigit()), DEFAULT)
    parties = [word for word in words if word != boost] or ["centre", *SITES]
    todo = [step for party in parties for step in steps(party, boost)]
    console = Console(width=max(160, Console().width))
    cells = []
    with ProcessPoolExecutor(WORKERS) as pool:
        played = pool.map(play, todo, chunksize=4)
        for cell in track(played, "playing", total=len(todo), console=console):
            cells.append(cell)
            if cell.problems:
                console.print(_complaint(cell))
            if not console.is_terminal and len(cells) % TELL_EVERY == 0:
                console.print(f"{len(cells)} of {len(todo)} cells")
    cells.sort(key=lambda cell: COLUMNS.index(cell.column))
    order = {step[:2]: place for place, step in enumerate(_in_order(todo))}
    cells.sort(key=lambda cell: order[cell[:2]])
    console.print(matrix(cells))
    bad = [cell for cell in cells if cell.problems]
    for cell in bad:
        console.print(_complaint(cell))
    ends = Counter(itertools.chain.from_iterable(cell.ends for cell in cells))
    console.print(f"{len(cells)} cells, {ends.total()} runs: {dict(ends)}; {len(bad)} bad cells")
    return 1 if bad else 0


def _in_order(todo: list[Step]) -> list[Step]:
    """Steps as they are made; the first column holds them all."""
    return [step for step in todo if step[2] == todo[0][2]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
