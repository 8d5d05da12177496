"""A first study file, written from a few answers: commented, complete, and to be edited.

The drafts are in ``drafts``, one for each analysis of a first study.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from consortium.base.atomic import write_text
from consortium.coordinator.new_study_tables import (
    given_file,
    read_groups,
    read_limits,
    with_regions,
)
from consortium.errors import StudyError
from consortium.study.nominal import check_nominal, nominal_size
from consortium.study.reader import parse_study, read_study
from consortium.study.spec import Study

_NAME = re.compile(r"[A-Za-z0-9_.&*-]{1,64}(\[\d{1,5}-\d{1,5}\])?")
Ask = Callable[[str, str], str]
"""Asks the user a question, with a default answer."""


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _columns(text: str) -> list[str]:
    """Return names of columns, which have no white space, so it also separates them."""
    names = re.split(r"[,;\s]+", text.strip(" ,;"))
    strange = [name for name in names if not _NAME.fullmatch(name)]
    twice = [name for name, many in Counter(names).items() if many > 1]
    if strange or twice:
        wrong = f"got '{strange[0][:40]}'" if strange else f"and '{twice[0]}' is named twice"
        raise StudyError(
            "--outcomes: names of columns are required, each once, of letters, digits, '_', '.', "
            f"'&', '-' and '*', {wrong}. Correct it."
        )
    return names


def _numbers(text: str) -> list[float]:
    return [float(word) for word in _words(text)]


def _counts(text: str) -> list[int]:
    return [int(word) for word in _words(text)]


@dataclass(frozen=True)
class DraftQuestion:
    """One question that `new-study` asks to draft a study file."""

    text: str
    """Text of the question."""
    usual: str = ""
    """Default answer; empty if an answer is required."""
    read: Callable[[str], Any] = str
    """Makes the draft's value of an answer."""


_LEARNED = "learned"


def _deviation(said: str) -> float | None:
    return None if said == _LEARNED else float(said)


QUESTIONS: Mapping[str, DraftQuestion] = {
    "name": DraftQuestion("Short name, of lower-case letters, digits and hyphens"),
    "title": DraftQuestion("Title, a line for people"),
    "sites": DraftQuestion("Sites, with commas", read=_words),
    "subjects": DraftQuestion(
        "Nominal number of participants, one for all sites or one for each with commas",
        "100",
        _counts,
    ),
    "volumes": DraftQuestion("Nominal number of volumes of a participant", "200", int),
    "epsilon": DraftQuestion("Largest ε of a run", "4", float),
    "delta": DraftQuestion("δ", "0.00001", float),
    "colluding_sites": DraftQuestion("Sites that may collude with the coordinator", "1", int),
    "dropouts": DraftQuestion("Sites that may fail to answer a round", "0", int),
    "task": DraftQuestion("BIDS task of the images", "rest"),
    "components": DraftQuestion("Most networks that are looked for", "10", int),
    "outcomes": DraftQuestion(
        "Columns of participants.tsv that are compared or described, with commas, as region[1-20] "
        "or lh_*_thickness for all regions",
        read=_columns,
    ),
    "deviation": DraftQuestion(
        "Their usual standard deviation within a site and group, if known", _LEARNED, _deviation
    ),
    "column": DraftQuestion("Column of participants.tsv that has the groups"),
    "levels": DraftQuestion("The two groups in it, with a comma", "control,patient", _words),
    "groups": DraftQuestion(
        "Participants of each group at a site, with a comma, or a table with the columns site and "
        "both groups",
        read=_counts,
    ),
    "limits": DraftQuestion(
        "Low and high limit of the measured values, with a comma, or a table with the columns "
        "name, low and high",
        read=_numbers,
    ),
}
_ALL = ("name", "title", "sites", "epsilon", "delta", "colluding_sites", "dropouts")
DRAFTS: Mapping[str, tuple[str, ...]] = {
    "group_ica": (*_ALL, "subjects", "volumes", "task", "components"),
    "ica": (*_ALL, "subjects", "volumes", "task", "components"),
    "glm": (*_ALL, "outcomes", "limits", "deviation", "column", "levels", "groups"),
    "describe": (*_ALL, "subjects", "outcomes", "limits"),
}
"""Questions of each analysis's draft, in this order."""
_NETWORKS = "glm-networks"
_ASKED = {**DRAFTS, _NETWORKS: (*_ALL, "column", "levels", "groups")}
_BY_GROUP = ("column", "levels")
"""Further questions of describe, once --column is given."""


def new_study(
    path: Path, algorithm: str, given: Mapping[str, str | None], ask: Ask | None
) -> Study:
    """Write a commented first study file from the coordinator's answers.

    Raises StudyError if the file exists, an answer is missing or not used by this draft, or the
    answers make no valid study. Nothing is written then. Raises OutputError if the file can't be
    written.

    Parameters
    ----------
    algorithm : str
        One of `DRAFTS`. A glm with ``components``, the output folder of a run, compares the
        strengths of its networks: their maps and a table of their names are written next to the
        file.
    given : mapping of str to str
        Known answers, by the names of `QUESTIONS`.
    ask : callable, optional
        Asks for missing answers. Without it defaults are used, and one without default is an error.
    """
    if path.exists():
        raise StudyError(f"{path} exists already and is not changed. Choose another file name.")
    if algorithm not in DRAFTS:
        raise StudyError(
            f"--algorithm: must be one of {', '.join(DRAFTS)}, got {algorithm[:40]!r}. For another "
            "analysis copy a file of configs/."
        )
    _check_used(algorithm, given)
    first = given.get("components") if algorithm == "glm" else None
    if first is not None:
        return _of_networks(path, Path(first), given, ask)
    text = _draft(path, algorithm, view="outcomes", **_answers(algorithm, given, ask))
    study = parse_study(text, f"{path} (not written)")
    write_text(path, text)
    return study


def _of_networks(
    path: Path, folder: Path, given: Mapping[str, str | None], ask: Ask | None
) -> Study:
    """Write a glm of the networks that a run found, prepared as they were."""
    from consortium.coordinator.evidence import STUDY_FILE, STUDY_FOLDER
    from consortium.report.as_templates import write_templates
    from consortium.space.atlas import table_of
    from consortium.verification.record import EVIDENCE

    found = folder / EVIDENCE / STUDY_FOLDER / STUDY_FILE
    if not found.is_file():
        raise StudyError(
            f"{folder} must be the output folder of a run, and {found} is missing. Name another."
        )
    first = read_study(found)
    if first.data.mesh:
        raise StudyError(
            f"{folder} has networks on the mesh {first.data.mesh}, whose strength can't be "
            "measured yet. Name the output folder of a run in voxels."
        )
    answers = {**given, "sites": given.get("sites") or ",".join(first.sites)}
    maps = path.with_name(f"{path.stem}-networks.nii.gz")
    text = _draft(
        path,
        _NETWORKS,
        view="networks",
        first=first.study,
        maps=maps.name,
        names=table_of(maps).name,
        data=first.data.model_dump(mode="json", exclude_unset=True),
        **_answers(_NETWORKS, answers, ask),
    )
    study = parse_study(text, f"{path} (not written)")
    write_templates(folder, maps)
    write_text(path, text)
    return study


def questions_of(algorithm: str, given: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the names of the questions whose answers a draft uses."""
    if algorithm == "describe" and given.get("column") is not None:
        return (*DRAFTS[algorithm], *_BY_GROUP)
    if algorithm == "glm" and given.get("components") is not None:
        return (*_ASKED[_NETWORKS], "components")
    return DRAFTS.get(algorithm, ())


def _check_used(algorithm: str, given: Mapping[str, str | None]) -> None:
    """Raise StudyError if an answer is given that the draft does not use."""
    used = questions_of(algorithm, given)
    unused = [option_name(each) for each in given if given[each] is not None and each not in used]
    if unused:
        needs = f" without {option_name('column')}" if unused == ["--levels"] else ""
        raise StudyError(
            f"{', '.join(unused)}: the draft of {algorithm}{needs} uses only "
            f"{', '.join(map(option_name, used))}. Leave {'it' if len(unused) == 1 else 'them'} "
            "out, or edit the file afterwards."
        )


def _answers(algorithm: str, given: Mapping[str, str | None], ask: Ask | None) -> dict[str, Any]:
    asked = _ASKED[_NETWORKS] if algorithm == _NETWORKS else questions_of(algorithm, given)
    found = {name: given.get(name) for name in asked}
    limits = given_file(found.get("limits") or "")
    if limits is not None and "outcomes" in found and found["outcomes"] is None:
        found["outcomes"] = ",".join(read_limits(limits, None))
    if ask is not None:
        for name in (each for each in found if found[each] is None):
            found[name] = ask(QUESTIONS[name].text, QUESTIONS[name].usual)
    answers = {
        name: QUESTIONS[name].usual if said is None else said for name, said in found.items()
    }
    answers["title"] = answers["title"] or answers["name"]
    missing = [option_name(name) for name, said in answers.items() if not said]
    if missing:
        raise StudyError(f"The new study needs {', '.join(missing)}. State them.")
    return _with_tables(answers)


def _with_tables(answers: Mapping[str, str]) -> dict[str, Any]:
    """Return values of the answers, and limits and groups for each column and site."""
    files = {name: given_file(answers.get(name, "")) for name in ("limits", "groups")}
    read = {name: _read(name, said) for name, said in answers.items() if not files.get(name)}
    groups = files["groups"]
    limits = files["limits"]
    if "groups" in answers:
        same = dict.fromkeys(read["sites"], read.get("groups"))
        read["groups"] = read_groups(groups, read["sites"], read["levels"]) if groups else same
        sums = {site: sum(sizes) for site, sizes in read["groups"].items()}
        read["participants"] = {site: nominal_size(each) for site, each in sums.items()}
    else:
        read["participants"] = _nominal(read["subjects"], read["sites"])
    if "limits" not in answers:
        return read
    if limits is None:
        names, regions = with_regions(read["outcomes"])
        return {**read, "columns": dict.fromkeys(names, read["limits"]), "regions": regions}
    columns = read_limits(limits, read["outcomes"])
    regions = with_regions(list(columns))[1]
    return {**read, "limits": None, "columns": columns, "regions": regions}


def _nominal(sizes: list[int], sites: list[str]) -> dict[str, int]:
    """Return each site's nominal size; raises StudyError if one or their number is wrong."""
    if len(sizes) not in (1, len(sites)):
        raise StudyError(
            f"--subjects: one number or one for each of {len(sites)} sites is required, got "
            f"{len(sizes)}. Correct them."
        )
    for size in sizes:
        check_nominal(size, "--subjects")
    return dict(zip(sites, sizes * (1 if len(sizes) > 1 else len(sites)), strict=True))


def option_name(name: str) -> str:
    """Return the option of the command line for an answer."""
    return "--" + name.replace("_", "-")


def _read(name: str, said: str) -> Any:
    try:
        value = QUESTIONS[name].read(said)
    except ValueError as error:
        raise StudyError(
            f"{option_name(name)}: must be a number, got {said[:40]!r}. Correct it."
        ) from error
    pairs = ("levels", "groups", "limits")
    if name in pairs and len(value) != 2:
        raise StudyError(
            f"{option_name(name)}: must be two values with a comma, got {said[:40]!r}. Correct it."
        )
    return value


def _draft(path: Path, algorithm: str, **answers: Any) -> str:
    drafts = Environment(
        loader=PackageLoader("consortium.coordinator", "drafts"),
        autoescape=False,  # noqa: S701 - YAML, every value of which is written as JSON
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    drafts.policies["json.dumps_kwargs"] = {"ensure_ascii": False}
    return drafts.get_template(f"{algorithm}.yaml").render(path=path.name, **answers)
