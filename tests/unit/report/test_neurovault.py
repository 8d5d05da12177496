"""What a map's sidecar says in NeuroVault's words."""

import json
from dataclasses import replace

import numpy as np
import pytest

from consortium.algorithms.base import Result
from consortium.algorithms.findings import ImageSet
from consortium.report.image_sets import write_image_sets
from consortium.report.neurovault import about_map
from consortium.report.outputs import write_component_maps
from consortium.space.study_space import Space
from consortium.study.spec import Study
from tests.support.report_samples import (
    UNITS,
    blob,
    box_grid,
    finished,
    finished_maps,
    sample_report,
    sample_study,
)

KEYS = ("analysis_level", "map_type", "modality", "number_of_subjects", "target_template_image")


@pytest.mark.parametrize(
    ("stat", "kind"),
    [("t", "T map"), ("z", "Z map"), ("variance", "variance"), ("stderr", "other"), ("", "other")],
)
def test_a_maps_sidecar_has_neurovaults_fields(stat: str, kind: str, tmp_path) -> None:
    grid = box_grid()
    entities = {"stat": stat} if stat else {}
    images = {"x": ImageSet(np.ones((grid.features, 1)), "It is.", ("age",), entities)}
    run = finished(sample_study(), Space(grid), Result({}, images=images))
    write_image_sets(tmp_path, run)
    (path,) = tmp_path.glob("tpl-*/func/*_statmap.json")
    told = json.loads(path.read_text())
    many = sum(UNITS)
    assert [told[key] for key in KEYS] == ["group", kind, "fMRI-BOLD", many, "MNI152NLin2009cAsym"]


def test_maps_of_components_have_them_and_another_template_of_mni_is_a_generic_one(tmp_path):
    grid = box_grid()
    study = sample_study(data={"detrend": "none", "space": "MNI152NLin6Asym"})
    write_component_maps(tmp_path, finished_maps(study, grid, blob(grid, (0, 0, 0), 9.0)[:, None]))
    (path,) = tmp_path.glob("tpl-*/func/*_components.json")
    told = json.loads(path.read_text())
    assert (told["map_type"], told["target_template_image"]) == ("other", "GenericMNI")


def test_sites_that_never_answered_and_units_that_are_no_participants_are_not_counted():
    grid, study = box_grid(), sample_study()
    run = finished_maps(study, grid, blob(grid, (0, 0, 0), 9.0)[:, None])
    first, *others = run.report.sites
    absent = (first.model_copy(update={"answered": 0}), *others)
    report = sample_report(study).model_copy(update={"sites": absent})
    assert about_map(replace(run, report=report), grid)["number_of_subjects"] == sum(UNITS[1:])
    volumes = {**study.privacy.model_dump(), "unit": "timepoint"}
    plain = {"detrend": "none", "standardize": "none"}
    study = sample_study(privacy=volumes, data=plain)
    assert "number_of_subjects" not in about_map(replace(run, study=study), grid)


def test_an_image_for_each_participant_is_not_called_a_series():
    grid = box_grid()
    view = {"name": "image", "source": "fmri", "measure": "image", "image": "statmap"}
    changes = {"features": [view], "algorithm": "cca", "analysis": {"pairs": 1}}
    other = {"name": "who", "source": "table", "columns": {"age": {"low": 0, "high": 99}}}
    changes["features"] = [view, other]
    study = Study.model_validate(sample_study().model_dump() | changes)
    run = finished_maps(sample_study(), grid, blob(grid, (0, 0, 0), 9.0)[:, None])
    assert about_map(replace(run, study=study), grid, view="image")["modality"] == "Other"
