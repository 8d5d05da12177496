"""A study file's field with a wrong kind of value is refused with all kinds that it may have."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
import yaml
from pydantic import BaseModel, ValidationError

import consortium
import site_agent.config
import site_agent.policy.policy
from consortium.algorithms import REGISTRY
from consortium.base.frozen_model import FrozenModel
from consortium.errors import ConsortiumError
from consortium.study.reader import parse_study
from consortium.study.spec import Study
from tests.support.cases import study_of

WRONG: tuple[Any, ...] = ("ten", True, 0.5, -7, None, [["x"]], {"no such": []}, [])
INTERNALS = re.compile(
    r"literal|constrained|function-|int_|float_|_type|_parsing|nullable|union|tuple|dict|pydantic"
    r"|input should|valid \w+|\[key\]|NoneType|<class|typing|Annotated",
    re.IGNORECASE,
)
KIND_WORDS = {
    int: "an integer",
    float: "a number",
    str: "text",
    dict: "a mapping of 'name: value'",
    tuple: "a list",
    NoneType: "null",
}
"""Words for each kind of value, stated here apart from the program's own."""


def written(name: str) -> dict[str, Any]:
    """Return the first example study of an analysis as its file has it."""
    study = study_of(name, REGISTRY[name].cases[0])
    return study.model_dump(mode="json", by_alias=True, exclude_unset=True)


def kinds(annotation: Any) -> list[str]:
    """Return the words that a refusal of a field must contain."""
    origin = get_origin(annotation)
    inner = get_args(annotation)
    if origin is Annotated:
        return kinds(inner[0])
    if origin in (Union, UnionType):
        return [word for each in inner for word in kinds(each)]
    if origin is Literal:
        return [repr(each) for each in inner]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [KIND_WORDS[dict]]
    if annotation is bool:
        return ["true", "false"]
    return [KIND_WORDS[origin or annotation]]


def refusals(values: dict[str, Any]) -> list[str]:
    """Return the refusal of a study file, or nothing."""
    try:
        parse_study(yaml.safe_dump(values), "study.yaml")
    except ConsortiumError as error:
        return [str(error)]
    return []


FIELDS = [
    pytest.param(name, field.alias or key, field.annotation, id=f"{name}-{key}")
    for name, analysis in sorted(REGISTRY.items())
    for key, field in analysis.Parameters.model_fields.items()
]


@pytest.mark.parametrize(("name", "field", "annotation"), FIELDS)
def test_a_wrong_kind_is_refused_with_the_field_and_all_its_kinds(name, field, annotation):
    study = written(name)
    told = [
        said
        for value in WRONG
        for said in refusals({**study, "analysis": {**study.get("analysis", {}), field: value}})
    ]
    assert not [said for said in told if INTERNALS.search(said.replace(field, ""))]
    assert all(said.startswith("study.yaml: ") and said.endswith(".") for said in told)
    whole = [said for said in told if said.startswith(f"study.yaml: analysis.{field} must be ")]
    own = [said for said in told if f"field 'analysis.{field}': must be " in said]
    assert whole + own
    for said in whole:
        assert said.count(f"analysis.{field}") == 1
        expected, _, given = said.partition(", got ")
        assert given
        assert [word for word in kinds(annotation) if word not in expected] == []


@pytest.mark.parametrize("field", ["data", "privacy", "timing", "verification", "report"])
def test_a_wrong_kind_in_a_common_section_is_refused_without_internals(field):
    study = written("average")
    section = Study.model_fields[field].annotation
    for key in section.model_fields:
        told = [
            said
            for value in WRONG
            for said in refusals({**study, field: {**study.get(field, {}), key: value}})
        ]
        assert told, key
        assert [said for said in told if INTERNALS.search(said.replace(key, ""))] == []


@pytest.mark.parametrize(
    ("name", "field", "value", "told"),
    [
        (
            "group_ica",
            "components",
            "ten",
            "analysis.components must be 'auto' or an integer from 1 to 100, got 'ten'.",
        ),
        (
            "group_ica",
            "components",
            0,
            "analysis.components must be 'auto' or an integer from 1 to 100, got 0.",
        ),
        (
            "average",
            "gaps",
            {"a": 1},
            "analysis.gaps must be a number from 0 to 0.5, got a mapping.",
        ),
        (
            "cca",
            "bounds",
            {"faces": "much"},
            "analysis.bounds.faces must be a number, got 'much'.",
        ),
    ],
)
def test_a_refusal_states_limits_and_what_was_given(name, field, value, told):
    study = written(name)
    changed = {**study, "analysis": {**study.get("analysis", {}), field: value}}
    assert refusals(changed) == [f"study.yaml: {told}"]


def test_a_long_value_is_not_repeated_in_full():
    (said,) = refusals({**written("group_ica"), "analysis": {"components": "x" * 5000}})
    assert len(said) < 200


def test_a_text_that_moves_the_screen_is_repeated_in_plain_characters():
    (said,) = refusals({**written("group_ica"), "analysis": {"components": "\x1b[2J\u202e"}})
    assert said.isprintable()


def test_the_fields_of_every_analysis_are_tried():
    assert {each.values[0] for each in FIELDS} == set(REGISTRY)


def numbers(annotation: Any) -> Iterator[Any]:
    """Yield a value with true in each place of an annotation that a number may be in."""
    origin = get_origin(annotation)
    inner = get_args(annotation)
    if annotation in (int, float):
        yield True
    elif origin is Annotated:
        yield from numbers(inner[0])
    elif origin in (Union, UnionType) and bool not in inner:
        yield from (value for each in inner for value in numbers(each))
    elif origin is dict:
        yield from ({"north": value} for value in numbers(inner[1]))
    elif origin in (tuple, list):
        for place, kind in enumerate(inner):
            size = 1 if inner[-1] is Ellipsis else len(inner)
            for value in numbers(kind):
                yield [value if at == place else 1 for at in range(size)]


def models(base: type[BaseModel] = FrozenModel) -> Iterator[type[BaseModel]]:
    """Yield every model of the product that a user or a party writes."""
    for model in base.__subclasses__():
        if model.__module__.startswith(("consortium", "site_agent")):
            yield model
        yield from models(model)


BOOLEANS = [
    pytest.param(model, field.alias or key, value, id=f"{model.__name__}-{key}-{at}")
    for model in dict.fromkeys(models())
    for key, field in model.model_fields.items()
    if field.annotation is not None
    for at, value in enumerate(numbers(field.annotation))
]


@pytest.mark.parametrize(("model", "field", "value"), BOOLEANS)
def test_true_is_not_a_number_in_any_field_of_any_model(
    model: type[BaseModel], field: str, value: Any
) -> None:
    with pytest.raises(ValidationError) as caught:
        model.model_validate({field: value})
    kinds = {each["type"] for each in caught.value.errors() if each["loc"][:1] == (field,)}
    assert kinds & {"int_parsing", "float_parsing"}


def test_the_models_with_numbers_are_tried() -> None:
    tried = {each.values[0] for each in BOOLEANS}
    assert len(tried) > 25
    assert {REGISTRY[name].Parameters for name in ("pca", "glm", "cca")} < tried


def test_a_flag_is_still_true_or_false() -> None:
    assert REGISTRY["glm"].Parameters.model_fields["anyway"].annotation is bool
    study = written("glm")
    assert refusals({**study, "analysis": {**study["analysis"], "anyway": True}}) == []


def raised() -> Iterator[str]:
    """Yield the beginning of every sentence that is raised as a plain ValueError."""
    for package in (consortium, site_agent):
        for path in Path(package.__file__).parent.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                match node:
                    case ast.Raise(exc=ast.Call(func=ast.Name(id="ValueError"), args=[text])):
                        parts = text.values if isinstance(text, ast.JoinedStr) else [text]
                        yield str(parts[0].value) if isinstance(parts[0], ast.Constant) else ""


def test_a_validator_states_its_field_as_data_so_that_it_is_named_once() -> None:
    sentences = list(raised())
    assert len(sentences) > 40
    assert [text for text in sentences if re.match(r"[a-z_.]+: ", text)] == []


@pytest.mark.parametrize(
    ("name", "changed", "told"),
    [
        (
            "glm",
            {"analysis": {"contrasts": {"a": "b", "c": "d"}}},
            (
                "study.yaml: field 'analysis.contrasts': must be one name with its column, such "
                "as 'patients: diagnosis', or 'all', from which others are computed afterwards."
            ),
        ),
        (
            "average",
            {"quorum": 9},
            "study.yaml: field 'quorum': 9 sites can't be there of 4. Lower it.",
        ),
        (
            "average",
            {"data": {"mesh": "fsaverage5", "space": "fsLR"}},
            "study.yaml: field 'data.space': fsaverage5 has a space of its own. Leave space out.",
        ),
    ],
)
def test_a_contradiction_names_its_field_once(
    name: str, changed: dict[str, Any], told: str
) -> None:
    study = written(name)
    inside = {
        key: {**study.get(key, {}), **value} if isinstance(value, dict) else value
        for key, value in changed.items()
    }
    assert refusals({**study, **inside}) == [told]
