"""Text files and names that are made to exhaust, to mislead or to lead astray."""

from typing import Any

import yaml

from consortium.base.atomic import DAMAGED
from consortium.base.strict_yaml import PlainYamlError, parse_yaml
from consortium.errors import DataError
from consortium.membership.keys import load_identity
from consortium.study.data_section import DataSection
from consortium.study.reader import parse_study
from consortium.study.spec import Study
from site_agent.approval.approval import Terms, approve
from site_agent.data.bids import find_subjects
from site_agent.enrolment.pinned_consortium import read_pinned
from site_agent.layout import PINNED
from tests.attacks.attack_kinds import Stage, attack
from tests.support.membership_files import PLAIN, papers

_STUDY = (
    "study: small\nsites: [north, east, south, west]\n"
    "participants: {north: 10, east: 10, south: 10, west: 10}\nalgorithm: average\n"
    "privacy: {epsilon: 1, delta: 1.0e-5, colluding_sites: 1}\ndata: {detrend: none}\n"
)


def _count(tree: Any, most: int) -> int:
    """Count a tree's leaves, up to ``most``."""
    if not isinstance(tree, list):
        return 1
    total = 0
    for each in tree:
        total += _count(each, most - total)
        if total >= most:
            return total
    return total


def _read(text: str) -> Any:
    """Read YAML; what is not plain ends in the sentence that a study's reader gets."""
    try:
        return parse_yaml(text)
    except PlainYamlError:
        parse_study(text)
        raise


@attack(
    "file giver",
    guard="consortium.base.strict_yaml:PlainLoader.compose_node",
    without="a page of text expands to more values than fit into memory",
    stops="must be plain YAML",
    instead=lambda real: yaml.SafeLoader.compose_node,
)
def yaml_alias_bomb(stage: Stage) -> bool:
    """Writes a study of nine lists of ten aliases, one within the other."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for n in range(1, 10):
        lines.append(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]")
    return _count(_read("\n".join(lines))["a9"], 100_000) >= 100_000


@attack(
    "file giver",
    guard="consortium.base.strict_yaml:PlainLoader.compose_node",
    without="the reader ends with a traceback instead of a sentence",
    stops="must be plain YAML",
    instead=lambda real: yaml.SafeLoader.compose_node,
)
def tag_that_breaks_the_reader(stage: Stage) -> bool:
    """Tags a study's title as a date, although it is text."""
    try:
        _read("title: !!timestamp soon")
    except AttributeError:
        return True
    return False


@attack(
    "file giver",
    guard="consortium.base.strict_yaml:PlainLoader.construct_mapping",
    without="a reader of the first line approves the value of the last line",
    stops="line 7 must be plain YAML",
    instead=lambda real: yaml.SafeLoader.construct_mapping,
)
def field_written_twice(stage: Stage) -> bool:
    """Writes a small ε at the top of a study, and another one at its end."""
    last = "privacy: {epsilon: 100, delta: 1.0e-5, colluding_sites: 1}\n"
    return parse_study(_STUDY + last).privacy.epsilon == 100


@attack(
    "file giver",
    guard="consortium.base.strict_yaml:_MOST_VALUE",
    without="reading one number takes a time that grows as the square of its length",
    stops="must be plain YAML",
    instead=lambda real: 1 << 40,
)
def number_in_base_sixty(stage: Stage) -> bool:
    """Writes a number of twenty thousand digits in YAML's base 60."""
    return isinstance(_read(f"epsilon: {'1:' * 20_000}1")["epsilon"], int)


@attack(
    "file giver",
    guard="consortium.base.strict_yaml:_MOST_NODES",
    without="a megabyte of short values keeps a processor busy for ten seconds",
    stops="must be plain YAML",
    instead=lambda real: 1 << 40,
)
def endless_list(stage: Stage) -> bool:
    """Lists twenty thousand sites."""
    return len(_read(f"sites: [{'a,' * 20_100}a]")["sites"]) > 20_000


@attack(
    "file giver",
    guard="consortium.study.reader:Study",
    without="a site's agent writes to any folder in the study's name",
    stops="study must be text",
    instead=lambda real: type("Loose", (Study,), {"__annotations__": {"study": str}}),
)
def study_named_as_a_path(stage: Stage) -> bool:
    """Gives a study a name that leads out of the site's folder."""
    place, _ = papers(stage.root / "place", PLAIN.replace("study: small", "study: ../../../small"))
    folder, files = place.site("north"), place.files
    approve(folder, "north", load_identity(folder), files.study, files.roster, Terms())
    return not list(folder.glob("approved/*.json"))


@attack(
    "disk intruder",
    guard="site_agent.enrolment.pinned_consortium:DAMAGED",
    without="the agent ends with a traceback instead of a sentence",
    stops="is damaged. Restore it",
    instead=lambda real: tuple(each for each in DAMAGED if each is not RecursionError),
)
def nested_json(stage: Stage) -> bool:
    """Fills a record with a hundred thousand brackets."""
    (stage.root / PINNED).write_text("[" * 100_000)
    try:
        read_pinned(stage.root)
    except RecursionError:
        return True
    return False


@attack(
    "file giver",
    guard="consortium.errors:printable",
    without="a file's name clears the screen and forges lines of the log",
    stops="all is well_bold.nii is not a file",
    instead=lambda real: lambda text, most=0: str(text),
)
def name_that_drives_a_terminal(stage: Stage) -> bool:
    """Gives an image a name with the codes that move a terminal's cursor."""
    name = "sub-01\x1b[2J\x1b[1;31mall is well_bold.nii"
    try:
        find_subjects([stage.root / name], DataSection())
    except DataError as error:
        stage.said.append(str(error))
    return "\x1b" in stage.said[0]
