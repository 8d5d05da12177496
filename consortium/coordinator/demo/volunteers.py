"""Simulated volunteers, once well and once ill: what illness does to outcomes in truth."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from consortium.simulation.bids import Patients, Recipe, make_consortium
from consortium.space.study_space import study_space
from consortium.study.reader import read_study
from site_agent.loading.feature_vectors import FeatureDataset

_SITE = "volunteers"
_COUNT = 40


@dataclass(frozen=True, eq=False)
class Volunteers:
    """Outcomes of the same made-up persons, as a study measures them, if they are well or ill."""

    well: NDArray[np.float64]
    ill: NDArray[np.float64]
    """V x n."""

    @property
    def moved(self) -> NDArray[np.float64]:
        """By how much illness moves each outcome, length V.

        Amplitudes are parts of a person's whole variance, and a map may hold several networks: what
        changes one network moves the outcomes of others, too.
        """
        return np.asarray((self.ill - self.well).mean(axis=1))


def measure_volunteers(
    folder: Path, study_file: Path, recipe: Recipe, patients: Patients
) -> Volunteers:
    """Make up volunteers, once well and once ill, and measure a study's first view in them.

    Parameters
    ----------
    folder : Path
        Gets their scans.
    recipe : Recipe
        Of the study's persons; volunteers have a seed of their own, and one scanner.
    patients : Patients
        What those who are ill have.
    """
    study = read_study(study_file)
    space = study_space(study, study_file.parent)
    own = replace(recipe, sites=(_SITE,), subjects=_COUNT, seed=recipe.seed + 1, scanners=())
    found = []
    for name, part in (("well", replace(patients, share=0.0)), ("ill", replace(patients, share=1))):
        made = make_consortium(folder / name, replace(own, patients=part))
        cache = folder / name / "cache"
        found.append(FeatureDataset(made.sites[_SITE], study, space, cache).table())
    return Volunteers(*(table[: space.views[0].size] for table in found))
