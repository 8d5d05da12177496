"""The kinds of fault, and what a run under each of them must come to."""

import base64
import functools
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.coordinator.run_folder import read_run
from consortium.engine import queries
from consortium.errors import ConsortiumError, SiteError
from consortium.membership.keys import load_identity
from consortium.membership.roster import read_roster
from tests.protocol.faults import Fault, FaultyConsortium, Stage
from tests.protocol.watched import CENTRE, Died, Write
from tests.support.exchange_operator import note_secrets
from tests.support.forgery import ledger
from tests.support.local_consortium import SITES, STUDY, agree, build, limit, say_yes

RUN, OLDER = "small-0001", "older-0001"
BRIEF, LONG, HOURS = 1.0, 30.0, 3 * 3600.0
Bytes = Mapping[str, bytes]
Result = dict[str, bytes]
DEFAULT = "exact"
"""Scheme of the matrix."""

# -- kinds of fault --------------------------------------------------------------------------


class Kill(Fault):
    """SIGKILL before, within or after the write; the party is started again at once."""

    def __init__(self, at: Write, moment: str) -> None:
        super().__init__(at)
        self.moment = moment

    def before(self, stage: Stage, data: bytes) -> None:
        if self.moment == "within" and self.at.where == "exchange":
            draft = stage.path(self.at.what).with_name(".draft")
            draft.parent.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(data[: len(data) // 2])
        if self.moment != "after":
            raise Died

    def after(self, stage: Stage, data: bytes) -> None:
        raise Died


class Vanish(Fault):
    """Dies before the write and is not started again."""

    def before(self, stage: Stage, data: bytes) -> None:
        stage.gone.add(self.at.who)
        raise Died


class Pause(Fault):
    """Stands still for so many seconds in the middle of its work, and then goes on."""

    sleeps = True

    def before(self, stage: Stage, data: bytes) -> None:
        stage.spare(LONG)


class Full(Fault):
    """The party's disks, and the exchange for it, are full for a while."""

    def before(self, stage: Stage, data: bytes) -> None:
        stage.full_until[self.at.who] = stage.now + BRIEF


class Lost(Fault):
    """What was put on the exchange is gone before anybody reads it."""

    def after(self, stage: Stage, data: bytes) -> None:
        stage.path(self.at.what).unlink()


class Again(Fault):
    """The same message a second time, and once more under a name that is nobody's."""

    def after(self, stage: Stage, data: bytes) -> None:
        path = stage.path(self.at.what)
        path.unlink()
        path.write_bytes(data)
        path.with_name(f"{path.name}-copy").write_bytes(data)


class Late(Fault):
    """Others read the message a while after those that follow it."""

    until = float("inf")

    def after(self, stage: Stage, data: bytes) -> None:
        self.until = stage.now + BRIEF

    def read(self, stage: Stage, name: str, data: bytes) -> bytes | None:
        return None if name == self.at.what and stage.now < self.until else data


class Shown(Late):
    """For a while others read something else in the message's place."""

    def __init__(self, at: Write, shown: bytes | None) -> None:
        super().__init__(at)
        self.shown = shown

    def read(self, stage: Stage, name: str, data: bytes) -> bytes | None:
        return data if super().read(stage, name, data) is not None else self.shown


class Laid(Fault):
    """Somebody lays bytes at a name before its owner does, or over what the owner laid there."""

    def __init__(self, at: Write, name: str, laid: bytes | None = None) -> None:
        super().__init__(at)
        self.name, self.laid, self.true = name, laid, b""

    def after(self, stage: Stage, data: bytes) -> None:
        path = stage.path(self.name)
        if self.name == self.at.what:
            self.true = data
        elif path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if self.laid is None else self.laid)

    def lift(self, stage: Stage) -> None:
        """Let whoever runs the exchange repair it."""
        if self.true:
            stage.path(self.name).write_bytes(self.true)
        else:
            stage.path(self.name).unlink(missing_ok=True)


class Early(Laid):
    """The bytes lie there from the beginning of the run."""

    def __init__(self, at: Write, laid: bytes) -> None:
        super().__init__(at, at.what, laid)

    def begin(self, stage: Stage) -> None:
        self.over = True
        path = stage.path(self.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.laid or b"")

    def after(self, stage: Stage, data: bytes) -> None:
        """They lie there already."""


def flipped(data: bytes) -> bytes:
    """One bit in the middle is another."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :]


# -- the place where they happen -------------------------------------------------------------


@dataclass(frozen=True)
class Scene:
    """A place where one study has run and another is about to, and how that goes undisturbed."""

    place: DemoFolders
    older: Bytes
    mail: Bytes
    writes: tuple[Write, ...]
    result: Result

    def copy(self, target: Path) -> DemoFolders:
        """A twin with the same keys, which makes the same noise."""
        shutil.copytree(self.place.root, target)
        for file in target.glob("hospitals/*/agent/site.yaml"):
            file.write_text(file.read_text().replace(str(self.place.root), str(target)))
        return DemoFolders(target)


TERMS = {"strict": (0, 4), "patient": (0, 60), "tolerant": (1, 4)}
"""Drop-outs that the study allows, and seconds that it waits."""


@functools.cache
def scene(terms: str = "strict", boost: str = DEFAULT) -> Scene:
    """Build a place and play its run in peace."""
    dropouts, seconds = TERMS[terms]
    text = (
        STUDY.replace("rounds: 2", "rounds: 1")
        .replace(": 4", f": {seconds}")
        .replace("timing: {", "timing: {ready: 4, ")
    )
    root = Path(tempfile.mkdtemp(prefix="faults-"))
    older = text.replace("study: small", "study: older")
    place = build(root / "place", boost=boost, dropouts=dropouts, text=older)
    for site in SITES:
        limit(place, site, 60)
    with pytest.MonkeyPatch.context() as patch:
        local = staged(patch, place, ())[0]
        assert isinstance(local.carry_out(), dict)
        local.pump()
    mail = _mail(place)
    shutil.rmtree(place.files.out)
    study = text.replace("BOOST", boost).replace("DROPOUTS", str(dropouts))
    place.files.study.write_text(study)
    agree(place, read_roster(place.files.roster))
    early = {name.replace(OLDER, RUN).replace("/older/", "/small/"): mail[name] for name in mail}
    quiet = Scene(place, early, {}, (), {})
    with pytest.MonkeyPatch.context() as patch:
        local, stage = staged(patch, quiet.copy(root / "quiet"), ())
        result = local.carry_out()
        local.pump()
    assert isinstance(result, dict)
    return Scene(place, early, _mail(local.place), tuple(stage.writes), result)


@functools.cache
def without(boost: str, site: str, number: int) -> Result:
    """Result of a run which a site leaves just before a round."""
    known = scene("tolerant", boost)
    place = known.copy(Path(tempfile.mkdtemp(prefix="without-")) / "place")
    with pytest.MonkeyPatch.context() as patch:
        local, _ = staged(patch, place, ())
        centre = local.centre()
        centre.open()
        local.pump()
        session = centre.session
        assert session is not None
        while session.pending is not None:
            local.absent = {site} if session.number >= number else set()
            centre.step()
        return {name: array.tobytes() for name, array in centre.finish().arrays.items()}


def staged(
    patch: pytest.MonkeyPatch, place: DemoFolders, faults: tuple[Fault, ...]
) -> tuple[FaultyConsortium, Stage]:
    """A consortium under faults; every array of a query lies beside it."""
    patch.setattr(queries, "_INLINE", 64)
    local = FaultyConsortium(place)
    return local, Stage(patch, local, faults)


def _mail(place: DemoFolders) -> Bytes:
    root = Path(place.files.exchange)
    found = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


# -- the matrix ------------------------------------------------------------------------------

SAME, ANY = "same", "any"


@dataclass(frozen=True)
class Trial:
    """A fault to try: under which terms, and whether the result must be the same."""

    terms: str
    fault: Callable[[Write], Fault]
    due: str = ANY


def rows(party: str, column: str, boost: str = DEFAULT) -> list[Write]:
    """Writes of a party that have a cell in a column."""
    known = scene("strict", boost)
    return [w for w in known.writes if w.who == party and column in columns(w)]


def trials(column: str, at: Write, boost: str = DEFAULT) -> list[Trial]:
    """What a column of the matrix does to a write of the strict scene."""
    known, sibling = scene("strict", boost), _sibling(at)
    true = known.mail.get(at.what, b"")
    older = known.older.get(at.what, b"no such message then")
    # A site's own head of lines to come would prove that its ledger is an old backup.
    early = [] if at.what.startswith("ledgers/") else [Trial("strict", lambda w: Early(w, true))]
    elsewhere = [Trial("strict", lambda w: Laid(w, sibling))] if sibling else []
    moments = ("before", "within", "after")
    table: dict[str, list[Trial]] = {
        "killed": [Trial("strict", lambda w, m=m: Kill(w, m), SAME) for m in moments],
        "vanished": [
            Trial("strict", Vanish, SAME) if at.who == CENTRE else Trial("tolerant", Vanish)
        ],
        "paused 30 s": [Trial("patient", Pause, SAME), Trial("tolerant", Pause)],
        "lost": [Trial("strict", Lost)],
        "duplicated": [Trial("strict", Again, SAME), *elsewhere],
        "reordered": [Trial("strict", Late, SAME), *early],
        "corrupted": [
            Trial("strict", lambda w: Shown(w, flipped(true)), SAME),
            Trial("strict", lambda w: Laid(w, w.what, flipped(true))),
        ],
        "replayed": [
            Trial("strict", lambda w: Shown(w, older), SAME),
            Trial("strict", lambda w: Early(w, older)),
        ],
        "disk full": [Trial("strict", Full)],
    }
    return table[column]


COLUMNS = (
    *("killed", "vanished", "paused 30 s", "lost", "duplicated"),
    *("reordered", "corrupted", "replayed", "disk full"),
)
LOCAL = ("killed", "paused 30 s", "disk full")
"""What can happen to a write on the party's own disk."""


def columns(at: Write) -> tuple[str, ...]:
    """Columns in which a write has a cell."""
    return COLUMNS if at.where == "exchange" else LOCAL


def _sibling(at: Write) -> str | None:
    """Another party's name for such a message, or the same party's next."""
    if at.who in SITES:
        return at.what.replace(at.who, SITES[(SITES.index(at.who) + 1) % len(SITES)])
    for one, two in (("/keys", "/shares"), ("00001", "00002"), ("/start", "/keys")):
        if one in at.what:
            return at.what.replace(one, two)
    return None


# -- judgement -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """How a trial ended, and what should not have been."""

    end: str
    problems: tuple[str, ...]


def attempt(trial: Trial, at: Write, root: Path, boost: str = DEFAULT) -> Outcome:
    """Play one run under one fault, and on from there if it stopped."""
    known = scene(trial.terms, boost)
    # An array has another name where the study's text is another.
    fault = trial.fault(known.writes[scene("strict", boost).writes.index(at)])
    right = {SAME: known.result}
    number = _left_before(at, known.writes)
    if trial.terms == "tolerant" and at.who in SITES and number:
        right[f"without it from {number}"] = without(boost, at.who, number)
    secrets: dict[str, list[bytes]] = defaultdict(list)
    with pytest.MonkeyPatch.context() as patch:
        note_secrets(patch, secrets)
        local, stage = staged(patch, known.copy(root), (fault,))
        try:
            end = _play(local, stage, fault)
            found = _judge(trial, fault, end, right)
            problems = [*found.problems, *_sound(local, stage, complete=found.end == SAME)]
            if isinstance(end, ConsortiumError):
                problems += _go_on(local, stage, fault, known)
                problems += _sound(local, stage, complete=False)
            if found.end == SAME:
                problems += _shown_as_before(known, local, fault)
            problems += leaks(local, secrets, str(end))
            if not fault.over:
                problems.append("the fault never happened")
        finally:
            local.wake_all()
            shutil.rmtree(root, ignore_errors=True)
    return Outcome(found.end, tuple(problems))


def _shown_as_before(known: Scene, local: FaultyConsortium, fault: Fault) -> list[str]:
    """What others check a result by: the same bytes, or an attestation that is missing."""
    mail, hit = _mail(local.place), {fault.at.what, getattr(fault, "name", "")}
    told = {
        name for name in known.mail if re.search(rf"^runs/{RUN}/.*(release|closing|attest)", name)
    }
    differ = {name for name in told & set(mail) if mail[name] != known.mail[name]}
    missing = {name for name in told - set(mail) if "/attestation/" not in name}
    return [f"{name} is not as in peace" for name in sorted((differ | missing) - hit)]


def _play(local: FaultyConsortium, stage: Stage, fault: Fault) -> Result | ConsortiumError:
    try:
        end = local.carry_out()
    except Died:  # the centre, for hours
        local.log.append(("test", _overdue(local, stage)))
        local.ticks.now += HOURS
        stage.gone.clear()
        end = local.carry_out()
    for _ in range(3):
        local.pump()  # the sites hear of the end
    local.wake_all()
    local.pump()
    stage.at_work = "nobody"
    return end


def _overdue(local: FaultyConsortium, stage: Stage) -> str:
    """Let a site wait for a centre that is gone; it says for whom."""
    stage.at_work = "north"
    local.pump()
    timing = local.study.timing
    patience = timing.join + timing.ready + 2 * timing.answer
    with pytest.raises(SiteError, match="Start the study at the centre"):
        local.agent("north").work(once=True, idle=patience + 1)
    joined = "takes part in small" in local.said("north")
    assert not joined or re.search(r"the centre \(.*\) is overdue", local.said("north"))
    return "north waited"


def _judge(
    trial: Trial, fault: Fault, end: Result | ConsortiumError, right: Mapping[str, Result]
) -> Outcome:
    if not isinstance(end, ConsortiumError):
        called = [name for name, result in right.items() if result == end]
        return Outcome(called[0], ()) if called else Outcome("another", ("another result",))
    at = fault.at
    place = fault.name if isinstance(fault, Laid) else at.what
    owner = next((site for site in SITES if site in place.split("/")), at.who)
    named = (owner, place) if owner in SITES else (*SITES, place)
    problems = [] if any(word in str(end) for word in named) else [f"nobody is named: {end}"]
    if trial.due == SAME:
        problems.append(f"must not stop: {end}")
    return Outcome(f"stops: {end.code}", tuple(problems))


def _left_before(at: Write, writes: tuple[Write, ...]) -> int | None:
    """First round that a site has no part in, if it stops before a write."""
    if at.what.startswith("ledgers/"):
        before = [w for w in writes[: writes.index(at)] if w.who == at.who and w.where == "ledger"]
        return int(before[-1].what.split("/")[1]) if before else None
    if at.where == "cache" or at.what.endswith("/shares"):
        return 1
    found = re.search(r"/(\d+)/(\w+)", at.what)
    return int(found[1]) + (found[2] in ("unmasking", "checked")) if found else None


def _go_on(local: FaultyConsortium, stage: Stage, fault: Fault, known: Scene) -> list[str]:
    """Once the trouble is gone: the same run to the same end, or a new run."""
    out = local.place.files.out
    run = read_run(out)
    stage.at_work = "nobody"
    if isinstance(fault, Laid):
        fault.lift(stage)
    stage.full_until.clear()
    local.restart()
    for site in SITES:
        say_yes(local.place, site, runs=4)
    end = local.carry_out()
    for _ in range(3):
        local.pump()
    stage.at_work = "nobody"
    if isinstance(end, ConsortiumError):
        return [f"does not go on: {end}"]
    if run is not None and read_run(out) == run and end != known.result:
        return ["goes on to another result"]
    return []


def _sound(local: FaultyConsortium, stage: Stage, *, complete: bool) -> list[str]:
    """What must be true of every run."""
    found = [f"{name} was said twice" for (_, name), said in stage.sent.items() if len(said) > 1]
    found += [line for _, line in local.log if "fault of the software" in line]
    for site in SITES:
        entries = ledger(local.place, site)
        charged = [(e.charge.run, e.charge.round, e.event) for e in entries]
        if len(set(charged)) < len(charged):
            found.append(f"{site} was charged twice")
        spent = [c for c in charged if c[0] == RUN]
        due = [(RUN, number, event) for number in (1, 2) for event in ("reserve", "spend")]
        if complete and spent != due:
            found.append(f"{site} was charged {spent}")
    return found


def leaks(local: FaultyConsortium, secrets: Mapping[str, list[bytes]], more: str) -> list[str]:
    """Secrets that stand in any line that was told."""
    text = "\n".join([line for _, line in local.log] + [more])
    places = [local.place.site(name) for name in SITES] + [local.place.files.keys]
    kept = [load_identity(place) for place in places]
    keys = [k for each in kept for k in (each.root, each.key.private_bytes_raw())]
    found = [f"{kind} in a log" for kind, all_ in secrets.items() if _stands(all_, text)]
    return found + (["a key in a log"] if _stands(keys, text) else [])


def _stands(secrets: Iterable[bytes], text: str) -> bool:
    long = (secret for secret in secrets if len(secret) >= 16)
    return any(form in text for secret in long for form in _forms(secret))


def _forms(secret: bytes) -> Iterable[str]:
    """A secret as text: its first bytes, or its first numbers."""
    yield secret[:8].hex()
    yield base64.b64encode(secret[:9]).decode()
    values = np.frombuffer(secret[: len(secret) // 8 * 8][:64], "<f8")
    finite = values[np.isfinite(values)]
    yield from (f"{x:.5f}" for x in finite if 1e-3 < abs(x) < 1e6)
