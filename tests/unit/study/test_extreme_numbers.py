"""Whatever number a study states, it is refused in a sentence or planned with."""

import math
import typing
from contextlib import suppress
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from consortium.algorithms.base import Extent
from consortium.errors import ConsortiumError
from consortium.study.plan import make_plan
from consortium.study.spec import Study
from tests.support.cases import every_case, make_study, shape_of, sites_for, study_of

VALUES = (0, -1, 1e-300, 1e-12, 1e12, 1e100, 1e200, 1.7e308, 2**62, math.nan, math.inf)


def numeric(kind: Any) -> bool:
    """Whether a field's values are numbers."""
    kinds = {kind, *typing.get_args(kind)}
    kinds |= {each.__origin__ for each in kinds if typing.get_origin(each) is typing.Annotated}
    return bool(kinds & {float, int}) and bool not in kinds


def _fields() -> list[tuple[str, str]]:
    """Section and name of every number of a study's sections."""
    found = []
    for section, field in Study.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            numbers = (n for n, each in kind.model_fields.items() if numeric(each.annotation))
            found += [(section, name) for name in numbers]
    return found


def test_numbers_are_found() -> None:
    assert {("privacy", "boost"), ("data", "volumes"), ("timing", "answer")} <= {*_fields()}


@pytest.mark.parametrize(("section", "name"), _fields())
@pytest.mark.parametrize("algorithm", ["pca", "group_ica"])
def test_a_number_of_any_size(section: str, name: str, algorithm: str) -> None:
    plain = make_study(algorithm, {"components": 2}).model_dump(mode="json")
    for value in VALUES:
        try:
            study = Study.model_validate({**plain, section: {**plain[section], name: value}})
        except ValidationError:
            continue
        try:
            plan = make_plan(study, Extent(60).shape([100] * 4, [20_000] * 4, "subject"))
        except ConsortiumError:
            continue
        assert 0 <= plan.epsilon <= study.privacy.epsilon + 1e-9


@every_case
def test_a_number_of_any_size_in_an_analysis(name, case):
    study = study_of(name, case)
    plain = study.model_dump(mode="json")
    features = sum(size for _, size in case.views) or 60
    shape = Extent(features, views=case.views).shape([100] * 4, [20_000] * 4, case.unit)
    for field, told in type(study.analysis).model_fields.items():
        for value in VALUES if numeric(told.annotation) else ():
            analysis = {**plain["analysis"], field: value}
            try:
                plan = make_plan(Study.model_validate({**plain, "analysis": analysis}), shape)
            except (ConsortiumError, ValidationError):
                continue
            assert 0 <= plan.epsilon <= study.privacy.epsilon + 1e-9


@every_case
@pytest.mark.parametrize("value", [[], {}, "", [""], {"": 1}], ids=str)
def test_a_field_of_an_analysis_that_is_empty(name, case, value):
    study, sites = study_of(name, case), sites_for(case)
    plain = study.model_dump(mode="json")
    for field in type(study.analysis).model_fields:
        analysis = {**plain["analysis"], field: value}
        with suppress(ConsortiumError, ValidationError):
            make_plan(Study.model_validate({**plain, "analysis": analysis}), shape_of(sites))
