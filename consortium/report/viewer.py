"""The viewer: a page next to the report for exploring every map that was drawn.

It is one file, which fetches nothing: it contains NiiVue from nilearn, the template's brain and the
maps. A policy of the page allows no other script and no request to a server.
"""

import base64
import gzip
import hashlib
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from matplotlib import colormaps
from nibabel.affines import apply_affine

from consortium.base.atomic import write_text
from consortium.report.brain_figures import inside_brain, template
from consortium.report.finished import Finished
from consortium.report.pictures import PALETTE
from consortium.report.shown_maps import ShownMap, full_name, peak_region, shown_maps
from consortium.report.templating import plain_environment
from consortium.space.grid import Grid
from consortium.space.sampling import Places, sample

NAME = "viewer.html"
STEPS = 64
"""Colours of each half of the palette."""


def write_viewer(folder: Path, run: Finished) -> Path | None:
    """Write the viewer, if there is a map to look at.

    Raises OutputError if the folder can't be written.
    """
    maps = [_told(run, shown) for shown in shown_maps(run)]
    if not maps:
        return None
    scripts = _library(), _own_script()
    page = (
        plain_environment("consortium.report")
        .get_template("viewer.html.j2")
        .render(
            title=run.study.heading,
            space=run.study.data.space,
            maps=maps,
            scripts=scripts,
            policy=" ".join(f"'sha256-{_digest(script)}'" for script in scripts),
            brain=_brain(),
            colours={"up": _colours(up=True), "down": _colours(up=False)},
        )
    )
    return write_text(folder / NAME, page)


def _told(run: Finished, shown: ShownMap) -> dict[str, Any]:
    """Return one map for the viewer's script: its image, and its initial place and threshold."""
    image = shown.grid.image(np.asarray(shown.values, dtype=np.float64))
    return {
        "ident": shown.ident,
        "name": full_name(run, shown),
        "units": shown.units,
        "threshold": shown.threshold,
        "top": max(shown.top, 1.01 * shown.threshold),
        "peak": [round(float(mm), 1) for mm in shown.peak],
        "place": peak_region(run, shown).text,
        "image": _packed(_in_steps(image)),
        "drawn": _packed(_in_steps(_drawn(shown))),
    }


def _drawn(shown: ShownMap) -> nib.Nifti1Image:
    """Return a map on the template's voxels as in the page's pictures, zero outside the brain."""
    volume = np.zeros(shown.grid.shape)
    volume[shown.grid.mask] = shown.values
    brain = inside_brain()
    values = np.zeros(brain.shape)
    values[brain] = sample(volume, _brain_places(shown.grid), order=1)
    return nib.Nifti1Image(values, template().affine)


@lru_cache(maxsize=2)
def _brain_places(grid: Grid) -> Places:
    """Return the places of the template's voxels in the brain, in a grid's own indices."""
    to_grid = np.linalg.inv(grid.affine) @ template().affine
    return np.asarray(apply_affine(to_grid, np.argwhere(inside_brain())).T)


def _in_steps(image: nib.Nifti1Image) -> nib.Nifti1Image:
    """Return the image in 65,536 steps from the smallest value to the largest."""
    image.set_data_dtype(np.int16)
    return image


def _packed(image: nib.Nifti1Image) -> str:
    return base64.b64encode(gzip.compress(image.to_bytes(), mtime=0)).decode()


@lru_cache(maxsize=1)
def _brain() -> str:
    """Return the template's brain in 8 bits, packed."""
    brain = template()
    values = np.asarray(brain.dataobj, dtype=np.float64)
    shades = np.round(255 * values / values.max()).astype(np.uint8)
    return _packed(nib.Nifti1Image(shades, brain.affine))


@lru_cache(maxsize=1)
def _library() -> str:
    """Return NiiVue (BSD-2-Clause), from nilearn."""
    return (files("nilearn") / "_assets" / "js" / "niivue.umd.js").read_text(encoding="utf-8")


def _own_script() -> str:
    return (files("consortium.report") / "templates" / "viewer.js").read_text(encoding="utf-8")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _colours(*, up: bool) -> dict[str, list[int]]:
    """Return half of the pictures' palette, without white, from the smallest size up."""
    places = np.linspace(*((0.6, 1.0) if up else (0.4, 0.0)), STEPS)
    shades = np.round(255 * colormaps[PALETTE](places)).astype(int)
    table = {name: shades[:, k].tolist() for k, name in enumerate("RGB")}
    return {
        **table,
        "A": [0] + [255] * (STEPS - 1),
        "I": np.linspace(0, 255, STEPS).round().astype(int).tolist(),
    }
