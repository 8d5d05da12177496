"""From a study file to a study, and the schema that editors check it with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from consortium.algorithms import REGISTRY
from consortium.base.frozen_model import first_problem
from consortium.base.strict_yaml import MOST_TEXT, PlainYamlError, parse_yaml, read_limited
from consortium.errors import StudyError
from consortium.study.spec import Study


def parse_study(text: str, where: str = "study") -> Study:
    """Read a study from YAML text.

    Raises StudyError if the text is not YAML, or a field is unknown, missing or out of range; the
    message names the field.
    """
    if len(text) > MOST_TEXT:
        raise StudyError(
            f"{where}: a study file must be smaller than a megabyte, and this is larger. Name the "
            "study file, usually a page of YAML."
        )
    try:
        values = parse_yaml(text)
    except PlainYamlError as error:
        place = f", line {error.line}" if error.line is not None else ""
        raise StudyError(
            f"{where}{place} must be plain YAML, and is not. Correct its syntax, write each field "
            "once, and use neither aliases nor tags."
        ) from error
    if not isinstance(values, dict):
        raise StudyError(
            f"{where}: a study file must have fields, and this has none. Write them as 'name: "
            "value' lines."
        )
    try:
        return Study.model_validate(values)
    except ValidationError as error:
        raise StudyError(f"{where}: {study_problem(error, values)}") from error


def study_problem(error: ValidationError, values: Mapping[str, Any]) -> str:
    """State in a sentence which field of a study is wrong; the values are the refused study's."""
    name = values.get("algorithm")
    known = REGISTRY[name].Parameters if isinstance(name, str) and name in REGISTRY else None
    return first_problem(error, Study, parts={"analysis": known} if known else None)


def read_study(path: Path) -> Study:
    """Read a study file.

    Raises StudyError if the file is missing or `parse_study` refuses its text.
    """
    try:
        text = read_limited(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(
            f"{path}: must be a study file in UTF-8, and can't be read. Check the path."
        ) from error
    return parse_study(text, str(path))


def study_schema() -> dict[str, Any]:
    """Return the JSON schema of the study file, with every analysis's own parameters."""
    schema = Study.model_json_schema()
    schema["$defs"].pop("AnalysisParameters")
    schema["properties"].pop("analysis")
    schema["allOf"] = []
    for name, algorithm in sorted(REGISTRY.items()):
        analysis = algorithm.Parameters.model_json_schema()
        schema["$defs"] |= analysis.pop("$defs", {})  # references start at the root
        when = {"properties": {"algorithm": {"const": name}}}
        schema["allOf"].append({"if": when, "then": {"properties": {"analysis": analysis}}})
    return schema
