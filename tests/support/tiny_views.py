"""Studies of feature vectors over the tiny images."""

import nibabel as nib
import numpy as np
import yaml

from consortium.space.study_space import Space, ViewSpace
from consortium.study.reader import parse_study
from consortium.study.spec import Study
from tests.support.tiny_images import AFFINE, tiny_grid


def view_study(*views: dict, **data) -> Study:
    """Return a study of some views; by default, images times a thousandth."""
    values = {
        "study": "vectors",
        "sites": ["north", "east", "south", "west"],
        "data": {"standardize": "none", "scale": 0.001} | data,
        "features": list(views),
        "privacy": {"epsilon": 8, "delta": 1e-5, "colluding_sites": 1},
        "algorithm": "average",
    }
    return parse_study(yaml.safe_dump(values))


def view_space(study: Study, components: np.ndarray | None = None) -> Space:
    """Return the study's space over the tiny grid."""
    grid = tiny_grid()
    sizes = {"table": lambda v: len(v.labels), "eeg": lambda v: len(v.labels)}
    views = []
    for view in study.features:
        maps = components if view.maps_file else None
        own = maps.shape[1] if maps is not None else grid.features
        size = sizes[view.source](view) if view.source in sizes else own
        views.append(ViewSpace(view, size, maps))
    return Space(grid, views=tuple(views))


def image(values: np.ndarray, step: float = 2.0) -> nib.Nifti1Image:
    """Return an image in float32, with the repetition time in seconds."""
    made = nib.Nifti1Image(values.astype(np.float32), AFFINE)
    if values.ndim == 4:
        made.header.set_xyzt_units("mm", "sec")
        made.header.set_zooms((*made.header.get_zooms()[:3], step))
    return made
