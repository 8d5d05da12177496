"""Markdown of tables, and of the fields of a JSON schema."""

from collections.abc import Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]

KEYS: Mapping[str, tuple[str, ...]] = {
    "CcaParameters.bounds": ("view",),
    "CcaParameters.radii": ("view",),
    "CcaParameters.reduce": ("view",),
    "CcaParameters.shares": ("view",),
    "CoordinateParameters.levels": ("view",),
    "CoordinateParameters.radii": ("view",),
    "DataSection.entities": ("BIDS entity",),
    "DataSection.persons": ("column",),
    "DescribeParameters.bins": ("column",),
    "DescribeParameters.shares": ("level",),
    "DescribeParameters.survival": ("curve",),
    "EegView.bands": ("band",),
    "GlmParameters.averages": ("group of outcomes",),
    "GlmParameters.contrasts": ("contrast",),
    "GlmParameters.covariates": ("column",),
    "GlmParameters.groups": ("site",),
    "GlmParameters.shares": ("site",),
    "GlmParameters.site_means": ("column", "site"),
    "PrivacyReport.versions": ("package",),
    "Study.participants": ("site",),
    "TableView.columns": ("column",),
}
"""Nouns for the keys of a field, by model and field. The second one is for keys of its values."""


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
        keys = KEYS.get(f"{section.get('title')}.{name}", ())
        rows.append([f"`{name}`", kind(whole, keys), shown, str(field.get("description", ""))])
    return table(["field", "value", "default", "meaning"], rows)


def resolved(field: Schema | bool, schema: Schema) -> Schema:
    """A field itself, or what it refers to."""
    if isinstance(field, bool):
        return {}
    reference = field.get("$ref")
    return field if reference is None else schema["$defs"][reference.rsplit("/", 1)[1]]


def kind(field: Schema, keys: Sequence[str] = (), many: bool = False) -> str:
    """What values a field takes, in words; in the plural if there are many."""
    s = "s" if many else ""
    if "anyOf" in field:
        return _choice([f for f in field["anyOf"] if f.get("type") != "null"], keys, many)
    if "enum" in field:
        return ", ".join(f"`{choice}`" for choice in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if "prefixItems" in field:
        return _fixed(field["prefixItems"])
    if "oneOf" in field or "$ref" in field:
        return f"section{s}, see below"
    if "patternProperties" in field:
        (values,) = field["patternProperties"].values()
        return _by_key(values, keys)
    if "additionalProperties" in field and "properties" not in field:
        return _by_key(field["additionalProperties"], keys)
    if field.get("type") == "array":
        return f"list{s} of {kind(field['items'], many=True)}"
    return _plain(field, s)


def _choice(fields: list[Schema], keys: Sequence[str], many: bool) -> str:
    """Return the words for one of several kinds; one value, or the same for each key, is one."""
    kinds = list(dict.fromkeys(kind(f, keys, many) for f in fields))
    for single in tuple(kinds):
        for by_key in [k for k in kinds if k.startswith(f"one {single} for each ")]:
            kinds.remove(by_key)
            kinds[kinds.index(single)] = f"{single}, or {by_key.replace(f' {single}', '', 1)}"
        if f"whole {single}" in kinds:
            kinds.remove(f"whole {single}")
    return " or ".join(kinds)


def _by_key(values: Schema, keys: Sequence[str]) -> str:
    """Return the words for one value for each key, with the noun for its keys."""
    key, *inner_keys = keys
    whole = kind(values, inner_keys)
    inner = whole.removesuffix(", see below")
    below = whole.removeprefix(inner)
    if inner_keys:
        return f"for each {key}, {inner}"
    if inner.startswith("list of numbers "):
        return f"for each {key}, one {inner}{below}"
    return f"{inner if inner.startswith('two ') else f'one {inner}'} for each {key}{below}"


def _fixed(fields: list[Schema]) -> str:
    """Return the words for a list of a fixed length."""
    if len({kind(f) for f in fields}) > 1:
        return f"lists of {', '.join(kind(f) for f in fields)}"
    number = ("one", "two", "three")[len(fields) - 1]
    return f"{number} {kind(fields[0], many=len(fields) > 1)}"


def _plain(field: Schema, plural: str) -> str:
    words = {
        "object": f"section{plural}",
        "string": f"text{plural}",
        "number": f"number{plural}",
        "integer": f"whole number{plural}",
        "boolean": "`true` or `false`",
    }
    pattern = [f"matching `{field['pattern']}`"] if "pattern" in field else []
    return " ".join([words[field["type"]], *pattern, _range(field)]).strip()


def _range(field: Schema) -> str:
    """Return the limits of a number in words."""
    low, high = field.get("minimum"), field.get("maximum")
    if low is not None and high is not None:
        return f"from {low:,.12g} to {high:,.12g}"
    limits = {"minimum": "of at least", "exclusiveMinimum": "above"}
    limits |= {"maximum": "at most", "exclusiveMaximum": "below"}
    return " and ".join(
        f"{word} {field[key]:,.12g}" for key, word in limits.items() if key in field
    )


def _value(default: object) -> str:
    if default in ("", []):
        return "empty"
    number = isinstance(default, float | int) and not isinstance(default, bool)
    return f"`{default:g}`" if number else f"`{default}`"
