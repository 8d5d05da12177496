"""A whole study of persons in one process: tables, images and EEG in four formats."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from consortium.opened_study import OpenedStudy
from consortium.simulation.simulation import Simulation
from consortium.space.study_space import study_space
from consortium.study.reader import parse_study
from consortium.study.spec import Study
from site_agent.loading.feature_vectors import FeatureDataset
from site_agent.loading.open import open_dataset
from tests.support.fusion_bids import FusionMade, make_fusion_consortium
from tests.support.fusion_person import CONTRAST, FusionRecipe

SITES = ("north", "east", "south", "west")
RECIPE = FusionRecipe(SITES, 6, 3, volumes=24, trials=6, one_sided=6)
VIEWS = [
    {"name": "who", "source": "table", "columns": {"age": {"low": 18, "high": 90}}},
    {
        "name": "networks",
        "source": "fmri",
        "measure": "components",
        "components": "networks.nii.gz",
    },
    {"name": "contrast", "source": "fmri", "measure": "image", "image": CONTRAST},
    {
        "name": "erp",
        "source": "eeg",
        "task": "oddball",
        "channels": ["Fz", "Cz", "Pz"],
        "events": ["target"],
    },
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> FusionMade:
    return make_fusion_consortium(tmp_path_factory.mktemp("consortium") / "made", RECIPE)


def opened(made: FusionMade, folder: Path, scheme: str) -> tuple[Study, list[FeatureDataset]]:
    shutil.copy(made.truth / "networks.nii.gz", folder)
    content = {
        "study": "fusion",
        "sites": list(SITES),
        "participants": dict.fromkeys(SITES, 10),
        "data": {"task": "oddball", "standardize": "none", "scale": 0.001},
        "features": VIEWS,
        "privacy": {
            "epsilon": 8,
            "delta": 1e-5,
            "scheme": scheme,
            "boost": "exact",
            "colluding_sites": 1,
        },
        "algorithm": "pca",
        "analysis": {"components": 3, "bound": 5.0},
    }
    study = parse_study(yaml.safe_dump(content))
    space, cache = study_space(study, folder), folder / "cache"
    data = [open_dataset(made.sites[site], OpenedStudy(study, space), cache) for site in SITES]
    assert all(isinstance(each, FeatureDataset) for each in data)
    return study, data


def test_four_formats_lead_to_the_components_of_all_persons(
    made: FusionMade, tmp_path: Path
) -> None:
    study, data = opened(made, tmp_path, "none")
    assert [each.lengths for each in data] == [(1,) * 4] * 4  # of six, two lack something
    result = Simulation(study, data, 0).run()
    persons = np.hstack([each.table() for each in data])
    values, vectors = np.linalg.eigh(persons @ persons.T / persons.shape[1])
    np.testing.assert_allclose(result.arrays["eigenvalues"], values[::-1][:3], rtol=1e-4)
    alike = np.abs(result.arrays["basis"].T @ vectors[:, ::-1][:, :3])
    np.testing.assert_allclose(alike, np.eye(3), atol=1e-2)


def test_everybody_in_a_private_study_counts_once(made: FusionMade, tmp_path: Path) -> None:
    study, data = opened(made, tmp_path, "cape")
    simulation = Simulation(study, data, 0)
    shape = simulation.plan.shape
    assert shape.units == shape.samples == (4, 4, 4, 4)
    assert shape.views == data[0].extent.views
    assert np.isfinite(simulation.run().arrays["basis"]).all()
