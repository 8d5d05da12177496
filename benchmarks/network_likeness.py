"""Agreement of real participants' maps with templates, also with templates that are not networks.

``python -m benchmarks.networks likeness FOLDER`` uses the participants of
`benchmarks.network_halves`, every ninth, and ten published maps, FOLDER/rsn10.nii.gz: as published,
with the regions' places permuted, and mirrored (each region has the value at its mirror image),
which remain as smooth. Most networks are their own mirror image from left to right, so these have a
row of their own; of the others, those that agree with a published map by `ALIKE` or more are
excluded. *Less strong*: participants whose series vary less along the map than along the published
one from which it was made.

The second table is for participants without networks, whose series are smooth noise of as many
volumes. *Part of the template* is the only number of a map that its template could be confirmed by:
the part of a participant's map, of norm one, that is along the template, mean over participants.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.network_halves import _centres
from benchmarks.network_pool import cosines
from benchmarks.open_cohort import smooth_series
from benchmarks.real_networks import published_maps
from benchmarks.timing import show
from consortium.algorithms.base import Array
from consortium.kernels.dual_regression import person_maps
from consortium.privacy.clipping import column_norms

PERMUTED, STEP, LEAST, ALIKE = 3, 9, 0.7, 0.5
_TINY = 1e-9
SIDES = ((-1, 1, 1),)
MIRRORS = ((1, -1, 1), (1, 1, -1), (1, -1, -1))


def likeness(folder: Path) -> None:
    """Correlate each template with the participants' mean map."""
    maps, centres = published_maps(folder), _centres(folder)
    files = sorted((folder / "rois_cc200").glob("*.1D"))[::STEP]
    people = [np.loadtxt(path).T for path in files]
    rows = []
    for name, sets in _sets(maps, centres).items():
        others = name == "mirrored otherwise"
        kept = np.concatenate([_unlike(each, maps) | (not others) for each in sets])
        told = np.concatenate([_alike(people, each) for each in sets])[kept]
        less = np.concatenate([_weaker(people, each, maps) for each in sets])[kept]
        figures = [f"{each:.2f}" for each in (told.min(), np.median(told), told.max())]
        part = f"{np.mean(told >= LEAST):.2f}"
        rows.append([name, str(len(told)), *figures, part, f"{np.median(less):.2f}"])
    show(
        f"How like their templates the mean maps of {len(people)} real participants are",
        [
            "templates",
            "maps",
            "least",
            "median",
            "most",
            f"part of {LEAST:g} or more",
            "less strong",
        ],
        rows,
    )
    _print_parts(people, maps, centres)


def _print_parts(people: list[Array], maps: Array, centres: Array) -> None:
    """Print the parts of participants' maps along the templates, with and without networks."""
    generator = np.random.default_rng(0)
    volumes = [series.shape[1] for series in people]
    noise = [smooth_series(centres, many, generator) for many in volumes]
    unit = maps / column_norms(maps)
    rows = []
    for name, each in (("real", people), ("smooth noise", noise)):
        parts = np.mean([(unit * person_maps(one, unit)).sum(axis=0) for one in each], axis=0)
        rows.append([name, *(f"{part:.2f}" for part in (parts.min(), parts.mean(), parts.max()))])
    show("Part of the template in a map", ["participants", "least", "mean", "most"], rows)


def _sets(maps: Array, centres: Array) -> Mapping[str, list[Array]]:
    generator = np.random.default_rng(0)
    return {
        "as published": [maps],
        "permuted": [generator.permutation(maps) for _ in range(PERMUTED)],
        "mirrored left to right": [_mirrored(maps, centres, signs) for signs in SIDES],
        "mirrored otherwise": [_mirrored(maps, centres, signs) for signs in MIRRORS],
    }


def _mirrored(maps: Array, centres: Array, signs: tuple[int, ...]) -> Array:
    middle = centres.mean(axis=0)
    images = middle + (centres - middle) * np.array(signs)
    return maps[np.square(images[:, None] - centres).sum(axis=2).argmin(axis=1)]


def _unlike(templates: Array, maps: Array) -> NDArray[np.bool_]:
    """Return whether each template agrees with none of the published maps."""
    return np.asarray(cosines(maps, templates).max(axis=0) < ALIKE)


def _weaker(people: list[Array], templates: Array, maps: Array) -> Array:
    """Return the fraction of participants whose series vary less along template than map."""
    return np.mean([_strengths(p, templates) < _strengths(p, maps) for p in people], axis=0)


def _strengths(series: Array, templates: Array) -> Array:
    centred, deviations = templates - templates.mean(axis=0), series.std(axis=1, keepdims=True)
    standard = (series - series.mean(axis=1, keepdims=True)) / np.maximum(deviations, _TINY)
    return np.square((centred / column_norms(centred)).T @ standard).sum(axis=1)


def _alike(people: list[Array], templates: Array) -> Array:
    unit = templates / column_norms(templates)
    mean = np.mean([person_maps(series, unit) for series in people], axis=0)
    return np.asarray((unit * mean).sum(axis=0) / column_norms(mean))
