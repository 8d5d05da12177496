"""A BIDS Stats Model says the same as a formula, or is refused by the name of what differs."""

import json
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from consortium.errors import StudyError
from consortium.simulation.simulation import Simulation
from consortium.study.reader import parse_study
from consortium.study.spec import Study
from tests.support.cases import SITES, sites_of
from tests.unit.algorithms.test_glm import study_of, wards_and_regions

TEXT = Path(__file__).with_name("thickness_smdl.json").read_text(encoding="utf-8")
MODEL = json.loads(TEXT)


def study_with(model, **analysis):
    """The study of `test_glm`, whose model is written as a BIDS Stats Model."""
    values = study_of().model_dump(mode="json", exclude_none=True)
    del values["analysis"]["formula"], values["analysis"]["contrasts"]
    values["analysis"] |= {"model": model, **analysis}
    return Study.model_validate(values)


def changed(*place, value):
    """The model with something else in a place, which may be new."""
    model = deepcopy(MODEL)
    inner = model
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return model


def node(*place, value):
    return changed("Nodes", 0, *place, value=value)


def contrasts(*each):
    return node("Contrasts", value=list(each))


def contrast(names, weights, test="t"):
    return {"Name": "x", "ConditionList": names, "Weights": weights, "Test": test}


def test_a_model_file_says_what_a_formula_says():
    analysis = study_with(MODEL).analysis
    assert analysis.formula == "diagnosis + age + ward"
    assert analysis.contrasts == {"patient_vs_control": "diagnosis"}


def test_a_model_file_finds_what_a_formula_finds():
    sites = sites_of(wards_and_regions(), (("who", 5), ("brain", 3)), (50,) * 4)
    found = [Simulation(study, sites, 0).run() for study in (study_with(MODEL), study_of())]
    assert np.array_equal(found[0].arrays["effect"], found[1].arrays["effect"])
    assert "contrast-patient_vs_control" in found[0].tables


def test_a_model_file_is_pasted_into_the_study_as_it_is():
    values = study_with(MODEL).model_dump(mode="json", exclude_none=True)
    assert Study.model_validate(values) == study_with(MODEL)  # what it says is no contradiction
    del values["analysis"]["formula"], values["analysis"]["contrasts"], values["analysis"]["model"]
    text = json.dumps(values)[:-1] + ', "analysis": {"model": ' + TEXT + ", "
    text += json.dumps(values["analysis"])[1:] + "}"
    text = text.replace(f'"analysis": {json.dumps(values["analysis"])}, ', "", 1)
    assert parse_study(text).analysis.formula == "diagnosis + age + ward"


@pytest.mark.parametrize(
    ("columns", "asked", "formula", "expected"),
    [
        ([1, "diagnosis.patient", "age"], ["age"], "age + diagnosis", {"age": "age"}),
        (
            [1, "ward.b", "ward.c", "age"],
            ["ward.c"],
            "ward + age",
            {"ward.c": "ward=c"},
        ),
        (["intercept", "age", "diagnosis.patient"], ["diagnosis.patient", "age"], None, "all"),
    ],
)
def test_dummy_contrasts_are_columns(columns, asked, formula, expected):
    model = node("Model", "X", value=columns)
    inner = model["Nodes"][0]
    del inner["Contrasts"]
    inner["DummyContrasts"] = {"Test": "t", "Contrasts": asked}
    counts = {site: [20, 20, 10] for site in SITES}
    groups = {"age": {}, "ward.c": counts}
    given = {"groups": groups[asked[0]]} if asked[0] in groups else {}
    analysis = study_with(model, **given).analysis
    assert analysis.formula == (formula or "diagnosis + age")
    assert analysis.contrasts == expected


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("thickness_smdl.json", "model: must be the content"),
        (changed("Input", value={"task": ["rest"]}), "Input"),
        (changed("Edges", value=[{"Source": "a", "Destination": "b"}]), "Edges"),
        (changed("Nodes", value=MODEL["Nodes"] * 2), "Nodes"),
        (changed("BIDSModelVersion", value="2.0.0"), "BIDSModelVersion"),
        (node("Level", value="Run"), r"Nodes\.0\.Level"),
        (node("GroupBy", value=["subject"]), "GroupBy"),
        (node("Model", "Type", value="meta"), r"Model\.Type"),
        (node("Model", "HRF", value={"Model": "spm"}), r"Model\.HRF"),
        (node("Model", "X", value=["age", "diagnosis.patient"]), "one constant"),
        (node("Model", "X", value=[1, *MODEL["Nodes"][0]["Model"]["X"]]), "one constant"),
        (
            node("Model", "X", value=[1, "diagnosis.control"]),
            "X must have all levels of 'diagnosis'",
        ),
        (node("Model", "X", value=[1, "ward.b", "age"]), "X must have all levels of 'ward'"),
        (node("Model", "X", value=[1, "diagnosis", "age"]), "its dummy columns"),
        (node("Model", "X", value=[1, "hight"]), "no column, or level of a column, 'hight'"),
        (node("Model", "X", value=[1, "age", "age"]), "only once"),
        (node("Model", "X", value=[1, "age:ward.b"]), "'age:ward.b'"),
        (
            node("Transformations", "Instructions", value=[{"Name": "Scale", "Input": ["age"]}]),
            r"Instructions\.0\.Name",
        ),
        (
            node("Transformations", "Instructions", value=[{"Name": "Factor", "Input": ["age"]}]),
            "Factor 'age'",
        ),
        (contrasts(), "a contrast is required"),
        (contrasts(contrast(["age"], [1], "F")), r"Contrasts\.0\.Test"),
        (contrasts(contrast(["age"], [2])), "contrast 'x' must be"),
        (contrasts(contrast(["diagnosis.patient"], [1])), "is a mean and not a difference"),
        (
            contrasts(contrast(["diagnosis.control", "diagnosis.patient"], [1, -1])),
            "contrast 'x' must be",
        ),
        (contrasts(contrast(["ward.c", "ward.b"], [1, -1])), "contrast 'x' must be"),
    ],
)
def test_what_a_formula_can_not_say_is_refused_by_its_name(model, message):
    with pytest.raises((ValidationError, StudyError), match=message):
        study_with(model)


@pytest.mark.parametrize("said", [{"formula": "diagnosis"}, {"contrasts": {"x": "age"}}])
def test_a_model_and_another_formula_contradict_each_other(said):
    with pytest.raises(ValidationError, match="replaces formula and contrasts"):
        study_with(MODEL, **said)


def test_one_of_both_is_needed():
    values = study_of().model_dump(mode="json", exclude_none=True)
    del values["analysis"]["formula"]
    with pytest.raises(ValidationError, match="or 'model' is required"):
        Study.model_validate(values)
