"""Where a map stands out: its clusters of voxels and their peaks, as nilearn tabulates them."""

import warnings

import numpy as np

from consortium.base.formatting import count, number
from consortium.report.finished import Finished
from consortium.report.shown_maps import ShownMap

MOST = 50
"""Peaks of a map that the page lists; the image has all."""
Rows = tuple[tuple[str, ...], ...]


def columns(shown: ShownMap, *, named: bool) -> tuple[str, ...]:
    """Headings of `rows`."""
    place = ("region",) if named else ()
    return ("cluster", "x, y, z in mm", *place, f"peak {shown.units}", "size in mm³")


def rows(run: Finished, shown: ShownMap) -> Rows:
    """Peaks of every cluster, the largest value of a sign first; a cluster's further ones below it.

    Returns
    -------
    tuple of tuple of str
        Cluster, place, region (if the study names an atlas for its report), value and, of a
        cluster's first peak, its size.
    """
    # Importing nilearn costs seconds, which only those who draw should pay.
    from nilearn.reporting import get_clusters_table

    image = shown.grid.image(shown.values.astype(np.float32))
    # What is below the threshold is zero here, so that anything smaller than it will do.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No clusters found")  # of one of the two signs
        found = get_clusters_table(image, 0.99 * shown.threshold, two_sided=True)
    anatomy, rows_found = run.legend.anatomy, []
    for name, x, y, z, top, size in list(found.itertuples(index=False, name=None))[:MOST]:
        peak = np.array([x, y, z], dtype=np.float64)
        place = ", ".join(f"{round(mm):d}" for mm in peak.tolist()).replace("-", "−")
        region = () if anatomy is None else (anatomy.name_at(peak) or "–",)
        value = number(float(top)).replace("-", "−")
        rows_found.append((str(name), place, *region, value, f"{size:,.0f}" if size != "" else ""))
    return tuple(rows_found)


def caption(shown: ShownMap) -> str:
    """What the table holds."""
    return (
        f"Peaks of {shown.name}: {count(shown.coloured, 'voxel')} in clusters that touch, by sign; "
        "letters are further peaks of a cluster, 8 mm apart or more. All voxels are in the image"
        f" files, and at most {MOST} peaks here."
    )
