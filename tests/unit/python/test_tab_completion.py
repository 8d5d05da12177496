"""What a notebook asks at a tab: an attribute is there, or raises AttributeError."""

import inspect
from typing import Any

import numpy as np
import pytest

import consortium as cc
from consortium.python.result import StudyResult
from tests.support.finished_run import finished
from tests.support.made_up_scans import MASK, scans

PRIVATE: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-5}


def _table(persons: int = 40) -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).normal(size=(persons, 6))


def _glm() -> cc.PrivateGLM:
    wanted = {"groups": (20, 20), "deviation": 1.0, "location": 0.0, "analysis": {"anyway": True}}
    return cc.PrivateGLM("group", "group", {"group": ["a", "b"]}, **PRIVATE, **wanted)


OBJECTS = {
    "PrivatePCA": lambda: cc.PrivatePCA(2, **PRIVATE),
    "PrivateGroupICA": lambda: cc.PrivateGroupICA(2, **PRIVATE),
    "PrivateGLM": _glm,
    "PrivatePCA of a table": lambda: cc.PrivatePCA(2, limits=(-3, 3), **PRIVATE).fit(_table()),
    "PrivatePCA of images": lambda: cc.PrivatePCA(2, mask=MASK, **PRIVATE).fit(scans(10)),
    "PrivateGLM of a table": lambda: _glm().fit([["a"], ["b"]] * 20, _table()),
    "result of a table": lambda: cc.PrivatePCA(2, limits=(-3, 3), **PRIVATE).fit(_table()).result_,
    "result of a run": lambda: cc.open_result(finished().out),
}


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.filterwarnings("ignore")
def test_every_attribute_is_there_or_is_not(name: str) -> None:
    thing: Any = OBJECTS[name]()
    listed = {each for each, _ in inspect.getmembers(thing)}
    for each in dir(thing):
        assert hasattr(thing, each) == (each in listed), each
    assert isinstance(repr(thing), str)
    if hasattr(thing, "_repr_html_"):
        assert isinstance(thing._repr_html_(), str)


def test_no_property_of_a_result_without_content_raises_another_error() -> None:
    privacy = cc.open_result(finished().out).privacy
    empty = StudyResult(privacy, {})
    assert not hasattr(empty, "components_img_")
    assert not hasattr(empty, "connectivity_")
    assert not hasattr(empty, "components_key")
    assert empty.found_ == ()
    inspect.getmembers(empty)
    inspect.getmembers(StudyResult(privacy, {}, bare="fsLR"))
