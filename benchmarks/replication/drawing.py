"""Figures of many panels, in one style for all of the papers' experiments."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from consortium.algorithms.base import Array

IMAGES = Path(__file__).parent.parent.parent / "docs" / "images"
LABELS = {
    "none": "non-private, pooled",
    "pooled": "pooled, private",
    "cape": "this project",
    "conv": "conventional: noise at each site",
    "local": "one site alone",
    "published": "as published, at its true ε",
    "printed": "as published, at the ε it states",
    "bare": "ADMM without noise",
    "pp": "this project",
    "ipp": "this project, with tests (IPP)",
    "claimed": "as published, at the ε it claims",
    "subject": "this project, unit subject",
    "whitened": "as published, of whitened data",
    "theorem": "formula as printed",
    "exact": "exact",
    "composition": "sum of all releases",
    "moments": "moments of Gaussian noise",
    "rival": "best published method",
    "sum": "noise as printed",
    "boost": "two vectors, as Algorithm 3.2",
    "clear": "8 bytes a number in the clear",
    "compute nodes": "other scheme, 10 compute nodes",
    "mean": "noise for a mean over participants",
}
STYLES = {
    "none": "k--",
    "pooled": "C7:",
    "cape": "C0o-",
    "conv": "C1s-",
    "local": "C2^-",
    "published": "C3v-",
    "printed": "C3v:",
    "subject": "C0o:",
    "whitened": "C6D-",
    "dp-fm": "C4x-",
    "objPert": "C5+-",
    "DPdisPCA": "C5x-",
    "DP-djICA": "C5x-",
    "random": "C7-.",
    "bare": "k--",
    "pp": "C0o-",
    "ipp": "C4d-",
    "claimed": "C3v:",
    "DVP": "C5+-",
    "PP-ADMM": "C3v-",
    "M-ADMM": "C1s-",
    "R-ADMM": "C2^-",
    "training": "C7.--",
    "theorem": "C3v-",
    "exact": "C0o-",
    "composition": "C7:",
    "moments": "C4d-",
    "test": "C3v-",
    "rival": "C3v-",
    "compute nodes": "C5x-",
    "boost": "C3v-",
    "clear": "C7:",
    "sum": "C3v-",
    "mean": "C0o-",
}


def panels(
    name: str,
    panels: Sequence[tuple[str, str, Mapping[str, tuple[Array, Array]]]],
    ylabel: str,
    yscale: str = "log",
) -> Path:
    """Draw panels (title, x label, curves by key) side by side as docs/images/NAME.png."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import NullFormatter

    columns = 2 if len(panels) <= 4 else 3
    rows = math.ceil(len(panels) / columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.2 * columns, 3.3 * rows), squeeze=False)
    for axis, (title, xlabel, curves) in zip(axes.ravel(), panels, strict=False):
        for key, (x, y) in curves.items():
            axis.plot(x, y, STYLES[key], label=LABELS.get(key, key), markersize=4, linewidth=1.2)
        scale = "linear" if xlabel == "S_C/S" else "log"
        axis.set(xscale=scale, yscale=yscale, title=title, xlabel=xlabel, ylabel=ylabel)
        axis.title.set_fontsize(9)
        axis.xaxis.set_minor_formatter(NullFormatter())
        if xlabel in ("N", "M"):
            sizes = next(iter(curves.values()))[0]
            axis.set_xticks(sizes, [f"{size:,.0f}" for size in sizes])
        axis.grid(visible=True, alpha=0.3)
    spare = axes.ravel()[len(panels) :]
    if len(spare):
        lines = {line.get_label(): line for axis in axes.ravel() for line in axis.get_lines()}
        spare[0].legend(handles=lines.values(), loc="center", fontsize=8)
    else:
        shown: set[str] = set()
        for axis, (_, _, curves) in zip(axes.ravel(), panels, strict=False):
            if not shown.issuperset(curves):
                axis.legend(fontsize=6)
                shown |= set(curves)
    for axis in spare:
        axis.set_axis_off()
    figure.tight_layout()
    path = IMAGES / f"{name}.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path
