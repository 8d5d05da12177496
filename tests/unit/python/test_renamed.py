"""Old names work for one release and say so; new ones are what there is."""

import warnings
from typing import Any

import pytest
from sklearn.base import clone

import consortium as cc

PLAIN: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-5}
OLD = [
    (cc.PrivateGroupICA, {"components": 7, "seed": 3}, {"n_components": 7, "random_state": 3}),
    (cc.PrivatePCA, {"components": 2, "seed": 3}, {"n_components": 2, "random_state": 3}),
    (
        cc.PrivateGLM,
        {"formula": "age", "term": "age", "columns": {"age": (0, 9)}, "seed": 3},
        {"random_state": 3},
    ),
]


@pytest.mark.parametrize(("kind", "given", "meant"), OLD)
def test_an_old_name_means_the_new_one_and_warns_each_time(
    kind: Any, given: dict[str, Any], meant: dict[str, Any]
) -> None:
    old = sorted(given.keys() & {"components", "seed"})
    with pytest.warns(FutureWarning) as told:
        model = kind(**given, **PLAIN)
    assert len(told) == len(old)
    assert all("the old name goes with the next release" in str(each.message) for each in told)
    assert all(each.filename == __file__ for each in told)
    assert {name: model.get_params()[name] for name in meant} == meant
    assert not {"components", "seed"} & model.get_params().keys()
    with pytest.warns(FutureWarning, match="'seed' is called 'random_state' now"):
        assert model.seed == 3
    with pytest.warns(FutureWarning, match="'seed' is called"):
        assert model.set_params(seed=9).random_state == 9
    with warnings.catch_warnings(action="ignore"), pytest.raises(TypeError, match="give one"):
        kind(**given, **PLAIN, random_state=1)


@pytest.mark.parametrize(("kind", "given", "meant"), OLD)
def test_new_names_warn_of_nothing(kind: Any, given: dict[str, Any], meant: dict[str, Any]) -> None:
    new = {name: value for name, value in given.items() if name not in ("components", "seed")}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = kind(**new, **meant, **PLAIN)
        assert clone(model).set_params(**meant).get_params() == model.get_params()
        assert meant.items() <= model.get_params().items()


def test_foretell_is_forecast() -> None:
    model = cc.PrivateGroupICA(10, **PLAIN | {"epsilon": 8.0})
    with pytest.warns(FutureWarning, match="'foretell' is called 'forecast' now"):
        told = model.foretell(300)
    assert told.equals(model.forecast(300))
