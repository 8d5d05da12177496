"""The picture of the guide to open cohorts: maps that a release confirmed, of ``make demo``.

``python -m benchmarks.open_picture DEMO TARGET`` reads the output of the demo's study with an open
cohort.
"""

import csv
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import nibabel
import numpy as np
from nilearn.plotting import plot_glass_brain

SHOWN = 3
_THRESHOLD = 2.0


def main(demo: Path, target: Path) -> None:
    """Draw the first maps that were found, with their strengths in the hospitals."""
    out = demo / "open" / "output"
    (image,) = out.glob("tpl-*/func/*_components.nii.gz")
    (table,) = out.glob("tables/*components_results.tsv")
    with table.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    maps = nibabel.load(image)
    values = maps.get_fdata(dtype=np.float32)
    figure, axes = plt.subplots(SHOWN, 1, figsize=(8, 2.3 * SHOWN))
    for k, axis in enumerate(axes):
        row = rows[k]
        title = (
            f"{row['network']}: expected correlation {float(row['expected correlation']):.2f}, "
            f"strength {float(row['strength in hospitals']):.2f} of the open cohort's"
        )
        one = nibabel.Nifti1Image(values[..., k], maps.affine)
        plot_glass_brain(
            one, axes=axis, figure=figure, threshold=_THRESHOLD, display_mode="lyrz", colorbar=False
        )
        axis.set_title(title, fontsize=9)
    figure.savefig(target, dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
