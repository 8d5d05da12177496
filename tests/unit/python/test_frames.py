"""Tables as numeric frames, short texts of results, outputs of `transform`, and pipelines."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import consortium as cc
from consortium.python.result import data_frame
from tests.support.finished_run import finished
from tests.support.made_up_scans import MASK, scans

NOISE = np.random.default_rng(0).normal(size=(500, 3)) * [2.0, 1.0, 0.5]


def _pca(**more: object) -> cc.PrivatePCA:
    return cc.PrivatePCA(2, epsilon=8.0, delta=1e-5, limits=(-6, 6), **more)  # type: ignore[arg-type]


def test_words_among_numbers_become_missing_with_a_state() -> None:
    table = data_frame(
        ["view", "entry", "people", "distance", "share"],
        [["1", "1", "30", "0.5", "–"], ["1", "2", "40", "withheld", "0.25"]],
    )
    assert list(table.columns) == ["view", "entry", "people", "distance", "distance state", "share"]
    assert list(table["view"]) == ["1", "1"]
    assert table["entry"].dtype == table["people"].dtype == np.int64
    assert table["distance"].dtype == table["share"].dtype == np.float64
    assert math.isnan(table["distance"][1])
    assert list(table["distance state"]) == ["reported", "withheld"]


def test_integers_stay_integers_beside_missing_ones_and_names_stay_text() -> None:
    table = data_frame(["n", "entry", "level"], [[3, 1, "1.0"], ["n/a", "age", "2"]])
    assert str(table["n"].dtype) == "Int64"
    assert list(table["entry"]) == ["1", "age"]
    assert list(table["level"]) == ["1.0", "2"]
    assert data_frame(["n"], []).shape == (0, 1)


def test_no_table_of_a_run_has_words_among_numbers() -> None:
    for table in cc.open_result(finished().out).tables.values():
        for name in table:
            kinds = {isinstance(cell, str) for cell in table[name].dropna()}
            assert len(kinds) <= 1, name


def test_a_result_has_a_short_text_and_a_table_for_notebooks() -> None:
    result = cc.open_result(finished().out)
    assert repr(result).startswith("<StudyResult: ")
    assert len(repr(result)) < 200
    html = result._repr_html_()
    assert html.startswith("<table>")
    assert "privacy loss" in html
    assert all(name in html for name in result.tables)
    hostile = cc.StudyResult(result.privacy, {"<img src=x>": result.images[result.components_key]})
    assert "<img" not in hostile._repr_html_()


def test_transform_gives_frames_with_the_names_of_its_columns() -> None:
    frame = pd.DataFrame(NOISE, columns=["a", "b", "c"], index=[f"p{k}" for k in range(500)])
    model = _pca().fit(frame)
    assert list(model.get_feature_names_out()) == ["privatepca0", "privatepca1"]
    plain = model.transform(frame)
    made = model.set_output(transform="pandas").transform(frame)
    assert isinstance(plain, np.ndarray)
    assert list(made.columns) == ["privatepca0", "privatepca1"]
    assert list(made.index[:2]) == ["p0", "p1"]
    assert np.array_equal(made.to_numpy(), plain)
    assert isinstance(model.set_output(transform="default").transform(frame), np.ndarray)
    with pytest.raises(ValueError, match="'default' or 'pandas', got 'polars'"):
        model.set_output(transform="polars")  # type: ignore[arg-type]


def test_series_become_frames_too() -> None:
    model = cc.PrivatePCA(1, epsilon=8.0, delta=1e-5, mask=MASK).fit(scans(20))
    (series,) = model.set_output(transform="pandas").transform(scans(1))
    assert list(series.columns) == ["privatepca0"]


@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_an_earlier_step_that_learns_without_noise_is_told(method: str) -> None:
    with pytest.warns(UserWarning, match=r"steps 'standardscaler' learn .* is not private"):
        getattr(make_pipeline(StandardScaler(), _pca()), method)(NOISE)


def test_steps_that_learn_nothing_are_not() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_pipeline(FunctionTransformer(np.tanh), "passthrough", _pca()).fit(NOISE)
        _pca().fit(NOISE)
