"""Rosters, studies, requests and approvals as somebody on their way would have them."""

import hashlib
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.engine.kept_round import Kept
from consortium.engine.transcript import Transcript
from consortium.errors import OutputError, StudyError
from consortium.membership import admission, signed_study
from consortium.membership.keys import Identity, create_identity, load_identity
from consortium.membership.roster import Roster, found_roster, read_roster, save_roster
from consortium.study.reader import read_study
from site_agent.approval.approval import Approval, Terms, approvals, approve
from site_agent.enrolment.pinned_consortium import PinnedConsortium
from site_agent.layout import APPROVED
from tests.attacks.attack_kinds import Stage, always, attack
from tests.support.membership_files import papers, publish

_UNPINNED = "site_agent.approval.approval:check_members"


def _papers(stage: Stage) -> tuple[DemoFolders, Roster]:
    return papers(stage.root / "place")


def _thief(stage: Stage) -> Identity:
    folder = stage.root / "thief"
    folder.mkdir()
    return create_identity(folder, hashlib.sha512(b"thief").digest())


def _yes(place: DemoFolders) -> Approval:
    """What north's people say, who have looked at the study as well as people do."""
    folder, files = place.site("north"), place.files
    identity = load_identity(folder)
    return approve(folder, "north", identity, files.study, files.roster, Terms())


@attack(
    "file giver",
    guard="site_agent.approval.approval:read_signed",
    without="a site approves a study that the consortium never agreed on",
    stops="the study file changed after the coordinator signed",
    instead=lambda real: signed_study._digests,
)
def study_edited_on_its_way(stage: Stage) -> bool:
    """Raises ε in the signed study before it reaches a site."""
    place, _ = _papers(stage)
    text = place.files.study.read_text()
    place.files.study.write_text(text.replace("epsilon: 8", "epsilon: 80"))
    return _yes(place).study.privacy.epsilon == 80


@attack(
    "file giver",
    guard="consortium.membership.roster:verifies",
    without="the thief takes part, and decrypts, in another site's name",
    stops="was changed after the coordinator signed it",
    instead=always(True),
)
def key_swapped_in_the_roster(stage: Stage) -> bool:
    """Replaces a site's key in the roster by its own."""
    place, members = _papers(stage)
    own = _thief(stage).public.hex()
    path = place.files.roster
    path.write_text(path.read_text().replace(members.sites["west"].hex(), own))
    return read_roster(path).sites["west"].hex() == own


def _unpinned(_real: object) -> Callable[[Path, Roster], PinnedConsortium]:
    return lambda folder, members: PinnedConsortium(members.centre, members.serial, members.digest)


@attack(
    "file giver",
    guard=_UNPINNED,
    without="a stolen key that the consortium has replaced is trusted again",
    stops="and this site has seen 6",
    instead=_unpinned,
)
def roster_rolled_back(stage: Stage) -> bool:
    """Distributes the older roster, which still contains a stolen key."""
    place, members = _papers(stage)
    kept = [place.files.roster, signed_study.signature_path(place.files.study)]
    old = [path.read_bytes() for path in kept]
    publish(place, members.with_site("west", _thief(stage).public))
    _yes(place)
    for path, data in zip(kept, old, strict=True):
        path.write_bytes(data)
    return _yes(place).keys["west"] == members.sites["west"]


@attack(
    "file giver",
    guard=_UNPINNED,
    without="a site takes a stranger for its coordinator",
    stops="and this site has joined the consortium of",
    instead=_unpinned,
)
def roster_of_another_centre(stage: Stage) -> bool:
    """Founds its own consortium with the names and keys of all sites."""
    place, members = _papers(stage)
    _yes(place)
    thief = _thief(stage)
    false = found_roster(thief.public)
    for name, key in members.sites.items():
        false = false.with_site(name, key)
    save_roster(place.files.roster, false, thief.key)
    signed_study.sign_study(place.files.study, false, thief.key)
    return _yes(place).keys["centre"] == thief.public


def _trusting(real: Callable[..., Roster]) -> Callable[..., Roster]:
    return lambda members, request: real(members, request, lost_key=True)


@attack(
    "file giver",
    guard="consortium.membership.admission:admit_site",
    without="the thief has the site's place in the roster",
    stops="which did not sign this request",
    instead=_trusting,
)
def request_in_anothers_name(stage: Stage) -> bool:
    """Asks to be admitted, with its own key, under the name of an existing site."""
    _, members = _papers(stage)
    thief, path = _thief(stage), stage.root / "join.yaml"
    admission.write_request(path, "north", members.centre, thief.key)
    found = admission.admit_site(members, admission.read_request(path))
    return found.sites["north"] == thief.public


@attack(
    "file giver",
    guard="consortium.membership.admission:verifies",
    without="the roster has a key that its site does not own, perhaps another party's",
    stops="is not signed with the key",
    instead=always(True),
)
def request_with_anothers_key(stage: Stage) -> bool:
    """Asks to be admitted with a key that it does not own."""
    _, members = _papers(stage)
    path = stage.root / "join.yaml"
    made = admission.write_request(path, "zoo", members.centre, _thief(stage).key)
    theirs = create_identity(stage.root, bytes(range(64))).public
    path.write_text(path.read_text().replace(made.key.hex(), theirs.hex()))
    return admission.admit_site(members, admission.read_request(path)).sites["zoo"] == theirs


@attack(
    "disk intruder",
    guard="site_agent.approval.approval:_canonical",
    without="an approval of one run becomes one of a thousand",
    stops="is not signed with this site's key",
    instead=always(b"anything"),
)
def approval_edited(stage: Stage) -> bool:
    """Changes the number of runs in the record of a site's approval."""
    place, _ = _papers(stage)
    _yes(place)
    folder = place.site("north")
    (path,) = (folder / APPROVED).glob("*.json")
    record: dict[str, Any] = json.loads(path.read_text())
    record["terms"]["runs"] = 1000
    path.write_text(json.dumps(record))
    return approvals(folder, load_identity(folder))[0].terms.runs == 1000


@attack(
    "file giver",
    guard="consortium.study.reader:read_limited",
    without="the whole file is in memory before it is refused",
    stops="must be smaller than a megabyte",
    instead=lambda real: Path.read_bytes,
)
def study_of_a_hundred_megabytes(stage: Stage) -> bool:
    """Gives an endless study file."""
    path = stage.root / "study.yaml"
    with path.open("wb") as file:
        file.truncate(100 << 20)
    tracemalloc.start()
    try:
        read_study(path)
    except StudyError as error:
        stage.said.append(str(error))
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak > 50 << 20


class _Payload:
    """What Python runs when it reads this as a pickle."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def _credulous(real: Callable[..., Any]) -> Callable[..., Any]:
    return lambda path, **_: real(path, allow_pickle=True)


@attack(
    "disk intruder",
    guard="consortium.engine.transcript:np.load",
    without="the centre runs foreign code in its output folder",
    stops="is damaged",
    instead=_credulous,
)
def pickle_in_the_transcript(stage: Stage) -> bool:
    """Replaces a round's numbers by a pickle."""
    transcript, trace = Transcript(stage.root), stage.root / "was-here"
    transcript.append(Kept(1, "pca", "second_moment", (0,), np.zeros(1, np.uint64), bytes(32)))
    np.save(stage.root / "round-00001.npy", np.array([_Payload(trace)]), allow_pickle=True)
    try:
        list(transcript.rounds())
    except OutputError as error:
        stage.said.append(str(error))
    return trace.exists()
