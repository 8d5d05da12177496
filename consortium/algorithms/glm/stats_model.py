"""BIDS Stats Models as an alternative notation of formula and contrast.

Only models with an exact equivalent are accepted: one node of the level Dataset, a linear model
with a constant, dummy columns of levels, and contrasts that are single columns of it or one level
against the first. Every other field is rejected by name, since ignoring it would change the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from consortium.base.frozen_model import FrozenModel

Text = Annotated[str, Field(min_length=1, max_length=129)]
Levels = Mapping[str, tuple[str, ...]]
"""Levels of every column of the study except the outcomes; empty for a column with limits."""
_MOST = 100  # names in a list
_INTERCEPTS = (1, "1", "intercept")


class Instruction(FrozenModel):
    """Transformation that makes dummy columns of levels, the only one that is supported."""

    Name: Literal["Factor"]
    Input: Annotated[tuple[Text, ...], Field(max_length=_MOST)]


class Steps(FrozenModel):
    """Transformations of columns before the model."""

    Transformer: str = "pybids-transforms-v1"
    Instructions: Annotated[tuple[Instruction, ...], Field(max_length=_MOST)] = ()
    Description: str = ""


class LinearModel(FrozenModel):
    """Columns of the design."""

    Type: Literal["glm"] = "glm"
    X: Annotated[tuple[Literal[1] | Text, ...], Field(min_length=1, max_length=_MOST)]
    Description: str = ""


class Contrast(FrozenModel):
    """Weighted sum of columns."""

    Name: Text
    ConditionList: Annotated[tuple[Text, ...], Field(min_length=1, max_length=_MOST)]
    Weights: Annotated[tuple[float, ...], Field(min_length=1, max_length=_MOST)]
    Test: Literal["t"] = "t"
    Description: str = ""


class EachColumn(FrozenModel):
    """Columns that are each a contrast."""

    Test: Literal["t"] = "t"
    Contrasts: Annotated[tuple[Text, ...], Field(min_length=1, max_length=_MOST)]
    Description: str = ""


class Node(FrozenModel):
    """Analysis over all participants."""

    Level: Literal["Dataset", "dataset"]
    Name: Text
    GroupBy: tuple[Literal["contrast"], ...] = ()
    Transformations: Steps | None = None
    Model: LinearModel
    Contrasts: Annotated[tuple[Contrast, ...], Field(max_length=_MOST)] = ()
    DummyContrasts: EachColumn | None = None
    Description: str = ""


class StatsModel(FrozenModel):
    """Content of a file `*_smdl.json`, restricted to fields that `glm` supports."""

    Name: Text
    BIDSModelVersion: Literal["1.0.0"]
    Description: str = ""
    Nodes: Annotated[tuple[Node, ...], Field(min_length=1, max_length=1)]


@dataclass(frozen=True)
class _Columns:
    """Columns of the formula in their order, with the levels that X names for each, if any."""

    named: dict[str, list[str]]
    whole: str

    def terms(self, name: str, levels: Levels) -> str:
        """Return the term of one column of X."""
        column, level = _split(name, levels)
        if column not in self.named or (level and level not in self.named[column]):
            raise ValueError(f"model: '{name}' is not in X. Add it, or remove its contrast.")
        if not level:
            return column
        if column == self.whole:
            raise ValueError(
                f"model: '{name}' by itself is a mean and not a difference. Contrast two levels of "
                f"'{column}' with weights 1 and -1."
            )
        return _term(column, level, levels)


def formula_of(model: StatsModel, levels: Levels) -> tuple[str, dict[str, str] | Literal["all"]]:
    """Return the formula and contrasts that are equivalent to a model.

    Raises ValueError if there are none, with one sentence that names the reason.

    Examples
    --------
    >>> model = StatsModel.model_validate(
    ...     {
    ...         "Name": "thickness",
    ...         "BIDSModelVersion": "1.0.0",
    ...         "Nodes": [
    ...             {
    ...                 "Level": "Dataset",
    ...                 "Name": "group",
    ...                 "Model": {"Type": "glm", "X": [1, "diagnosis.patient", "age"]},
    ...                 "DummyContrasts": {"Test": "t", "Contrasts": ["diagnosis.patient"]},
    ...             }
    ...         ],
    ...     }
    ... )
    >>> formula_of(model, {"diagnosis": ("control", "patient"), "age": ()})
    ('diagnosis + age', {'diagnosis.patient': 'diagnosis'})
    """
    (node,) = model.Nodes
    for instruction in node.Transformations.Instructions if node.Transformations else ():
        for name in instruction.Input:
            if not levels.get(name):
                raise ValueError(f"model: Factor '{name}': the study has no column of such levels")
    columns = _columns(node.Model.X, levels)
    found = [_explicit(each, columns, levels) for each in node.Contrasts]
    dummies = node.DummyContrasts.Contrasts if node.DummyContrasts else ()
    found += [(name, columns.terms(name, levels)) for name in dummies]
    if not found:
        raise ValueError("model: a contrast is required. Name one in Contrasts or DummyContrasts.")
    terms = list(dict.fromkeys(term for _, term in found))
    first = terms[0].partition("=")[0]
    order = [first, *(name for name in columns.named if name != first)]
    if len(terms) == 1:
        return " + ".join(order), {found[0][0]: terms[0]}
    return " + ".join(order), "all"


def _columns(names: tuple[Literal[1] | str, ...], levels: Levels) -> _Columns:
    found: dict[str, list[str]] = {}
    constant = False
    for name in names:
        if name in _INTERCEPTS:
            constant = True
            continue
        column, level = _split(str(name), levels)
        if level in found.get(column, ()) or (column in found and not level):
            raise ValueError(f"model: X must name '{name}' only once")
        found.setdefault(column, []).extend([level] if level else [])
    whole = [column for column, own in found.items() if own and set(own) == set(levels[column])]
    for column, own in found.items():
        if own and column not in whole and set(own) != set(levels[column][1:]):
            raise ValueError(
                f"model: X must have all levels of '{column}', or all except the study's first, "
                f"which is '{levels[column][0]}'. Exchange the levels in 'features'."
            )
    if len(whole) + constant != 1:
        raise ValueError(
            "model: X must have one constant, as every site has its own: a 1, or all levels of one "
            "column"
        )
    return _Columns(found, whole[0] if whole else "")


def _split(name: str, levels: Levels) -> tuple[str, str]:
    """Return column and level of a name of X; an empty level for a column with limits."""
    if name in levels:
        if levels[name]:
            raise ValueError(
                f"model: '{name}' is a column of levels. Name its dummy columns, such as "
                f"'{name}.{levels[name][-1]}'."
            )
        return name, ""
    for column, own in levels.items():
        level = name.removeprefix(f"{column}.")
        if level != name and level in own:
            return column, level
    raise ValueError(f"model: the study has no column, or level of a column, '{name}'")


def _term(column: str, level: str, levels: Levels) -> str:
    return column if len(levels[column]) == 2 else f"{column}={level}"


def _explicit(contrast: Contrast, columns: _Columns, levels: Levels) -> tuple[str, str]:
    """Return name and term of a contrast: a column of X, or a level against the first one."""
    weights = contrast.Weights
    names = contrast.ConditionList
    if weights == (1,) and len(names) == 1:
        return contrast.Name, columns.terms(names[0], levels)
    if weights == (1, -1) and len(names) == 2:
        (one, level), (other, against) = (_split(name, levels) for name in names)
        if one == other == columns.whole and against == levels[one][0] != level:
            return contrast.Name, _term(one, level, levels)
    raise ValueError(
        f"model: contrast '{contrast.Name}' must be a column of X with weight 1 or, if X has all "
        "levels of a column, a level with 1 against the study's first with -1. For others write "
        "'contrasts: all' in the study's own fields, and use 'consortium contrast'."
    )
