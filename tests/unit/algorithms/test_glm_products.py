"""Products and squares in the formula of `glm`: against statsmodels, and what is refused."""

import numpy as np
import pytest
import statsmodels.api
from pydantic import ValidationError

from benchmarks.glm_runs import noise_of, run_trial, trial_of
from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Shape
from consortium.algorithms.glm.entries import Products, resolve
from consortium.algorithms.glm.formula import written_out
from consortium.errors import StudyError
from consortium.study.reader import parse_study
from tests.unit.algorithms.test_glm_pooled import RANDOM, random_study

FORMULA = "dx1 * z01 + I(z01**2) + z01:z11 + z11"
USUAL = 0.5  # public deviation of a column where none is stated


def design_of(study):
    """Columns of FORMULA as `glm` has them: dx of -1 and 1, in public deviations; sites."""
    _, group, x, site = study
    dx, one, other = np.where(group, 1.0, -1.0) / USUAL, x[0] / USUAL, x[1] / USUAL
    columns = [dx * USUAL, one, dx * one / 2.5, (one**2 - 1) / 2.1, one * other / 2.5, other]
    return np.column_stack([*columns, site[:, None] == np.unique(site)]).astype(float)


def expected_of(study):
    found = [statsmodels.api.OLS(y, design_of(study)).fit().params[:6] for y in study[0]]
    return np.array(found)


def trial(study, **analysis):
    return trial_of(*study, **{"formula": FORMULA, "norms": {"deviation": 1.0}, **analysis})


def result_of(study, **analysis):
    return run_trial(trial(study, **analysis), 0.0, np.random.default_rng(0))


@RANDOM
def test_a_contrast_adjusted_for_products_and_squares_is_that_of_statsmodels(seed):
    study = random_study(seed, covariates=2)
    found = result_of(study).arrays["effect"]
    assert found == pytest.approx(2 * expected_of(study)[:, 0], abs=1e-8)


@RANDOM
@pytest.mark.parametrize(("asked", "place"), [("dx1:z01", 2), ("z01:z11", 4)])
def test_the_slope_of_a_product_is_that_of_statsmodels(seed, asked, place):
    study = random_study(seed, covariates=2)
    found = result_of(study, contrasts={"it": asked}, groups={}).arrays["effect"]
    assert found == pytest.approx(expected_of(study)[:, place], abs=1e-8)


@pytest.mark.parametrize(
    "asked",
    [
        {"contrasts": {"it": "I(z01**2)"}},
        {"contrasts": "all", "formula": "I(z01**2) + z01 + dx1"},
    ],
)
def test_what_clipping_leaves_no_truth_of_is_not_asked(asked):
    with pytest.raises(ValidationError):
        trial(random_study(0, covariates=2), **asked)


def test_the_page_says_of_what_an_effect_is():
    study = random_study(0, covariates=2)
    said = result_of(study, contrasts={"it": "z01:z11"}, groups={}).captions.meaning
    assert "with the product of both columns, over 2.5: each in public standard deviations" in said
    assert "at the public means of its factors" in result_of(study).captions.meaning
    plain = result_of(study, formula="dx1 + z01 + I(z01**2)").captions.meaning
    assert "factors" not in plain


def test_an_interaction_with_a_mean_that_is_far_off_is_not_judged():
    study = random_study(0, covariates=2)
    usual = {"z01": {"mean": -0.8, "deviation": 0.3}, "z11": {"mean": 0.0, "deviation": 0.3}}
    asked = {"contrasts": {"it": "z01:z11"}, "groups": {}, "covariates": usual, "anyway": True}
    result = run_trial(trial(study, **asked), noise_of(50, 4), np.random.default_rng(0))
    assert result.arrays["withheld"].all()
    assert "(correct analysis.covariates)" in result.captions.headline


def test_a_product_of_what_is_missing_is_missing_and_factors_are_cut():
    products = Products(np.array([[0, 1]]), np.array([[1.0, 0.0]]), np.array([[2.0, 1.0]]))
    table = np.array([[3.0, np.nan, 1e300], [2.0, 1.0, -1e300]])
    found = products.take(table, np.array([1, 2]))
    assert found == pytest.approx(np.array([[2, 1, -1e300], [2, np.nan, -6.25]]), nan_ok=True)


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("a * b * c", "products of two and squares"),
        ("a + poly(a, 2)", "products of two and squares"),
        ("a + I(a**3)", "products of two and squares"),
        ("a - b", "products of two and squares"),
        ("a + ", "products of two and squares"),
        ("a * a", r"write the square of a as I\(a\*\*2\)"),
        ("a + a:b", "a:b requires the column b"),
        ("b + I(a ** 2)", r"I\(a\*\*2\) requires the column a"),
        ("a + b + a", "a is named twice"),
        ("a * b + a:b", "a:b is named twice"),
    ],
)
def test_what_no_formula_can_say_is_refused_by_its_words(formula, said):
    with pytest.raises(ValueError, match=said):
        written_out(formula)
    with pytest.raises(ValidationError, match=said):
        REGISTRY["glm"].Parameters.model_validate(
            {"outcomes": "brain", "formula": formula, "contrasts": {"it": "a"}}
        )


STUDY = """\
study: products
sites: [a, b]
features:
  - name: who
    source: table
    columns:
      diagnosis: {levels: [control, patient]}
      ward: {levels: [x, y, z]}
      age: {low: 0, high: 100}
  - name: brain
    source: table
    file: brain.tsv
    columns: {left: {low: 0, high: 5}, right: {low: 0, high: 5}}
privacy: {unit: subject, epsilon: 8, delta: 1.0e-5, colluding_sites: 1}
algorithm: glm
analysis:
  outcomes: brain
  formula: FORMULA
  contrasts: {it: CONTRAST}
  anyway: true
"""


def columns_of(formula, contrast="age"):
    study = parse_study(STUDY.replace("FORMULA", formula).replace("CONTRAST", contrast))
    sizes = (40, 40)
    shape = Shape(7, sizes, sizes, "subject", 0, (("who", 5), ("brain", 2)), ("a", "b"))
    return resolve(study.analysis, shape)


def test_a_product_with_levels_stands_for_every_level_but_the_first():
    columns = columns_of("age + ward * diagnosis + ward:age", "ward=y:age")
    labels = [entry.label for entry in columns.covariates_of]
    assert labels[1:] == [
        *("ward=y", "ward=z", "diagnosis", "ward=y:diagnosis", "ward=z:diagnosis", "ward=z:age")
    ]
    assert columns.group.label == "ward=y:age"
    assert columns.slope


def test_the_square_of_levels_is_refused():
    with pytest.raises(StudyError, match="is the square of a column of levels"):
        columns_of("age + diagnosis + I(diagnosis**2)")


def test_products_are_no_reason_for_a_person_to_count_more():
    study = random_study(1, covariates=2)
    study[2][:] = 1e30 * np.sign(study[2])
    result = run_trial(trial(study), noise_of(8, 4), np.random.default_rng(1))
    assert all(np.isfinite(each).all() for each in result.arrays.values())
