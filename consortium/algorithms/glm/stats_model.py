"""A BIDS Stats Model as another way to write the formula and the contrast.

Only what says exactly the same is read: one node of the level Dataset, a linear model with a
constant, dummy columns of levels, and contrasts that are single columns of it or one level against
the first. Everything else is refused by its name, as what is left out in silence would be another
model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from consortium.base.frozen_model import FrozenModel

Text = Annotated[str, Field(min_length=1, max_length=129)]
Levels = Mapping[str, tuple[str, ...]]
"""Levels of every column of the study outside the outcomes; none of a column with limits."""
_MOST = 100  # names in a list: no model of a consortium has more
_INTERCEPTS = (1, "1", "intercept")


class Instruction(FrozenModel):
    """A transformation that makes dummy columns of levels, which is all that is known here."""

    Name: Literal["Factor"]
    Input: Annotated[tuple[Text, ...], Field(max_length=_MOST)]


class Steps(FrozenModel):
    """What is done to columns before the model."""

    Transformer: str = "pybids-transforms-v1"
    Instructions: Annotated[tuple[Instruction, ...], Field(max_length=_MOST)] = ()
    Description: str = ""


class LinearModel(FrozenModel):
    """Columns of the design."""

    Type: Literal["glm"] = "glm"
    X: Annotated[tuple[Literal[1] | Text, ...], Field(min_length=1, max_length=_MOST)]
    Description: str = ""


class Contrast(FrozenModel):
    """A weighted sum of columns."""

    Name: Text
    ConditionList: Annotated[tuple[Text, ...], Field(min_length=1, max_length=_MOST)]
    Weights: Annotated[tuple[float, ...], Field(min_length=1, max_length=_MOST)]
    Test: Literal["t"] = "t"
    Description: str = ""


class EachColumn(FrozenModel):
    """Columns of which each is a contrast."""

    Test: Literal["t"] = "t"
    Contrasts: Annotated[tuple[Text, ...], Field(min_length=1, max_length=_MOST)]
    Description: str = ""


class Node(FrozenModel):
    """An analysis over all persons."""

    Level: Literal["Dataset", "dataset"]
    Name: Text
    GroupBy: tuple[Literal["contrast"], ...] = ()
    Transformations: Steps | None = None
    Model: LinearModel
    Contrasts: Annotated[tuple[Contrast, ...], Field(max_length=_MOST)] = ()
    DummyContrasts: EachColumn | None = None
    Description: str = ""


class StatsModel(FrozenModel):
    """What a file `*_smdl.json` says, as far as it can be said to `glm`."""

    Name: Text
    BIDSModelVersion: Literal["1.0.0"]
    Description: str = ""
    Nodes: Annotated[tuple[Node, ...], Field(min_length=1, max_length=1)]


@dataclass(frozen=True)
class _Columns:
    """Columns of the formula in their order, with the levels that X names of each, if any."""

    named: dict[str, list[str]]
    whole: str

    def terms(self, name: str, levels: Levels) -> str:
        """The term of one column of X."""
        column, level = _split(name, levels)
        if column not in self.named or (level and level not in self.named[column]):
            raise ValueError(f"model: '{name}' is not in X; add it, or leave its contrast out")
        if not level:
            return column
        if column == self.whole:
            raise ValueError(
                f"model: '{name}' alone is a mean and no difference; contrast two levels of "
                f"'{column}' with weights 1 and -1"
            )
        return _term(column, level, levels)


def formula_of(model: StatsModel, levels: Levels) -> tuple[str, dict[str, str] | Literal["all"]]:
    """Formula and contrasts that say the same as a model.

    Raises ValueError if something can't be said so: in one sentence, by its name.

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
        raise ValueError("model: there is no contrast; name one in Contrasts or DummyContrasts")
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
            raise ValueError(f"model: X names '{name}' twice; name it once")
        found.setdefault(column, []).extend([level] if level else [])
    whole = [column for column, own in found.items() if own and set(own) == set(levels[column])]
    for column, own in found.items():
        if own and column not in whole and set(own) != set(levels[column][1:]):
            raise ValueError(
                f"model: X has other levels of '{column}' than all, or all but the first of the "
                f"study's, which is '{levels[column][0]}'; exchange the levels in 'features'"
            )
    if len(whole) + constant != 1:
        raise ValueError(
            "model: X needs one constant, as every site has its own: a 1, or all levels of one "
            "column"
        )
    return _Columns(found, whole[0] if whole else "")


def _split(name: str, levels: Levels) -> tuple[str, str]:
    """Column and level of a name of X; no level of a column with limits."""
    if name in levels:
        if levels[name]:
            raise ValueError(
                f"model: '{name}' is a column of levels; name its dummy columns, such as "
                f"'{name}.{levels[name][-1]}'"
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
    """Name and term of a contrast: a column of X, or a level against the first one."""
    weights, names = contrast.Weights, contrast.ConditionList
    if weights == (1,) and len(names) == 1:
        return contrast.Name, columns.terms(names[0], levels)
    if weights == (1, -1) and len(names) == 2:
        (one, level), (other, against) = (_split(name, levels) for name in names)
        if one == other == columns.whole and against == levels[one][0] != level:
            return contrast.Name, _term(one, level, levels)
    raise ValueError(
        f"model: contrast '{contrast.Name}' is neither a column of X with weight 1 nor, where X "
        "has all levels of a column, a level with 1 against the study's first with -1; for others "
        "write 'contrasts: all' in the study's own words, and use 'consortium contrast'"
    )
