"""Draw the result of the example on each analysis's page.

``python docs/example_pictures.py [NAME ...]`` runs the examples and writes
``docs/images/example-NAME.png``. A table of numbers with intervals is drawn as intervals, maps as
glass brains.
"""

import contextlib
import io
import re
import runpy
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib
import pandas as pd
from matplotlib import pyplot as plt

from consortium.errors import ConsortiumError

DOCS = Path(__file__).parent
PAGES = sorted(path for path in (DOCS / "analyses").glob("*.md") if path.stem != "index")
EXAMPLE = re.compile(r"^## Example\n.*?```python\n(.*?)```\n.*?```text\n(.*?)```$", re.S | re.M)
COLOUR, OTHER = "#0b5c6b", "#9aa7b2"


def example(page: Path) -> tuple[str, str]:
    """Return the code of a page's example, and the output that the page shows."""
    found = EXAMPLE.search(page.read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(f"{page.name}: an example with its output is required, none was found.")
    return found[1], found[2]


def run(code: str) -> tuple[dict[str, Any], str]:
    """Run an example in a folder of its own; returns its names, and its output."""
    output = io.StringIO()
    with (
        TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(output),
    ):
        script = Path(folder, "example.py")
        script.write_text(code, encoding="utf-8")
        names = runpy.run_path(str(script))
    return names, output.getvalue()


def draw(result: Any, path: Path) -> None:
    """Draw a result: its maps, or the first table that has intervals or else results."""
    try:
        _draw_maps(result, path)
    except (AttributeError, ConsortiumError):
        tables = [pd.DataFrame(table) for table in result.tables.values()]
        bounded = [table for table in tables if any(x.endswith("low") for x in table.columns)]
        bounded.sort(key=lambda table: "statistic" not in table)
        results = [table for table in tables if {"coefficient", "weight"} & {*table.columns}]
        _draw_table((bounded + results)[0], path)


def _draw_maps(result: Any, path: Path) -> None:
    from nilearn.image import index_img
    from nilearn.plotting import plot_glass_brain

    maps = result.components_img_
    figure, axes = plt.subplots(1, maps.shape[-1], figsize=(9, 2.6))
    for k, axis in enumerate(axes):
        plot_glass_brain(index_img(maps, k), axes=axis, display_mode="x", colorbar=False)
        axis.set_title(f"map {k + 1}", fontsize=10)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw_table(table: pd.DataFrame, path: Path) -> None:
    numbers = [name for name in table.columns if f"{name} low" in table.columns]
    value = numbers[0] if numbers else _first_number(table)
    low, high = (f"{value} low", f"{value} high") if numbers else ("low", "high")
    name = "entry" if "entry" in table else table.columns[0]
    shown = table[table[value].notna()].iloc[::-1].reset_index(drop=True)
    labels = [f"{each:.3g}" if isinstance(each, float) else str(each) for each in shown[name]]
    if "statistic" in shown:
        labels = [f"{a}: {b}" for a, b in zip(labels, shown["statistic"], strict=True)]
    figure, axis = plt.subplots(figsize=(6.4, 0.8 + 0.34 * len(shown)), layout="constrained")
    axis.axvline(0, color=OTHER, linewidth=1)
    if low in shown and high in shown:
        axis.hlines(shown.index, shown[low], shown[high], color=COLOUR, linewidth=2)
    axis.plot(shown[value], shown.index, "o", color=COLOUR)
    axis.set_yticks(shown.index, labels)
    words = value.replace("persons", "participants")
    axis.set_xlabel(f"{words}, with its interval" if low in shown else words)
    if shown[name].dtype != object:
        axis.set_ylabel(name)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _first_number(table: pd.DataFrame) -> str:
    for name in ("effect", "persons", "coefficient", "weight"):
        if name in table:
            return name
    return str(table.select_dtypes("number").columns[-1])


def main() -> None:
    """Draw the examples whose names are given, or all."""
    matplotlib.use("agg")
    for page in PAGES:
        if page.stem in sys.argv[1:] or not sys.argv[1:]:
            names, output = run(example(page)[0])
            draw(names["result"], DOCS / "images" / f"example-{page.stem}.png")
            sys.stdout.write(f"{page.stem}\n{output}")


if __name__ == "__main__":
    main()
