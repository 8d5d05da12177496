"""Slopes, all coefficients and means of outcomes: intervals hold what they promise."""

from dataclasses import replace

import numpy as np

from benchmarks.glm_data import make_people
from benchmarks.glm_runs import make_trial, noise_of, run_trial
from consortium.algorithms.glm.centre import Glm

CELL = (600, 20, 6)
RUNS = 40
MEANS = {"half": ["brain[1-9]"], "all": ["brain*"]}


def runs_of(**analysis):
    for seed in range(RUNS):
        generator = np.random.default_rng((seed, 77))
        people = make_people(*CELL, generator)
        yield people, run_trial(make_trial(people, **analysis), noise_of(4, CELL[2]), generator)


def test_intervals_of_a_slope_cover_and_its_forecast_is_near():
    covered, squared, stated, forecast = [], [], [], []
    for people, result in runs_of(contrasts={"age": "age1"}, groups={}):
        truth, found = people.slopes[:, 0] / people.deviation, result.arrays
        covered.append(np.mean((found["low"] <= truth) & (truth <= found["high"])))
        squared.append(np.mean((found["effect"] - truth) ** 2))
        stated.append(np.mean(found["error"] ** 2))
        forecast.append(result.numbers["forecast_error"] ** 2)
    assert 0.93 < np.mean(covered) < 0.995
    assert 0.95 < np.sqrt(np.mean(stated) / np.mean(squared)) < 1.2
    assert 0.9 < np.sqrt(np.mean(forecast) / np.mean(stated)) < 1.15


def test_every_coefficient_and_every_mean_is_known_as_well_as_is_said():
    away, means = [], []
    for people, result in runs_of(contrasts="all", averages=MEANS):
        rows = np.array([row[2:] for row in result.tables["coefficients"].rows])
        errors = np.array([row[5:] for row in result.tables["coefficients-errors"].rows])
        chance, noise = np.diag(errors[:, :4]), np.diag(errors[:, 4:])
        truth = np.column_stack([people.truth, people.slopes]) / people.deviation[:, None]
        away.append(np.abs(rows[:, 1:] - truth) / np.sqrt(rows[:, :1] * chance + noise))
        found, each = result.arrays, truth[:, 0]
        wanted = np.array([each[:9].mean(), each.mean()])
        means.append((found["average_low"] <= wanted) & (wanted <= found["average_high"]))
    covered = (np.array(away) < 1.96).mean(axis=(0, 1))
    assert np.all((covered > 0.93) & (covered < 0.995))
    assert np.mean(means) > 0.9


def test_all_coefficients_cost_the_contrast_a_fifth():
    people = make_people(*CELL, np.random.default_rng(0))
    errors = []
    for contrasts in ({"patients": "dx1"}, "all"):
        trial = make_trial(people, contrasts=contrasts)
        shape = replace(trial.shape, noise=noise_of(1, CELL[2]))
        errors.append(Glm(trial.parameters, shape).clipping.error)
    assert 1.05 < errors[1] / errors[0] < 1.35
