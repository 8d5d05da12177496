"""The example studies in configs/ can be read and planned."""

import re
from pathlib import Path

import numpy as np
import pytest

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Places, Shape, SurfacePlaces, Templates
from consortium.kernels.surface_modes import surface_modes
from consortium.space.open_cohort import read_open_cohort
from consortium.study.plan import make_plan
from consortium.study.reader import read_study
from consortium.views.table import TableView
from tests.support.surfaces import sphere

STUDIES = sorted(
    path
    for path in (Path(__file__).parents[2] / "configs").glob("*.yaml")
    if re.search(r"^study:", path.read_text(encoding="utf-8"), re.MULTILINE)
)


POINTS, TRIANGLES = sphere(150)
SIDE = surface_modes(POINTS, TRIANGLES, np.ones(150, dtype=bool))
CORTEX = SurfacePlaces(np.concatenate([POINTS, POINTS]), lambda: (SIDE, SIDE))
"""Two spheres of as many vertices as images have voxels."""


def sizes(study, images=300):
    """Views with their numbers of entries; of images as many as said, of networks ten."""

    def size(view):
        return 10 if view.source == "fmri" and view.components else len(view.labels) or images

    return tuple((view.name, size(view)) for view in study.features)


def table_of(path, study):
    """The table of an open cohort that a study names."""
    name = study.analysis.open_file or ""
    return read_open_cohort(path.parent / name, "") if name.endswith(".tsv") else None


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_an_example_is_within_its_promise(path):
    study = read_study(path)
    views = sizes(study)
    features = sum(size for _, size in views) or 500
    persons = (5_000,) * len(study.sites)
    maps = Templates(np.eye(features, 20)) if study.templates else None
    places = Places(8.0 * np.argwhere(np.ones((10, 10, 3))), 512.0)
    shape = Shape(
        *(features, persons, persons, "subject", 4 * features, views),
        templates=maps,
        image_places=places,
        surface_places={view.name: CORTEX for view in study.features if view.mesh_files},
        open_cohort=table_of(path, study),
    )
    plan = make_plan(study, shape)
    assert plan.epsilon <= study.privacy.epsilon * (1 + 1e-9)


def test_every_analysis_of_persons_has_an_example():
    shown = {read_study(path).algorithm for path in STUDIES}
    assert shown >= {name for name, each in REGISTRY.items() if each.takes == "features"}
    assert any(isinstance(v, TableView) for path in STUDIES for v in read_study(path).features)
