"""How well the maps of a demo agree with what its scans were made of."""

from __future__ import annotations

import json
from pathlib import Path

import nibabel as nib
import numpy as np
from nilearn.image import resample_img

from consortium.coordinator.demo.layout import DemoFolders
from consortium.report.bids import map_stem
from consortium.space.study_space import study_space
from consortium.study.spec import Study


def score_maps(place: DemoFolders, study: Study) -> str:
    """Compare every true network with its best map.

    Returns
    -------
    str
        A line for each network with its correlation, on the study's grid.
    """
    scores = network_scores(place, study)
    lines = [f"  {name:<22} {score:.3f}" for name, score in scores.items()]
    least = min(scores.values())
    return "\n".join(["Correlation of each true network with its best map:", *lines]) + (
        f"\nLeast correlation: {least:.3f}"
    )


def network_scores(place: DemoFolders, study: Study) -> dict[str, float]:
    """Largest absolute correlation of each true network with any map."""
    space = study_space(study, place.files.study.parent)
    grid = space.maps if getattr(study.analysis, "maps", False) else space.grid
    folder = place.files.out / f"tpl-{study.data.space}" / "func"
    maps = nib.load(folder / f"{map_stem(study, grid)}_components.nii.gz").get_fdata()[grid.mask]
    truth = resample_img(
        nib.load(place.truth / "networks.nii.gz"),
        target_affine=grid.affine,
        target_shape=grid.shape,
        interpolation="linear",
        force_resample=True,
        copy_header=True,
    ).get_fdata()[grid.mask]
    names = _network_names(place.truth)
    count = truth.shape[1]
    table = np.abs(np.corrcoef(truth.T, maps.T)[:count, count:])
    return {name: float(row.max()) for name, row in zip(names, table, strict=True)}


def _network_names(truth: Path) -> list[str]:
    return list(json.loads((truth / "truth.json").read_text(encoding="utf-8"))["networks"])
