"""CAPE compared with pooled data, the conventional way, one site and the best rival, in one figure.

``python -m benchmarks.replication.comparisons`` prints a table and writes
docs/images/comparisons.png in seconds. It reads the numbers from the tables of the evidence pages,
each of which names the benchmark that measured it. At every ε the best rival is the published
method with the smallest error.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.replication.drawing import panels
from benchmarks.timing import show
from consortium.algorithms.base import Array

PAGES = Path(__file__).parents[2] / "docs" / "replication"


class Case(NamedTuple):
    """Rows of a table, one for each ε."""

    title: str
    file: str
    at: str
    """First cells of the rows, before ε."""
    rivals: tuple[str, ...] = ("as published",)
    best: float = 0.0
    """Number from which the error is counted downwards, 0 where the table contains errors."""
    names: tuple[str, ...] = ("non-private", "pooled", "cape", "conventional", "one site")


KEYS = ("none", "pooled", "cape", "conv", "local")
ALL_OF_REGRESSION = ("as published", "dp-fm", "objective perturbation")
CASES = (
    Case(
        "pca, synthetic: energy lost",
        "pca.md",
        "synthetic, 200, 50, 10,000",
        ("as published, at its true ε", "DPdisPCA"),
        1.0,
        ("", *KEYS[1:3], "conventional", "one site"),
    ),
    Case("regression, D = 20: error of w", "regression.md", "20, 10,000", ALL_OF_REGRESSION),
    Case("regression, Crime: loss", "regression.md", "", ALL_OF_REGRESSION),
    Case("network, N = 10,000: misclassified, %", "network.md", "", best=100.0),
    Case("tensor, mixture, D = 50: error", "tensor.md", "mixture, 50, 30,000"),
    Case("tensor, topics, D = 50: error", "tensor.md", "topics, 50, 30,000"),
    Case(
        "ica, M = 256: gain index",
        "tables/ica.tsv",
        "M = 256, ε =",
        ("as published", "its updates on whitened data"),
    ),
    Case(
        "cca, fMRI+EEG, N = 20,000: error of r",
        "cca.md",
        "fMRI+EEG, 20,000, 5 + 5",
        names=("no privacy", "pooled", "cape, 3 collude", "conventional", "one site"),
    ),
)


def table_rows(file: Path) -> Iterator[dict[str, str]]:
    """Return every row of a file's tables, cells by heading; Markdown or tab-separated."""
    mark = "\t" if file.suffix == ".tsv" else "|"
    heading: list[str] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(mark)]
        if mark not in line:
            heading = []
        elif not heading:
            heading = cells
        else:
            yield dict(zip(heading, cells, strict=True))


def errors(case: Case) -> dict[str, tuple[Array, Array]]:
    """Return ε and errors of the schemes and of the best rival."""
    found: list[tuple[float, dict[str, float]]] = []
    for row in table_rows(PAGES / case.file):
        cells = {name.replace("`", ""): cell for name, cell in row.items()}
        last = next((k for k, name in enumerate(cells) if "ε" in name), 0)
        where = " | ".join(list(cells.values())[: last + 1])
        at = re.fullmatch(re.escape(case.at) + r"[ |]*([\d.]+)", where)
        if at and case.rivals[0] in cells:
            found.append((float(at[1]), _errors(case, cells)))
    x = np.array([epsilon for epsilon, _ in found])
    return {key: (x, np.array([row[key] for _, row in found])) for key in found[0][1]}


def _errors(case: Case, cells: Mapping[str, str]) -> dict[str, float]:
    def error(name: str) -> float:
        return abs(case.best - float(cells[name]))

    schemes = {key: error(n) for key, n in zip(KEYS, case.names, strict=True) if n}
    return schemes | {"rival": min(map(error, case.rivals))}


def ratios(key: str) -> Array:
    """Return the errors of a method over those of CAPE, at all points."""
    found = [errors(case) for case in CASES]
    return np.concatenate([each[key][1] / each["cape"][1] for each in found])


def main() -> None:
    rows = []
    for key in ("pooled", "conv", "local", "rival"):
        each = ratios(key)
        larger, smaller = (each > 1).sum(), (each < 1).sum()
        rows.append([key, str(len(each)), str(larger), str(smaller), f"{np.median(each):.2f}"])
    show(
        "Errors over those of CAPE, at equal true ε",
        ["method", "points", "larger", "smaller", "median ratio"],
        rows,
    )
    drawn = [(case.title, "ε", errors(case)) for case in CASES]
    print(panels("comparisons", drawn, "error"))


if __name__ == "__main__":
    main()
