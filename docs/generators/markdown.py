"""Markdown of tables, and of the fields of a JSON schema."""

from collections.abc import Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(c.replace('|', chr(92) + '|') for c in r)} |\n" for r in lines)


def first_sentence(text: str) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join(text.split("\n\n")[0].split())


def fields(section: Schema, schema: Schema) -> str:
    """The fields of a model with their values, defaults and meanings."""
    required = section.get("required", [])
    rows = []
    for name, field in section["properties"].items():
        whole = resolved(field, schema)
        optional, default = name not in required, field.get("default")
        shown = "required" if not optional else "" if default is None else _value(default)
        shown = "see below" if optional and whole.get("properties") else shown
        rows.append([f"`{name}`", kind(whole), shown, str(field.get("description", ""))])
    return table(["field", "value", "default", "meaning"], rows)


def resolved(field: Schema | bool, schema: Schema) -> Schema:
    """A field itself, or what it refers to."""
    if isinstance(field, bool):
        return {}
    reference = field.get("$ref")
    return field if reference is None else schema["$defs"][reference.rsplit("/", 1)[1]]


def kind(field: Schema) -> str:
    """What values a field takes, in words."""
    if "anyOf" in field:
        kinds = [kind(f) for f in field["anyOf"] if f.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "enum" in field:
        return ", ".join(f"`{choice}`" for choice in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if "prefixItems" in field:
        return _fixed([kind(f) for f in field["prefixItems"]])
    if "oneOf" in field or "$ref" in field:
        return "sections, see below"
    if "patternProperties" in field:
        (values,) = field["patternProperties"].values()
        return f"{kind(values)} by name"
    if "additionalProperties" in field and "properties" not in field:
        return f"{kind(field['additionalProperties'])}, by name"
    if field.get("type") == "array":
        return f"list of {kind(field['items'])}"
    return _plain(field)


def _fixed(kinds: list[str]) -> str:
    """Return the words for a list of a fixed length."""
    if len(set(kinds)) > 1:
        return f"lists of {', '.join(kinds)}"
    number = ("one", "two", "three")[len(kinds) - 1]
    return f"{number} {kinds[0]}{'s' if len(kinds) > 1 else ''}"


def _plain(field: Schema) -> str:
    words = {
        "object": "section",
        "string": "text",
        "number": "number",
        "integer": "whole number",
        "boolean": "`true` or `false`",
    }
    limits = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    bounds = [f"{sign} {field[key]:g}" for key, sign in limits.items() if key in field]
    pattern = [f"matching `{field['pattern']}`"] if "pattern" in field else []
    return " ".join([words[field["type"]], *pattern, ", ".join(bounds)]).strip()


def _value(default: object) -> str:
    if default in ("", []):
        return "empty"
    number = isinstance(default, float | int) and not isinstance(default, bool)
    return f"`{default:g}`" if number else f"`{default}`"
