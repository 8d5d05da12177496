"""Sites with shifted persons are told apart, mixtures are found, and nobody's person is shown."""

import numpy as np
import pytest
from pydantic import ValidationError

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Release
from consortium.algorithms.summarize import centre
from consortium.errors import SiteError, StudyError
from consortium.simulation.simulation import Simulation
from consortium.study.plan import make_plan, plan_digest
from tests.support.cases import make_feature_sites, make_feature_study, shape_of, sites_of

SUMMARIZE = REGISTRY["summarize"]
VIEWS = (("scales", 3),)
SITES = ("north", "east", "south", "west")
COUNTS = (400, 400, 400, 400)


def shifted(seed=0, counts=COUNTS):
    """East is as north, south is elsewhere, and west is half of each."""
    generator = np.random.default_rng(seed)
    centres = (0.0, 0.0, 0.6, 0.0)
    parts = [generator.normal(c, 0.25, (3, n)) for c, n in zip(centres, counts, strict=True)]
    half = counts[3] // 2
    parts[3][:, :half] += 0.6
    return sites_of(np.clip(np.hstack(parts), -1, 1), VIEWS, counts)


def run(seed=0, noise=1, **analysis):
    privacy = {key: analysis.pop(key) for key in ("scheme", "epsilon") if key in analysis}
    study = make_feature_study("summarize", VIEWS, analysis, **privacy)
    return Simulation(study, shifted(seed), noise).run()


def rows(result):
    return {row[0]: row[1:] for row in result.tables["sites"].rows}


def _distance(number):
    """A number that may be untold, as what it is then: below what is seen."""
    return 0.0 if number == "withheld" else number


def test_sites_are_told_apart_where_they_differ():
    table = rows(run(target="north"))
    assert set(table) == {"east", "south", "west"}
    _, east, most, floor, _ = table["east"]
    south = table["south"][1]
    assert not east.reported
    assert most > 0
    assert floor < south.low < south.value < south.high
    assert floor < table["west"][1].value < south.value


def test_whose_library_draws_other_frequencies_has_another_plan(monkeypatch):
    study, shape = make_feature_study("summarize", VIEWS, {}), shape_of(shifted())
    own = plan_digest(make_plan(study, shape))
    assert own == plan_digest(make_plan(study, shape))
    draw = centre.draw_frequencies
    monkeypatch.setattr(centre, "draw_frequencies", lambda *given: draw(*given)[:, ::-1])
    assert own != plan_digest(make_plan(study, shape))


def test_distances_without_privacy_are_those_of_the_persons():
    result = run(target="north", scheme="none", frequencies=400)
    parts = [site.table() for site in shifted()]

    def kernel(x, y):
        return np.exp(-((x[:, :, None] - y[:, None]) ** 2).sum(axis=0) / (2 * 3 / 4))

    def pairs(x):
        return (kernel(x, x).sum() - x.shape[1]) / (x.shape[1] * (x.shape[1] - 1))

    for k, other in enumerate(parts[1:], 1):
        exact = pairs(parts[0]) + pairs(other) - 2 * kernel(parts[0], other).mean()
        assert result.arrays["distances"][0, k] == pytest.approx(exact, abs=0.03)
    assert np.allclose(np.diag(result.arrays["distances"]), 0)


def test_the_mixture_that_makes_up_a_site_is_found():
    result = run(target="west")
    weights = dict(zip(SITES, result.arrays["weights"], strict=True))
    assert weights["west"] == 0
    assert weights["south"] == pytest.approx(0.5, abs=0.12)
    assert weights["north"] + weights["east"] == pytest.approx(0.5, abs=0.12)
    assert _distance(result.numbers["mixture_distance"]) < 0.02


def test_without_a_target_each_site_is_compared_with_all_others():
    result = run()
    table = rows(result)
    assert set(table) == set(SITES)
    assert max(table, key=lambda name: table[name][1].value) == "south"
    assert result.arrays["weights"] == pytest.approx(np.full(4, 0.25), abs=0.01)


def test_the_summary_is_made_up_and_lies_where_the_targets_persons_do():
    result = run(target="south", points=20)
    points = result.arrays["points"]
    persons = np.hstack([site.table() for site in shifted()])
    assert points.mean(axis=1) == pytest.approx(np.full(3, 0.6), abs=0.12)
    gaps = np.linalg.norm(points[:, :, None] - persons[:, None], axis=0)
    assert gaps.min() > 0  # nobody's vector
    assert _distance(result.numbers["summary_distance"]) < 0.02


def test_the_floor_is_passed_by_chance_as_seldom_as_it_says():
    passed = []
    for seed in range(20):
        passed.append(rows(run(seed, seed, target="north"))["east"][1].reported)
    assert np.mean(passed) <= 0.1


def test_intervals_hold_the_distance():
    inside = []
    truth = run(target="north", scheme="none").arrays["distances"][0, 2]
    for noise in range(20):
        _, distance, most, _, _ = rows(run(0, noise, target="north", epsilon=1.0))["south"]
        inside.append(
            distance.low <= truth <= distance.high if distance.reported else truth <= most
        )
    assert np.mean(inside) >= 0.95


def test_a_target_that_did_not_answer_is_told():
    study = make_feature_study("summarize", VIEWS, {"target": "north"})
    plan = make_plan(study, shape_of(shifted()))
    generator = SUMMARIZE(study.analysis, plan.shape).run()
    next(generator)
    values = np.random.default_rng(0).standard_normal((3, 100)) / 10
    with pytest.raises(StopIteration) as stop:
        generator.send(Release(values, 0.01, (1, 2, 3)))
    table = stop.value.value.tables["sites"]
    assert table.caption.startswith("north did not answer")
    assert [row[0] for row in table.rows] == ["east", "south", "west"]


def test_one_answer_alone_is_nothing_to_compare():
    study = make_feature_study("summarize", VIEWS, {})
    generator = SUMMARIZE(study.analysis, make_plan(study, shape_of(shifted())).shape).run()
    next(generator)
    with pytest.raises(SiteError, match="at least two"):
        generator.send(Release(np.zeros((1, 100)), 0.01, (2,)))


def test_sites_that_don_t_fit_are_refused():
    study = make_feature_study("summarize", VIEWS, {"target": "mars"})
    with pytest.raises(StudyError, match=r"field 'analysis\.target'.*'mars'"):
        make_plan(study, shape_of(shifted()))
    (one,) = make_feature_sites(VIEWS, persons=(5,))
    with pytest.raises(StudyError, match="field 'sites'"):
        SUMMARIZE(SUMMARIZE.Parameters(), shape_of([one])).planned()


@pytest.mark.parametrize(
    "wrong", [{"frequencies": 1}, {"width": 0.0}, {"points": 0}, {"confidence": 0.4}, {"seed": -1}]
)
def test_parameters_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValidationError):
        SUMMARIZE.Parameters.model_validate(wrong)


def test_a_mixture_is_told_only_where_some_site_is_seen_to_differ():
    for columns, told in ((slice(400, 800), True), (slice(0, 0), False)):
        table = np.random.default_rng(3).normal(0.0, 0.25, (3, 1600))
        table[:, columns] += 0.6
        study = make_feature_study("summarize", VIEWS, {"target": "north"})
        sites = sites_of(np.clip(table, -1, 1), VIEWS, COUNTS)
        weights = [row[-1] for row in rows(Simulation(study, sites, 0).run()).values()]
        assert [weight.reported for weight in weights] == [told] * 3


@pytest.mark.parametrize(("frequencies", "warned"), [(2, True), (3, False)])
def test_more_entries_than_frequencies_are_warned_about(frequencies, *, warned):
    """Points that match few features of many entries can be anywhere."""
    study = make_feature_study("summarize", VIEWS, {"frequencies": frequencies})
    plan = SUMMARIZE(study.analysis, shape_of(shifted()))
    assert ("Warning" in plan.withheld()) is warned
    assert ("Warning" in run(frequencies=frequencies).captions.headline) is warned
