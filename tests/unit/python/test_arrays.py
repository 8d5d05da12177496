"""Arrays and DataFrames of persons in the place of images."""

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import consortium as cc
from consortium.errors import DataError, StudyError
from tests.support.made_up_scans import MASK, scan, scans

PLAIN: dict[str, Any] = {"epsilon": 20.0, "delta": 1e-5}
RNG = np.random.default_rng(0)


def line_up(persons: int = 600) -> np.ndarray:
    """Persons of whose five columns the first three go together."""
    shared = RNG.normal(size=(persons, 1))
    return shared * [1.0, 1.0, -1.0, 0.0, 0.0] + 0.2 * RNG.normal(size=(persons, 5))


def design(persons: int = 400) -> dict[str, list[Any]]:
    return {"group": ["a", "b"] * (persons // 2), "age": [*range(18, 68)] * (persons // 50)}


def glm(**changed: Any) -> cc.PrivateGLM:
    columns = {"group": ["a", "b"], "age": (18, 90)}
    given = {"groups": (200, 200), "limits": (-6, 6), **PLAIN, **changed}
    return cc.PrivateGLM("group + age", "group", columns, **given)


def test_components_of_an_array_are_its_columns_directions() -> None:
    X = line_up()
    model = cc.PrivatePCA(1, limits=(-5, 5), **PLAIN).fit(X)
    truth = np.array([1.0, 1.0, -1.0, 0.0, 0.0]) / np.sqrt(3)
    assert model.components_.shape == (1, 5)
    assert np.linalg.norm(model.components_, axis=1) == pytest.approx([1.0])
    assert abs(model.components_[0] @ truth) > 0.95
    assert (model.n_features_in_, model.n_participants_, model.found_) == (5, 600, (True,))
    new = line_up(20)
    scores = model.transform(new)
    assert scores == pytest.approx(new / 5 @ model.components_.T)
    with pytest.raises(ValueError, match="expecting 5 features"):
        model.transform(new[:, :4])
    with pytest.raises(DataError, match="image of components"):
        _ = model.components_img_


def test_a_data_frame_keeps_its_columns_names() -> None:
    X = pd.DataFrame(line_up(), columns=["memory", "speed", "fear", "x", "z"])
    model = cc.PrivatePCA(1, limits=(-5, 5), **PLAIN).fit(X)
    (table,) = [t for name, t in model.result_.tables.items() if name.endswith("_loadings")]
    assert [*table["entry"]] == [*X.columns]
    assert [*model.feature_names_in_] == [*X.columns]
    with pytest.raises(ValueError, match="feature names"):
        model.transform(X.rename(columns={"fear": "joy"}))


def test_an_array_without_limits_or_with_gaps_is_refused_before_anything_is_spent() -> None:
    model = cc.PrivatePCA(1, **PLAIN)
    with pytest.raises(StudyError, match="limits: an array's columns need public limits"):
        model.fit(line_up())
    gappy = line_up()
    gappy[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.set_params(limits=(-5, 5)).fit(gappy)
    with pytest.raises(NotFittedError):
        _ = model.privacy_so_far_
    with pytest.raises(StudyError, match="not a name of a column"):
        model.fit(pd.DataFrame(line_up(), columns=["a b", "c", "d", "e", "f"]))


def test_one_line_of_an_array_changes_its_own_vector_only() -> None:
    """What lies beyond the limits counts as the limit: two fits of one seed are the same."""
    X = line_up(200)
    X[7] = 5.0
    other = X.copy()
    other[7] = 1e9
    with warnings.catch_warnings(action="ignore"):
        one, two = (
            cc.PrivatePCA(2, limits=(-5, 5), random_state=1, **PLAIN).fit(each)
            for each in (X, other)
        )
    np.testing.assert_array_equal(one.components_, two.components_)


def test_effects_on_an_array_are_found_where_they_are() -> None:
    columns = design()
    y = RNG.normal(size=(400, 3))
    y[:, 1] += np.array(columns["group"]) == "b"
    model = glm().fit(pd.DataFrame(columns), y)
    effects = model.effects_
    assert isinstance(effects, pd.DataFrame)
    assert [*effects["entry"]] == ["y1", "y2", "y3"]
    assert [*effects["found"]] == ["no", "yes", "no"]
    named = glm().fit(columns, pd.DataFrame(y, columns=["a1", "b1", "c1"]))
    assert [*named.effects_["entry"]] == ["a1", "b1", "c1"]
    stored = pickle.dumps(model)
    assert y[0].tobytes() not in stored


def test_a_design_may_be_an_array_in_the_columns_order() -> None:
    columns = design()
    y = RNG.normal(size=400) + (np.array(columns["group"]) == "b")
    as_array = np.array([columns["group"], columns["age"]], dtype=object).T
    model = glm().fit(as_array, y)
    assert model.effects_["effect"][0] * model.effects_["deviation"][0] == pytest.approx(1, abs=0.5)
    with pytest.raises(ValueError, match="X has 1 columns, and 2 are named"):
        glm().fit(as_array[:, :1], y)
    with pytest.raises(DataError, match=r"Column 'group' .* 399 .* 400"):
        glm().fit(columns, y[1:])


def test_limits_follow_from_stated_norms() -> None:
    y = RNG.normal(size=(400, 1))
    model = glm(limits=None, deviation=1.0, location=0.0).fit(design(), y)
    assert len(model.effects_) == 1
    with pytest.raises(StudyError, match="limits: an array's columns"):
        glm(limits=None).fit(design(), y)


def test_no_call_passes_on_the_warnings_of_other_libraries() -> None:
    other = scan(3)
    other = other.slicer[:-1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = cc.PrivatePCA(2, mask=MASK, **PLAIN).fit(scans(60))
        model.transform([other])
        model.plot()
        cc.PrivatePCA(1, limits=(-5, 5), **PLAIN).fit(line_up()).plot()
        glm().fit(design(), RNG.normal(size=(400, 2))).plot()
