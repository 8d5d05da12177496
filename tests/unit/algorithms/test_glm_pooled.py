"""Without noise `glm` is what others' software finds over pooled data."""

import nibabel
import numpy as np
import pandas
import pytest
import statsmodels.api
from nilearn.glm.second_level import SecondLevelModel

from benchmarks.glm_data import site_sizes
from benchmarks.glm_runs import run_trial, trial_of

RANDOM = pytest.mark.parametrize("seed", range(12))


def random_study(seed, covariates=None):
    """Sites, group, covariates of any number and outcomes, all of them within the limits."""
    generator = np.random.default_rng(seed)
    sites, some = int(generator.integers(2, 7)), int(generator.integers(0, 5))
    covariates = some if covariates is None else covariates
    persons, entries = int(generator.integers(60, 240)), int(generator.integers(1, 9))
    sizes = site_sizes(persons, sites, generator)
    site = np.repeat(np.arange(sites), sizes)
    group = generator.random(len(site)) < generator.uniform(0.2, 0.8, sites)[site]
    group[0], group[1] = False, True
    offsets = generator.uniform(-0.5, 0.5, (covariates, sites))[:, site]
    noise = generator.uniform(-0.6, 0.6, (covariates, len(site)))
    x = offsets + noise + 0.2 * (group - 0.5)
    slopes = generator.normal(0, 0.2, (entries, covariates))
    scanner = generator.normal(0, 0.3, (entries, sites))[:, site]
    y = scanner + slopes @ x + np.outer(generator.normal(0, 0.3, entries), group)
    y += 0.4 * generator.standard_normal(y.shape)
    return np.clip(y, -3.9, 3.9), group, x, site


def effects_of(study, **analysis):
    y, group, x, site = study
    trial = trial_of(y, group, x, site, norms={"deviation": 1.0}, **analysis)
    return run_trial(trial, 0.0, np.random.default_rng(0)).arrays


def design_of(group, x, site):
    constants = (site[:, None] == np.unique(site)).astype(float)
    return np.column_stack([group.astype(float), x.T, constants])


@RANDOM
def test_effects_are_those_of_statsmodels(seed):
    study = random_study(seed)
    found = effects_of(study)["effect"]
    design = design_of(*study[1:])
    expected = [statsmodels.api.OLS(y, design).fit().params[0] for y in study[0]]
    assert found == pytest.approx(expected, abs=1e-8)


@RANDOM
def test_effects_are_those_of_nilearns_second_level(seed):
    y, group, x, site = study = random_study(seed)
    # Nilearn keeps maps in single precision unless they come in double.
    maps = [nibabel.Nifti1Image(person[:, None, None], np.eye(4)) for person in y.T]
    mask = nibabel.Nifti1Image(np.ones((len(y), 1, 1), dtype=np.uint8), np.eye(4))
    names = [f"c{n}" for n in range(design_of(group, x, site).shape[1])]
    model = SecondLevelModel(mask_img=mask, smoothing_fwhm=None)
    model.fit(maps, design_matrix=pandas.DataFrame(design_of(group, x, site), columns=names))
    image = model.compute_contrast("c0", output_type="effect_size")
    assert effects_of(study)["effect"] == pytest.approx(image.get_fdata().ravel(), abs=1e-8)


def coefficients_of_statsmodels(study):
    """Of group and covariates; of the last in units of their public deviation, 0.5."""
    design, count = design_of(*study[1:]), 1 + len(study[2])
    found = [statsmodels.api.OLS(y, design).fit().params[:count] for y in study[0]]
    return np.array(found) * np.array([1.0, *[0.5] * (count - 1)])


@RANDOM
def test_slopes_of_a_column_with_limits_are_those_of_statsmodels(seed):
    study = random_study(seed, covariates=3)
    analysis = {"contrasts": {"z": "z01"}, "norms": {"deviation": 1.0}, "groups": {}}
    result = run_trial(trial_of(*study, **analysis), 0.0, np.random.default_rng(0))
    expected = coefficients_of_statsmodels(study)[:, 1]
    assert result.arrays["effect"] == pytest.approx(expected, abs=1e-8)


@RANDOM
def test_all_coefficients_are_those_of_statsmodels(seed):
    study = random_study(seed)
    trial = trial_of(*study, contrasts="all", norms={"deviation": 1.0})
    result = run_trial(trial, 0.0, np.random.default_rng(0))
    if len(study[2]):
        found = np.array([row[3:] for row in result.tables["coefficients"].rows])
        assert found == pytest.approx(coefficients_of_statsmodels(study), abs=1e-8)


@RANDOM
def test_all_coefficients_beside_a_slope_are_those_of_statsmodels(seed):
    study = random_study(seed, covariates=3)
    formula = {"formula": "z01 + z11 + z21 + dx1", "groups": {}}
    trial = trial_of(*study, contrasts="all", norms={"deviation": 1.0}, **formula)
    result = run_trial(trial, 0.0, np.random.default_rng(0))
    found = np.array([row[3:] for row in result.tables["coefficients"].rows])
    # The group is a plain column here: of -1 and 1, in units of a public deviation, 0.5.
    expected = coefficients_of_statsmodels(study)[:, [1, 2, 3, 0]] * [1.0, 1.0, 1.0, 0.25]
    assert found == pytest.approx(expected, abs=1e-8)


def test_means_of_outcomes_are_the_means_of_their_effects():
    study = random_study(5)
    named = {"two": ["brain1", "brain2"], "all": ["brain*"]}
    trial = trial_of(*study, norms={"deviation": 1.0}, averages=named)
    found = run_trial(trial, 0.0, np.random.default_rng(0)).arrays
    expected = [found["effect"][:2].mean(), found["effect"].mean()]
    assert found["average_effect"] == pytest.approx(expected, abs=1e-12)
