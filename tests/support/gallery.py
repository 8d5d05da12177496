"""The worked examples of the gallery, run as they stand."""

import runpy
from pathlib import Path

import matplotlib as mpl
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("plot_*.py"))


def script(name: str) -> Path:
    """Return an example by its name without its number."""
    (found,) = EXAMPLES.glob(f"plot_[0-9][0-9]_{name}.py")
    return found


def run(path: Path, folder: Path, patch: pytest.MonkeyPatch) -> tuple[dict[str, object], int]:
    """Run a script as it would be on its own; returns its names, and how many marks it drew."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    patch.setenv("TMPDIR", str(folder))
    patch.setattr("tempfile.tempdir", None)
    plt.close("all")
    names = runpy.run_path(str(path), run_name="__main__")
    axes = [axis for number in plt.get_fignums() for axis in plt.figure(number).axes]
    marks = sum(len(axis.lines) + len(axis.images) + len(axis.collections) for axis in axes)
    plt.close("all")
    return names, marks
