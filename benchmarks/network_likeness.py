"""How like their templates real persons' maps are, and those of templates that are no networks.

``python -m benchmarks.networks likeness FOLDER`` takes the persons of `benchmarks.network_halves`,
every ninth, and ten published maps, FOLDER/rsn10.nii.gz: as they are, with the regions' places
permuted, and mirrored (each region has the value at its mirror image), which stay as smooth.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.network_halves import _centres
from benchmarks.real_networks import published_maps
from benchmarks.timing import show
from consortium.algorithms.base import Array
from consortium.kernels.dual_regression import person_maps
from consortium.privacy.clipping import column_norms

PERMUTED, STEP, LEAST = 3, 9, 0.7
MIRRORS = ((1, -1, 1), (1, 1, -1), (1, -1, -1))


def likeness(folder: Path) -> None:
    """Correlation of each template with the persons' mean map."""
    maps, centres = published_maps(folder), _centres(folder)
    files = sorted((folder / "rois_cc200").glob("*.1D"))[::STEP]
    people = [np.loadtxt(path).T for path in files]
    rows = []
    for name, sets in _sets(maps, centres).items():
        told = np.concatenate([_alike(people, templates) for templates in sets])
        figures = [f"{each:.2f}" for each in (told.min(), np.median(told), told.max())]
        rows.append([name, str(len(told)), *figures, f"{np.mean(told >= LEAST):.2f}"])
    show(
        f"How like their templates the mean maps of {len(people)} real persons are",
        ["templates", "maps", "least", "median", "most", f"part of {LEAST:g} or more"],
        rows,
    )


def _sets(maps: Array, centres: Array) -> Mapping[str, list[Array]]:
    generator, middle = np.random.default_rng(0), centres.mean(axis=0)
    mirrored = []
    for signs in MIRRORS:
        images = middle + (centres - middle) * np.array(signs)
        nearest = np.square(images[:, None] - centres).sum(axis=2).argmin(axis=1)
        mirrored.append(maps[nearest])
    permuted = [generator.permutation(maps) for _ in range(PERMUTED)]
    return {"as published": [maps], "permuted": permuted, "mirrored": mirrored}


def _alike(people: list[Array], templates: Array) -> Array:
    unit = templates / column_norms(templates)
    mean = np.mean([person_maps(series, unit) for series in people], axis=0)
    return np.asarray((unit * mean).sum(axis=0) / column_norms(mean))
