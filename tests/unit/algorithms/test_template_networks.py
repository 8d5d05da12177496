"""Networks by templates: what persons have beside public maps is told, and only that."""

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Places, Query, Release, Templates
from consortium.algorithms.template_networks.site import mean_maps
from consortium.errors import StudyError
from consortium.report.tables import cell_text
from consortium.simulation.array_data import ArrayData
from consortium.simulation.simulation import Simulation
from consortium.study.plan import count_rounds, make_plan
from tests.support.cases import SITES, drive, make_study, shape_of

NETWORKS_BY_TEMPLATES = REGISTRY["template_networks"]
EDGE, RADIUS, SPOT = 8.0, 48.0, 12.0


def ball(edge):
    steps = np.arange(-RADIUS, RADIUS + edge / 2, edge)
    places = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
    return places[np.linalg.norm(places, axis=1) <= RADIUS]


VOXELS, FINE = ball(EDGE), ball(5.0)
PLACES = Places(VOXELS, EDGE**3, FINE)
CENTRES = 26.0 * np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]])
NETWORKS = len(CENTRES)


def maps_at(places, shift=0.0):
    """Spots, each moved by so many mm."""
    moved = CENTRES + shift * np.array([0.0, 0.6, 0.8])
    return np.exp(-0.5 * np.sum((places[:, None] - moved) ** 2, axis=2) / SPOT**2)


def templates(shift=0.0):
    return Templates(
        maps_at(VOXELS, shift).astype(np.float32), maps_at(FINE, shift).astype(np.float32)
    )


def make_brains(given, *, persons=40, amplitude=1.0, seed=0, volumes=40):
    """Four sites whose persons have networks without a shift; the first two go together."""
    generator, maps = np.random.default_rng(seed), amplitude * maps_at(VOXELS)
    mixing = np.eye(NETWORKS)
    mixing[1, 0] = 0.8
    return [
        ArrayData(
            [
                (
                    maps @ mixing @ generator.standard_normal((NETWORKS, volumes))
                    + 0.5 * generator.standard_normal((len(VOXELS), volumes))
                ).astype(np.float32)
                for _ in range(persons)
            ],
            places=PLACES,
            templates=given,
        )
        for _ in SITES
    ]


def study(epsilon=8.0, **analysis):
    return make_study(
        "template_networks", {"templates": "maps.nii.gz", **analysis}, epsilon=epsilon
    )


def answer(values, deviation, seed, parameters, shape):
    """The result of noiseless releases with noise of so large a deviation."""
    generator, run = np.random.default_rng(seed), NETWORKS_BY_TEMPLATES(parameters, shape).run()
    next(run)
    for each in values:
        noise = deviation * generator.standard_normal(len(each))
        try:
            run.send(Release(each + noise, deviation, (0, 1, 2, 3)))
        except StopIteration as stop:
            return stop.value
    raise AssertionError("it asks for what is not there")


def noiseless(sites, parameters):
    return [release.values for release in drive(NETWORKS_BY_TEMPLATES, parameters, sites)[1]]


def correlations(found, truth):
    return np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(found.T, truth.T, strict=True)])


@pytest.fixture(scope="module")
def shifted():
    """Templates 14 mm off the persons' networks."""
    return make_brains(templates(14.0))


@pytest.fixture(scope="module")
def fitting():
    return make_brains(templates())


def test_maps_come_closer_to_the_persons_networks_than_their_templates(shifted):
    result = Simulation(study(), shifted, 0).run()
    before = correlations(maps_at(FINE, 14.0), maps_at(FINE))
    after = correlations(result.arrays["maps"], maps_at(FINE))
    assert result.arrays["maps"].shape == (len(FINE), NETWORKS)
    assert (after > before + 0.05).all()
    assert result.numbers["found"] == NETWORKS
    assert result.captions.found
    assert all(result.images[name].fine for name in ("networks", "z", "errors"))
    assert np.abs(result.arrays["z"]).max() > 5


def test_where_templates_are_right_nothing_is_found_beyond_them(fitting):
    parameters = study(anyway=True).analysis
    values, shape = noiseless(fitting, parameters), shape_of(fitting)
    for seed in range(10):
        result = answer(values, 0.01, seed, parameters, shape)
        assert result.numbers["found"] == 0
        assert result.numbers["template_only"] == NETWORKS
        right = f"{NETWORKS} of {NETWORKS} maps are as their templates"
        assert result.captions.headline == f"Nothing was found beyond the templates; {right}."
        assert not any(any(images.found) for images in result.images.values())
        states = [row[-1] for row in result.tables["templates"].rows]
        assert states == ["as its template"] * NETWORKS
        assert not any("not found" in cell_text(row[1]) for row in result.tables["templates"].rows)
        told = correlations(result.arrays["maps"], maps_at(FINE))
        assert told == pytest.approx(np.ones(NETWORKS), abs=1e-3)


def test_templates_whose_places_are_permuted_are_not_found():
    generator, given = np.random.default_rng(3), templates()
    sites = make_brains(
        Templates(generator.permutation(given.values), generator.permutation(given.fine))
    )
    parameters = study(anyway=True).analysis
    result = answer(noiseless(sites, parameters), 0.002, 0, parameters, shape_of(sites))
    assert result.numbers["found"] == 0
    assert not result.captions.found
    rows = result.tables["templates"].rows
    assert {row[-1] for row in rows} <= {"unlike its template", "template only", "withheld"}
    assert all(row[3] < 0.7 for row in rows if row[-1] == "unlike its template")


def test_mirrored_templates_are_told_of_and_not_called_networks():
    """Turned upside down, shifted spots lie beside the networks: smooth, and of none of them."""
    down = Templates(*(maps_at(places * [1, 1, -1], 14.0) for places in (VOXELS, FINE)))
    result = Simulation(study(), make_brains(down), 0).run()
    states = [row[-1] for row in result.tables["templates"].rows]
    assert states == ["more than its template"] * NETWORKS
    assert "is not evidence of a network" in result.tables["templates"].caption
    captions = [images.caption for images in result.images.values()]
    words = " ".join([result.captions.headline, *captions])
    assert "network" not in words
    assert "found" not in words
    assert {images.word for images in result.images.values() if images.drawn} == {
        "beyond their templates"
    }


def test_persons_without_networks_show_nothing_but_the_templates():
    sites = make_brains(templates(14.0), amplitude=0.0)
    parameters = study(anyway=True).analysis
    values, shape = noiseless(sites, parameters), shape_of(sites)
    for deviation in (0.0, 0.002, 0.02):
        result = answer(values, deviation, 1, parameters, shape)
        assert result.numbers["found"] == 0
        assert not result.captions.found


def test_noise_alone_finds_nothing_and_tells_no_number(shifted):
    parameters, shape = study(anyway=True).analysis, shape_of(shifted)
    values = [0.0 * each for each in noiseless(shifted, parameters)]
    for seed in range(20):
        result = answer(values, 0.5, seed, parameters, shape)
        assert result.numbers["found"] == 0
        assert result.numbers["connections"] == 0
        cells = [row[1] for row in result.tables["templates"].rows]
        assert not any(cell.reported for cell in cells)
        assert not any(
            getattr(cell, "reported", False)
            for row in result.tables["connectivity"].rows
            for cell in row
        )


def test_expected_correlation_is_with_the_mean_map_that_is_released(shifted):
    parameters, shape = study(anyway=True, cutoff=36.0).analysis, shape_of(shifted)
    values = noiseless(shifted, parameters)
    truth = values[0].reshape(-1, NETWORKS)
    expected, true = [], []
    for seed in range(20):
        result = answer(values, 0.01, seed, parameters, shape)
        weights = result.arrays["weights"]
        expected.append(result.arrays["expected"])
        true.append(
            np.sum(weights * truth, axis=0)
            / np.linalg.norm(weights, axis=0)
            / np.linalg.norm(truth, axis=0)
        )
    assert np.mean(expected) == pytest.approx(np.mean(true), abs=0.02)


def test_z_of_a_voxel_that_differs_in_nothing_is_standard_normal(fitting):
    parameters, shape = study(anyway=True, cutoff=36.0).analysis, shape_of(fitting)
    values = noiseless(fitting, parameters)
    told = [answer(values, 0.02, seed, parameters, shape).arrays["z"] for seed in range(10)]
    assert np.std(told) == pytest.approx(1.0, abs=0.1)


def test_networks_that_go_together_are_told_with_an_interval(fitting):
    result = Simulation(study(), fitting, 0).run()
    rows = result.tables["connectivity"].rows
    together = rows[0][2]
    assert together.state == "found"
    assert together.low < 0.8 / np.sqrt(1.64) < together.high
    assert rows[0][1] == "–"
    assert rows[0][2] == rows[1][1]
    others = [rows[a][b + 1] for a in range(NETWORKS) for b in range(a) if (a, b) != (1, 0)]
    assert [cell.state for cell in others] == ["not found"] * len(others)
    assert result.arrays["connectivity"] == pytest.approx(result.arrays["connectivity"].T)
    alone = Simulation(study(connectivity=False), fitting, 0).run()
    assert "connectivity" not in alone.tables


def test_the_planned_releases_share_the_budget_and_their_bounds_are_exact(shifted):
    plan = make_plan(study(), shape_of(shifted))
    maps, connectivity = (stage.release for stage in plan.stages)
    assert maps.share + connectivity.share == pytest.approx(1.0)
    assert maps.bound.spread == 2.0 * np.sqrt(NETWORKS)
    assert connectivity.entries == NETWORKS * (NETWORKS - 1) // 2
    found = plan.analysis.deviation
    assert found == pytest.approx(plan.stages[0].mechanism.noise.aggregate(), rel=1e-3)
    assert plan.epsilon <= 8.0 * (1 + 1e-9)
    assert count_rounds(study(), shifted[0].extent) == plan.rounds == 2
    assert count_rounds(study(connectivity=False), shifted[0].extent) == 1


def test_two_persons_whose_maps_point_apart_reach_the_sensitivity():
    # One network's course with a far stronger pattern beside the template, of either sign.
    shape = Templates(np.eye(6, 1, dtype=np.float32))
    wave = np.sin(np.arange(20.0))
    plan = NETWORKS_BY_TEMPLATES(
        study(connectivity=False).analysis,
        shape_of([ArrayData([np.zeros((6, 20))], templates=shape)]),
    )
    (planned,) = plan.planned()
    told = []
    for sign in (-1.0, 1.0):
        person = np.outer([1e-6, sign, 0, 0, 0, 0], wave)
        site = ArrayData([person], templates=shape)
        told.append(mean_maps(plan, site, Query("", ""), planned.bound))
    moved = np.linalg.norm(told[1] - told[0])
    assert 0.999 <= moved / planned.bound.sensitivity(1) <= 1.0 + 1e-12


@pytest.mark.parametrize("statistic", ["template_maps", "template_connectivity"])
@pytest.mark.parametrize("seed", range(40))
def test_no_template_of_any_scale_moves_a_statistic_further(statistic, seed):
    # A site computes with its own signed copy; the bound holds whatever stands in it.
    generator = np.random.default_rng(seed)
    local = NETWORKS_BY_TEMPLATES.statistics[statistic]
    norm = float(10.0 ** generator.uniform(-3, 2))
    bound = replace(
        NETWORKS_BY_TEMPLATES(
            study(anyway=True).analysis, shape_of(make_brains(templates(), persons=1))
        )
        .planned()[0]
        .bound,
        norm=norm,
    )

    def wild(rows, columns):
        scales = 10.0 ** generator.uniform(-300, 300, (rows, 1 if seed % 2 else columns))
        return scales * generator.standard_normal((rows, columns))

    with np.errstate(all="ignore"):
        sites = [ArrayData([wild(6, 9)], templates=Templates(wild(6, 3)))]
        sites.append(ArrayData([wild(6, 9)], templates=sites[0].extent.templates))
        asked = study(global_signal=("keep", "remove")[seed % 2]).analysis
        plan = NETWORKS_BY_TEMPLATES(asked, shape_of(sites))
        told = [local(plan, site, Query("", ""), bound) for site in sites]
        assert np.isfinite(told).all()
        assert np.linalg.norm(told[1] - told[0]) <= bound.sensitivity(1) * (1 + 1e-9)


def told(asked, shape):
    return [line for (line,) in NETWORKS_BY_TEMPLATES(asked.analysis, shape).foretell().rows]


def test_a_hopeless_study_is_refused_with_what_would_be_enough(shifted):
    shape = shape_of(shifted)
    with pytest.raises(
        StudyError, match=r"participants would be enough.*analysis\.anyway"
    ) as caught:
        make_plan(study(0.1), shape)
    plan = make_plan(study(0.1, anyway=True), shape)
    assert any(line.startswith("Warning") for line in told(study(0.1), plan.shape))
    persons = int(str(caught.value).split(". About ")[1].split()[0].replace(",", ""))
    enough = -(-persons // 4)
    make_plan(study(0.1), replace(shape, subjects=(enough,) * 4, samples=(enough * 40,) * 4))


def test_a_forecast_says_resolution_agreement_and_the_error_of_connections(shifted):
    asked = study()
    lines = told(asked, make_plan(asked, shape_of(shifted)).shape)
    assert "waves longer than" in lines[0]
    assert "is expected to become a map" in lines[1]
    assert "largest site" in lines[2]
    assert "standard error" in lines[3]


def test_the_plan_grows_finer_with_epsilon(shifted):
    def cutoff(epsilon):
        return make_plan(study(epsilon), shape_of(shifted)).analysis.cutoff

    assert cutoff(4.0) > cutoff(64.0)


ALIKE = Templates(np.repeat(maps_at(VOXELS)[:, :1], 2, axis=1) + 0.001 * maps_at(VOXELS)[:, :2])
NEEDLES = Templates(np.indices((1, len(VOXELS)))[1][0][:, None] % 2 * 2.0 - 1.0)


@pytest.mark.parametrize(
    ("given", "analysis", "words"),
    [
        (None, {}, "field 'analysis.templates'"),
        (ALIKE, {}, "field 'analysis.templates'.* 1 and 2"),
        (templates(), {"cutoff": 5.0}, "The cutoff must be"),
        (Templates(np.random.default_rng(0).standard_normal((len(VOXELS), 45))), {}, "40 volumes"),
        (NEEDLES, {"cutoff": 90.0}, "field 'analysis.cutoff'.*template 1"),
        (templates(), {"cutoff": 110.0}, "field 'analysis.templates'"),
    ],
)
def test_templates_that_can_t_be_used_are_refused(shifted, given, analysis, words):
    shape = replace(shape_of(shifted), templates=given)
    with pytest.raises(StudyError, match=words):
        NETWORKS_BY_TEMPLATES(study(**analysis).analysis, shape).planned()


def test_an_open_cohort_is_refused_and_group_ica_is_named():
    with pytest.raises(ValidationError, match=r"open cohort.*group_ica"):
        study(open="cohort.npz")


def test_only_persons_are_its_unit(shifted):
    shape = replace(shape_of(shifted), unit="timepoint")
    with pytest.raises(StudyError, match=r"field 'privacy\.unit'"):
        NETWORKS_BY_TEMPLATES(study().analysis, shape).planned()


def test_a_plan_says_what_the_largest_site_has_alone(shifted):
    def alone(persons):
        shape = make_plan(study(), replace(shape_of(shifted), subjects=(persons, 20, 20, 20))).shape
        lines = [line for (line,) in NETWORKS_BY_TEMPLATES(study().analysis, shape).foretell().rows]
        (told,) = [line for line in lines if "alone, without noise" in line]
        assert f"site's {persons} participants" in told
        return float(told.split("come to ")[1].split(",")[0])

    assert 0.7 <= alone(30) < alone(400) <= 1.0
