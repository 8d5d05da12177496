"""The study file: every refusal names its field, and no YAML trick gets through."""

import json
import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from consortium.algorithms import REGISTRY
from consortium.errors import StudyError
from consortium.study.reader import parse_study, read_study, study_schema
from consortium.study.spec import Study
from tests.support.cases import table_views

PLAIN = {
    "study": "networks",
    "sites": ["north", "east", "south", "west"],
    "privacy": {"epsilon": 2, "delta": 1e-5, "colluding_sites": 1},
    "algorithm": "pca",
    "analysis": {"components": 3},
}


def text(**changes):
    """YAML of a good study with some fields changed, or removed if None; dots lead inside."""
    values = json.loads(json.dumps(PLAIN))
    for path, value in changes.items():
        *way, last = path.split("__")
        place = values
        for word in way:
            place = place.setdefault(word, {})
        if value is None:
            del place[last]
        else:
            place[last] = value
    return yaml.safe_dump(values)


def refusal(source):
    with pytest.raises(StudyError) as caught:
        parse_study(source, "my.yaml")
    message = str(caught.value)
    assert message.startswith("my.yaml")
    assert message.endswith((".", "?"))
    assert "\n" not in message
    assert len(message) < 500
    return message


def test_a_good_study_is_read_with_its_defaults():
    study = parse_study(text())
    assert study.analysis == REGISTRY["pca"].Parameters(components=3)
    assert study.privacy.unit == "subject"
    assert (study.privacy.scheme, study.privacy.boost) == ("cape", "exact")
    assert study.privacy.dropouts == 0
    mean = text(algorithm="average", analysis=None, data__detrend="none")
    assert parse_study(mean).analysis.bound == 1.0


def test_a_mean_of_what_has_no_mean_is_refused():
    message = refusal(text(algorithm="average", analysis=None))
    assert "data.detrend" in message


def test_a_misspelt_field_is_named_before_the_missing_one():
    message = refusal(text(privacy__epsilon=None, privacy__epsilom=2))
    assert "'privacy.epsilom' is unknown" in message
    assert message.endswith("Did you mean 'epsilon'?")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"colour": "red"}, "field 'colour' is unknown. Remove it or correct its name."),
        ({"privacy__budget": 1}, "field 'privacy.budget' is unknown"),
        ({"data__maks": "x"}, "unknown. Remove it or correct its name. Did you mean 'mask'?"),
        ({"timing__wait": 1}, "field 'timing.wait' is unknown"),
        ({"analysis__component": 1}, "field 'analysis.component' is unknown"),
        ({"study": None}, "field 'study' is missing. Add it."),
        ({"sites": None}, "field 'sites' is missing"),
        ({"privacy": None}, "field 'privacy' is missing"),
        ({"algorithm": None}, "field 'algorithm' is missing"),
        ({"privacy__epsilon": None}, "field 'privacy.epsilon' is missing"),
        ({"privacy__delta": None}, "field 'privacy.delta' is missing"),
        ({"privacy__colluding_sites": None}, "field 'privacy.colluding_sites' is missing"),
        ({"analysis": None}, "field 'analysis.components' is missing"),
    ],
)
def test_unknown_and_missing_fields_are_named(changes, words):
    assert words in refusal(text(**changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sites": ["a", "b", "a"]}, "field 'sites': a site is named twice"),
        ({"sites": []}, "sites must be"),
        ({"sites": ["North"]}, "sites.0 must be"),
        ({"sites": ["a", "../b"]}, "sites.1 must be"),
        ({"sites": ["a" * 64]}, "sites.0 must be"),
        ({"sites": "north"}, "sites must be"),
        ({"study": "My Study"}, "study must be"),
        ({"study": "a/b"}, "study must be"),
        ({"study": ""}, "study must be"),
        ({"study": "a\n"}, "study must be"),
        (
            {"algorithm": "svd"},
            "field 'algorithm': 'svd' is not known. Choose one of admm, average",
        ),
        ({"algorithm": ["pca"]}, "algorithm must be text"),
        ({"analysis": [1]}, "analysis must be"),
        ({"analysis__components": 0}, "analysis.components must be"),
        ({"analysis__bound": -1}, "analysis.bound must be"),
        ({"privacy__epsilon": 0}, "privacy.epsilon must be"),
        ({"privacy__epsilon": 101}, "privacy.epsilon must be"),
        ({"privacy__epsilon": float("nan")}, "privacy.epsilon must be"),
        ({"privacy__epsilon": float("inf")}, "privacy.epsilon must be"),
        ({"privacy__epsilon": 10**400}, "privacy.epsilon must be"),
        ({"privacy__delta": 0}, "privacy.delta must be"),
        ({"privacy__delta": 0.5}, "privacy.delta must be"),
        ({"privacy__unit": "voxel"}, "privacy.unit must be"),
        ({"privacy__scheme": "plain"}, "privacy.scheme must be"),
        ({"privacy__boost": 0}, "privacy.boost must be"),
        ({"privacy__boost": 2e12}, "privacy.boost must be"),
        ({"privacy__boost": "large"}, "privacy.boost must be 'exact' or a number"),
        ({"privacy__scheme": "secure-sum"}, "'scheme: cape' and 'boost: exact'"),
        (
            {"privacy__scheme": "secure-sum", "privacy__boost": 1},
            "'scheme: cape' and 'boost: exact'",
        ),
        ({"privacy__scheme": "cape"}, "write 'boost: exact', or 'boost: 10000'"),
        ({"privacy__colluding_sites": -1}, "privacy.colluding_sites must be"),
        ({"privacy__dropouts": 1.5}, "privacy.dropouts must be"),
        ({"privacy__colluding_sites": 4}, "colluding"),
        ({"privacy__dropouts": 3}, "Lower colluding_sites or dropouts"),
        ({"data__resolution": 0}, "data.resolution must be"),
        ({"data__task": "rest_1"}, "data.task must be"),
        ({"data__detrend": "cubic"}, "data.detrend must be"),
        ({"timing__answer": 0}, "timing.answer must be"),
        ({"title": "x" * 201}, "title must be"),
    ],
)
def test_values_out_of_range_are_named(changes, words):
    assert words in refusal(text(**changes))


def table_of(column, file="participants.tsv"):
    return [{"name": "who", "source": "table", "file": file, "columns": {"group": column}}]


@pytest.mark.parametrize("mark", ["\x1b[2J\x1b[H", "\n\n## Approved", "\u202e"])
@pytest.mark.parametrize(
    "field",
    [
        lambda said: {"data__confounds": [said]},
        lambda said: {"data__mask": said},
        lambda said: {"data__atlas": said},
        lambda said: {"data__persons": {"group": {"levels": [said]}}},
        lambda said: {"features": table_of({"levels": ["a", said]})},
        lambda said: {"features": table_of({"low": 0, "high": 1}, said)},
    ],
)
def test_no_text_of_a_study_moves_the_screen_of_who_reads_it(field, mark):
    told = refusal(text(**field(f"b{mark}")))
    assert "a single line of printable characters" in told
    parse_study(text(**field("b")), "my.yaml")


@pytest.mark.parametrize(
    "mixing",
    [{"detrend": "linear"}, {"confounds": ["csf"]}, {"standardize": "voxel"}, {}],
)
def test_what_mixes_volumes_is_refused_for_unit_timepoint(mixing):
    plain = {"detrend": "none", "standardize": "none", "confounds": []}
    data = {**plain, **mixing} if mixing else {}
    message = refusal(text(privacy__unit="timepoint", data=data))
    assert "detrend: none" in message
    assert "unit subject" in message
    assert parse_study(text(privacy__unit="timepoint", data=plain)).privacy.unit == "timepoint"


def test_without_privacy_nobody_needs_to_be_honest():
    changes = {"privacy__scheme": "none", "privacy__colluding_sites": 4}
    assert parse_study(text(**changes)).privacy.scheme == "none"


def bomb(levels, use):
    """Nine names for each thing of the level below: 9^levels in all."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, levels)]
    return "\n".join(lines) + "\n" + text().replace("algorithm: pca", f"algorithm: {use}")


def merge_bomb(levels):
    lines = ["m0: &m0 {x: 1, y: 2}"]
    lines += [f"m{i}: &m{i} {{<<: [{', '.join([f'*m{i - 1}'] * 9)}]}}" for i in range(1, levels)]
    return "\n".join(lines) + "\n" + text()


TRICKS = {
    "aliases of aliases": bomb(30, "*a29"),
    "unused aliases of aliases": bomb(30, "pca"),
    "merges of merges": merge_bomb(30),
    "one alias": text().replace("algorithm: pca", "title: &x pca\nalgorithm: *x"),
    "an alias of itself": "a: &a [*a]\n" + text(),
    "python object": text().replace("pca", "!!python/object/apply:os.system ['true']"),
    "python name": text().replace("pca", "!!python/name:os.system ''"),
    "own tag": text().replace("algorithm: pca", "algorithm: !secret pca"),
    "deep list": "a: " + "[" * 200_000,
    "deep closed list": "a: " + "[" * 20_000 + "]" * 20_000,
    "deep mapping": "\n".join(" " * i + "a:" for i in range(1300)),
    "deep inline mapping": "{a: " * 20_000,
    "integer of 5000 digits": text().replace("components: 3", "components: " + "9" * 5000),
    "impossible date": text().replace("components: 3", "components: 2020-99-99"),
    "field twice": text() + "study: other\n",
    "budget twice": text().replace("epsilon: 2", "epsilon: 2\n  epsilon: 90"),
    "merge over a field": text().replace("epsilon: 2", "<<: {epsilon: 90}\n  epsilon: 2\n  <<: {}"),
    "list as a key": "? [a]\n: b\n" + text(),
    "two documents": text() + "---\n" + text(),
    "control character": text() + "title: \x07\n",
    "not closed": "a: {b: 1",
    "tabs": "a:\n\t- b\n",
}


@pytest.mark.parametrize("trick", TRICKS)
def test_yaml_tricks_are_refused_quickly(trick):
    start = time.process_time()
    assert "plain YAML" in refusal(TRICKS[trick])
    assert time.process_time() - start < 60  # spelt out, a bomb is of 2^30 fields


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("", "must have fields"),
        ("- a\n- b\n", "must have fields"),
        ("just words", "must have fields"),
        ("null", "must have fields"),
        ("x" * 1_000_001, "megabyte"),
        ("1: 2\n" + text(), "field '1'"),
        (text().replace("components: 3", "components: 0x" + "f" * 5000), "analysis.components"),
        (text().replace("epsilon: 2", "epsilon: 0x" + "f" * 5000), "privacy.epsilon"),
        (text().replace("epsilon: 2", "epsilon: 1e999"), "privacy.epsilon"),
        (text().replace("algorithm: pca", "algorithm: 0x" + "f" * 5000), "algorithm"),
        (text(algorithm="x" * 10_000), "algorithm"),
        (text(study="x" * 10_000), "study"),
    ],
)
def test_other_texts_that_are_no_study(source, words):
    assert words in refusal(source)


@given(st.text(max_size=300))
def test_any_text_is_a_study_or_a_refusal(source):
    with pytest.raises(StudyError):
        parse_study(source)


def test_a_study_is_frozen_and_a_file_like_any_other(tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text(text(), encoding="utf-8")
    study = read_study(path)
    assert study == parse_study(text())
    with pytest.raises(ValidationError, match="frozen"):
        study.study = "other"
    with pytest.raises(ValidationError, match="frozen"):
        study.privacy.epsilon = 100.0


def test_a_missing_or_binary_file_is_told(tmp_path):
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(StudyError, match="Check the path"):
            read_study(path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StudyError, match="binary"):
        read_study(tmp_path / "binary")


def test_the_digest_is_that_of_the_content():
    digest = parse_study(text()).digest
    exact = {"privacy__scheme": "cape", "privacy__boost": "exact"}
    spelled_out = text(**exact, data={"task": "rest"}, timing={})
    assert parse_study(spelled_out).digest == digest
    others = [
        text(privacy__epsilon=2.0000001),
        text(analysis__components=4),
        text(analysis__bound=0.5),
        text(sites=["east", "north", "south", "west"]),
        text(data__smoothing=1),
        text(title="x"),
        text(privacy__boost=10000),
    ]
    assert len({digest, *(parse_study(other).digest for other in others)}) == 8


@pytest.mark.parametrize("name", sorted(n for n in REGISTRY if REGISTRY[n].takes != "features"))
def test_writing_and_reading_a_study_are_inverses(name):
    analysis = {
        "average": {},
        "cca": {"pairs": 2, "bounds": {"age": 2.0}},
        "template_networks": {"templates": "maps.nii.gz"},
    }
    more = {"features": table_views()} if REGISTRY[name].takes == "features" else {}
    source = text(
        algorithm=name,
        analysis=analysis.get(name, {"components": 5}),
        privacy__dropouts=1,
        data__detrend="none" if REGISTRY[name].needs_means else "linear",
        **more,
    )
    study = parse_study(source)
    again = Study.model_validate(study.model_dump(mode="json"))
    assert again == study
    assert again.digest == study.digest
    assert parse_study(yaml.safe_dump(study.model_dump(mode="json"))) == study


def test_every_field_is_described():
    schema = study_schema()
    analyses = {
        case["if"]["properties"]["algorithm"]["const"]: case["then"]["properties"]["analysis"]
        for case in schema["allOf"]
    }
    assert set(analyses) == set(REGISTRY)
    models = [schema, *analyses.values()]
    models += [part for name, part in schema["$defs"].items() if name.endswith("Section")]
    assert len(models) == 6 + len(REGISTRY)
    for model in models:
        for field, about in model.get("properties", {}).items():
            named = schema["$defs"].get(about.get("$ref", "").split("/")[-1], {})
            assert {**named, **about}.get("description"), (model.get("title"), field)


def test_a_column_stands_in_one_view():
    views = """\
study: two
sites: [north, east, south, west]
privacy: {epsilon: 8, delta: 1.0e-5, colluding_sites: 1}
algorithm: pca
analysis: {components: 1}
features:
  - {name: who, source: table, columns: {"x[0-3]": {low: 0, high: 1}}}
  - {name: twice, source: table, file: FILE, columns: {x2: {low: 0, high: 2}}}
"""
    with pytest.raises(StudyError, match=r"who and twice both name x2 of participants\.tsv"):
        parse_study(views.replace("FILE", "participants.tsv"))
    assert len(parse_study(views.replace("FILE", "others.tsv")).features) == 2
