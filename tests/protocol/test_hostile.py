"""Hostile centre, site or exchange: no effect, or a clean stop that names the cause."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from consortium.algorithms.base import Query
from consortium.algorithms.ica.centre import Ica
from consortium.engine.queries import encode_query
from consortium.engine.run_context import start_notice
from consortium.errors import ConsortiumError, SiteError
from consortium.membership.keys import create_identity, load_identity
from consortium.membership.roster import read_roster, save_roster
from consortium.membership.signed_study import sign_study
from consortium.secagg import messages
from consortium.secagg.messages import Keys, Request
from tests.support.forgery import (
    NAMES,
    RUN,
    Mail,
    alter_reads,
    ask,
    ledger,
    manifests,
    opened,
    path_of,
    pump,
    refusal,
    rounds_of,
    settle,
    sign,
    write,
)
from tests.support.local_consortium import SITES, STUDY, LocalConsortium, agree, conduct

SIZE = 2  # components of the consortium's study


@pytest.fixture
def mail(monkeypatch: pytest.MonkeyPatch) -> Mail:
    return Mail(monkeypatch)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The result of an undisturbed run."""
    return conduct(LocalConsortium(settle(tmp_path_factory.mktemp("honest") / "place")).centre())


def _ica(features: int, **changes: object) -> Query:
    arguments = {"unmixing": np.eye(SIZE), "whitening": np.zeros((features, SIZE)), **changes}
    kept = {name: value for name, value in arguments.items() if value is not None}
    return Query("ica", "rotation", kept)  # type: ignore[arg-type]


def _raw(**arguments: object) -> bytes:
    body = {"stage": "ica", "statistic": "rotation", "arguments": arguments}
    return msgspec.msgpack.encode(body)


_HUGE = {"type": "named", "shape": [1 << 14, 1 << 14], "digest": "0" * 64}
_ENDLESS = {"type": "array", "shape": [1 << 62, 1 << 62], "data": b""}
QUERIES: dict[str, tuple[Callable[[int], Query | bytes], str]] = {
    "unplanned statistic": (lambda d: Query("pca", "rotation"), "plans 'second_moment'"),
    "unknown stage": (lambda d: Query("spy", "second_moment"), "no stage 'spy'"),
    "argument missing": (lambda d: _ica(d, unmixing=None), "'unmixing' is missing"),
    "argument too many": (lambda d: _ica(d, more=np.ones(1)), "'more'"),
    "whitening of other size": (lambda d: _ica(d, whitening=np.zeros((d, 9))), "'whitening'"),
    "whitening of other length": (lambda d: _ica(d + 1), "'whitening'"),
    "unmixing not square": (lambda d: _ica(d, unmixing=np.eye(2, 3)), "'unmixing'"),
    "text for an array": (lambda d: _raw(unmixing="eye"), "can't be read"),
    "not a number": (
        lambda d: _ica(d, unmixing=np.full((2, 2), np.nan)),
        "other values than numbers",
    ),
    "number for an array": (lambda d: _raw(unmixing={"type": "plain", "value": 1.0}), "be read"),
    "huge": (lambda d: _raw(whitening=_HUGE), "'unmixing' is missing"),
    "endless": (lambda d: _raw(whitening=_ENDLESS), "can't have the shape"),
    "not text": (lambda d: b"\x82\xa5stage\xa2\xff\xfe", "can't be read"),
}


@pytest.mark.parametrize("attack", QUERIES)
def test_query_outside_the_plan_is_refused_unpaid(
    attack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, said = QUERIES[attack]
    place = settle(tmp_path / "place")
    local = opened(place)
    ask(place, make(local.grid.features))
    pump(local)
    keys = read_roster(place.files.roster).keys
    for site in SITES:
        told = refusal(place, site, keys)
        assert told is not None, f"{site} did not refuse"
        assert told["code"] == "privacy"
        assert said in local.said(site)
        assert ledger(place, site) == []
        assert not path_of(place, NAMES.round(1, "contribution", site)).exists()
    with pytest.raises(SiteError, match="takes no further part"):
        conduct(local.centre())


def test_stage_beyond_its_rounds_is_refused(tmp_path: Path) -> None:
    place = settle(tmp_path / "place")
    local = LocalConsortium(place)
    centre = local.centre()
    centre.open()
    centre.step()
    ask(place, Query("pca", "second_moment"), 2)
    pump(local)
    for site in SITES:
        assert "has had its 1 planned rounds" in local.said(site)
        assert rounds_of(place, site) == [1]


def test_other_query_for_an_answered_round(
    tmp_path: Path, mail: Mail, honest: dict[str, bytes]
) -> None:
    place = settle(tmp_path / "place")
    local = LocalConsortium(place)
    centre = local.centre()
    centre.open()
    centre.step()
    centre.step()
    first = path_of(place, NAMES.round(2, "query")).read_bytes()
    other = ask(place, _ica(local.grid.features, unmixing=np.eye(2)[::-1]), 2)
    assert other != first
    path_of(place, NAMES.round(2, "contribution", "east")).unlink()
    write(place, NAMES.round(2, "contribution", "north"), b"replaced by the exchange")
    local.agents.clear()
    pump(local)
    write(place, NAMES.round(2, "query"), first)
    assert conduct(local.centre()) == honest
    mail.check_said_once()
    for site in SITES:
        assert rounds_of(place, site) == rounds_of(place, site, "spend") == [1, 2, 3]


class UnforeseenError(Exception):
    pass


@pytest.mark.parametrize("error", [np.linalg.LinAlgError, KeyError, MemoryError, UnforeseenError])
def test_statistic_that_breaks_costs_nothing_and_tells_nothing(
    error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise error("sub-001 in /data/east.nii.gz")

    monkeypatch.setitem(Ica.statistics, "second_moment", broken)  # type: ignore[arg-type]
    place = settle(tmp_path / "place")
    local = LocalConsortium(place)
    with pytest.raises(SiteError, match="north takes no further part") as caught:
        conduct(local.centre())
    assert "sub-001" in local.said("north")  # its own log may say so
    told = refusal(place, "north", read_roster(place.files.roster).keys)
    assert told is not None
    assert told["code"] == "privacy"
    for public in (str(told), str(caught.value)):
        assert "sub-" not in public
        assert "nii" not in public
    assert ledger(place, "north") == []


@pytest.mark.parametrize(
    "values", [np.zeros(3), np.full(15, 1.0), np.full(15, np.nan)], ids=["short", "long", "nan"]
)
def test_statistic_outside_its_bound_is_never_charged(
    values: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = settle(tmp_path / "place")
    local = opened(place)
    features = local.grid.features
    entries = features * (features + 1) // 2
    wrong = values if len(values) == 3 else np.resize(values, entries)
    monkeypatch.setitem(Ica.statistics, "second_moment", lambda *_: wrong)
    ask(place, Query("pca", "second_moment"))
    pump(local)
    for site in SITES:
        assert refusal(place, site, read_roster(place.files.roster).keys) is not None
        assert ledger(place, site) == []


def test_an_error_outside_every_class_does_not_end_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from site_agent.run.participation import Participation

    def broken(_: object) -> bool:
        raise UnforeseenError("at sub-002")

    place = settle(tmp_path / "place")
    local = opened(place)
    monkeypatch.setattr(Participation, "advance", broken)
    pump(local, 3)
    for site in SITES:
        told = refusal(place, site, read_roster(place.files.roster).keys)
        assert told is not None
        assert "sub-" not in str(told)


# -- the centre's lists, bundles and announcements ----------------------------------------


def _contributed(place_root: Path, dropouts: int = 0) -> tuple[LocalConsortium, bytes]:
    """A consortium where every site has contributed to round 1; returns the context, too."""
    place = settle(place_root, dropouts=dropouts)
    local = opened(place)
    ask(place, Query("pca", "second_moment"))
    pump(local)
    party = local.agents["north"]._runs[RUN].rounds._party  # type: ignore[union-attr]
    return local, party._rounds[1].context


def _list(local: LocalConsortium, context: bytes, survivors: tuple[str, ...]) -> bytes:
    lost = tuple(s for s in SITES if s not in survivors)
    shown = manifests(local.place, survivors, context)
    body = messages.encode(Request(context, survivors, lost, shown))
    return sign(local.place, "unmask", 1, body)


@pytest.mark.parametrize(
    ("survivors", "silent"),
    [(("north", "south", "west"), ("east",)), (("north", "east"), SITES), ((), SITES)],
    ids=["without this site", "too few", "nobody"],
)
def test_unsound_unmask_list_is_not_answered(
    survivors: tuple[str, ...], silent: tuple[str, ...], tmp_path: Path
) -> None:
    local, context = _contributed(tmp_path / "place", dropouts=1)
    write(local.place, NAMES.round(1, "unmask"), _list(local, context, survivors))
    pump(local)
    for site in SITES:
        answered = path_of(local.place, NAMES.round(1, "unmasking", site)).exists()
        assert answered == (site not in silent), site
    write(local.place, NAMES.round(1, "unmask"), _list(local, context, SITES))
    pump(local)
    for site in silent:  # the guard held the list off, not the site
        assert path_of(local.place, NAMES.round(1, "unmasking", site)).exists()


@pytest.mark.parametrize("restart", [False, True])
def test_second_unmask_list_is_not_answered(restart: bool, tmp_path: Path, mail: Mail) -> None:
    local, context = _contributed(tmp_path / "place", dropouts=1)
    place = local.place
    write(place, NAMES.round(1, "unmask"), _list(local, context, SITES))
    pump(local)
    first = path_of(place, NAMES.round(1, "unmasking", "east")).read_bytes()
    write(place, NAMES.round(1, "unmask"), _list(local, context, ("north", "east", "south")))
    path_of(place, NAMES.round(1, "unmasking", "east")).unlink()
    if restart:
        local.agents.clear()
    pump(local, 12)
    again = path_of(place, NAMES.round(1, "unmasking", "east"))
    assert again.exists() == restart
    assert not restart or again.read_bytes() == first
    mail.check_said_once()


def test_substituted_key_gets_no_shares(tmp_path: Path) -> None:
    place = settle(tmp_path / "place")
    local = LocalConsortium(place)
    local.absent = set(SITES)
    centre = local.centre()
    with pytest.raises(SiteError):
        centre.open()
    local.absent = set()
    write(place, NAMES.start(), sign(place, "start", 0, start_notice(SITES)))
    pump(local)  # every site has advertised
    sent = [path_of(place, NAMES.setup("advertise", s)).read_bytes() for s in SITES]
    body = msgspec.msgpack.decode(sent[0])
    forged = messages.decode(messages.Advertisement, body[5], "north")
    own = msgspec.structs.replace(forged, channel=bytes(range(32)))
    body[5] = messages.encode(own)  # the centre's channel in north's name
    sent[0] = msgspec.msgpack.encode(body)
    bundle = messages.encode(Keys(bytes(range(1, 33)), tuple(sent)))
    write(place, NAMES.setup("keys"), sign(place, "keys", 0, bundle))
    pump(local)
    for site in SITES:
        assert not path_of(place, NAMES.setup("share", site)).exists()
        assert "isn't signed with its key" in local.said(site)


@pytest.mark.parametrize("change", ["epsilon: 9", "rounds: 3", "roster", "centre"])
def test_announcement_other_than_approved(change: str, tmp_path: Path) -> None:
    place = settle(tmp_path / "place")
    files = place.files
    trusted = read_roster(files.roster).keys
    members = read_roster(files.roster)
    if change in ("roster", "centre"):
        (tmp_path / "thief").mkdir()
        thief = create_identity(tmp_path / "thief", bytes(range(64)))
        if change == "centre":
            members = replace(members, centre=thief.public)
            (tmp_path / "thief" / "keys").replace(files.keys / "keys")
        else:
            members = members.with_site("west", thief.public)
    else:
        field = change.split(":")[0]
        text = files.study.read_text()
        start = text.index(field)
        end = start + len(field) + 3
        files.study.write_text(text[:start] + change + text[end:])
    key = load_identity(files.keys).key
    save_roster(files.roster, members, key)
    sign_study(files.study, members, key)
    local = LocalConsortium(place)
    with pytest.raises(SiteError, match=r"takes no further part|not there within"):
        local.centre().open()
    for site in ("north", "east"):
        told = refusal(place, site, trusted)
        if change == "centre":  # anybody may have written it: the real one is waited for
            assert told is None
            assert "not signed with an approved key" in local.said(site)
        else:
            assert told is not None
            assert told["code"] == "study"
            assert "not the one that was approved" in local.said(site)
        assert ledger(place, site) == []
        assert not path_of(place, NAMES.present(site)).exists()


def test_new_roster_is_approved_beside_the_old(tmp_path: Path) -> None:
    place = settle(tmp_path / "place")
    members = read_roster(place.files.roster)
    west = members.sites["west"]
    for number in range(4):  # whatever the order of the records
        folder = tmp_path / f"west-{number}"
        folder.mkdir()
        other = create_identity(folder, bytes([number] * 64))
        members = members.with_site("west", other.public)
        agree(place, members, only=["north"])
    agree(place, members.with_site("west", west), only=["north"])
    conduct(LocalConsortium(place).centre())


def test_run_name_used_again_by_another_study(tmp_path: Path, mail: Mail) -> None:
    place = settle(tmp_path / "place")
    conduct(LocalConsortium(place).centre())
    spent = {site: ledger(place, site) for site in SITES}
    place.files.exchange.rename(tmp_path / "away")
    place.files.exchange.mkdir()
    place.files.out.rename(tmp_path / "old-output")
    text = place.files.study.read_text().replace("standardize: subject", "standardize: voxel")
    place.files.study.write_text(text)
    agree(place, read_roster(place.files.roster), runs=2)
    local = LocalConsortium(place)
    with pytest.raises(ConsortiumError, match=r"north|east|south|west"):
        conduct(local.centre())
    mail.check_said_once()
    assert {site: ledger(place, site) for site in SITES} == spent


def test_names_of_runs_are_never_used_again(tmp_path: Path) -> None:
    place = settle(tmp_path / "place")
    write(place, "runs/small-0007/study", b"of an earlier year")
    write(place, "runs/small-9/study", b"not a run of ours")
    centre = LocalConsortium(place).centre()
    assert centre.context.run == "small-0008"


# -- hostile sites -------------------------------------------------------------------------


def _without_west(
    place_root: Path, before_step: Callable[[LocalConsortium], None]
) -> dict[str, bytes]:
    """Run with one drop-out allowed; west is gone after the set-up and is spoken for."""
    local = LocalConsortium(settle(place_root, dropouts=1))
    centre = local.centre()
    centre.open()
    pump(local, 2)
    local.absent = {"west"}
    before_step(local)
    assert centre.session is not None
    while centre.session.pending is not None:
        done = centre.step()
        assert done.survivors == (0, 1, 2)
    for site in SITES[:3]:
        assert rounds_of(local.place, site) == [1, 2, 3]
    return {name: array.tobytes() for name, array in centre.finish().arrays.items()}


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The result when west says nothing at all."""
    return _without_west(tmp_path_factory.mktemp("three") / "place", lambda local: None)


def _wests_contribution(local: LocalConsortium, number: int, entries: int | None = None) -> bytes:
    """What west itself would send to a made-up question, or in another length."""
    plan = local.agents["west"]._runs[RUN].rounds._plan  # type: ignore[union-attr]
    mechanism = plan.stages[0].mechanism
    vector = np.zeros(entries or mechanism.entries, dtype=mechanism.lattice.dtype)
    party = local.agents["west"]._runs[RUN].rounds._party  # type: ignore[union-attr]
    return bytes(party.contribute(number, bytes(32), vector, vector))


def _bad_signature(local: LocalConsortium) -> bytes:
    good = _wests_contribution(local, 1)
    return good[:-1] + bytes([good[-1] ^ 1])


SPOKEN: dict[str, Callable[[LocalConsortium], bytes]] = {
    "noise": lambda local: b"\x00\xff" * 40,
    "nothing": lambda local: b"",
    "bad signature": _bad_signature,
    "cut short": lambda local: _wests_contribution(local, 1)[:-40],
    "another round": lambda local: _wests_contribution(local, 2),
    "another question": lambda local: _wests_contribution(local, 1),
    "wrong length": lambda local: _wests_contribution(local, 1, 3),
    "oversized": lambda local: bytes(1 << 20),
    "another's name": lambda local: sign(local.place, "contribution", 1, b"", "north"),
}


@pytest.mark.parametrize("words", SPOKEN)
def test_what_a_hostile_site_says_counts_as_silence(
    words: str, tmp_path: Path, three: dict[str, bytes]
) -> None:
    def speak(local: LocalConsortium) -> None:
        name = NAMES.round(1, "contribution", "west")
        write(local.place, name, SPOKEN[words](local))

    assert _without_west(tmp_path / "place", speak) == three


@pytest.mark.parametrize("forger", ["west", "centre", "nobody"])
def test_refusal_in_anothers_name_stops_nobody(
    forger: str, tmp_path: Path, three: dict[str, bytes]
) -> None:
    body = b'{"code": "data", "reason": "I am north"}'

    def forge(local: LocalConsortium) -> None:
        message = b"x" if forger == "nobody" else sign(local.place, "refusal", 0, body, forger)
        write(local.place, NAMES.refusal("north"), message)
        write(local.place, "runs/small-0001/refusal/NORTH", message)

    assert _without_west(tmp_path / "place", forge) == three


def test_hostile_text_of_a_refusal_is_made_harmless(tmp_path: Path) -> None:
    local = opened(settle(tmp_path / "place"))
    reason = "x\x1b[2J\n" + "y" * 5000
    body = msgspec.json.encode({"code": ["\x07"], "reason": reason})
    message = sign(local.place, "refusal", 0, body, "west")
    write(local.place, NAMES.refusal("west"), message)
    local.absent = set(SITES)
    with pytest.raises(SiteError, match="west") as caught:
        conduct(local.centre())
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


def test_wrong_shares_are_left_out_and_named(tmp_path: Path, honest: dict[str, bytes]) -> None:
    place = settle(tmp_path / "place")
    local = LocalConsortium(place)
    centre = local.centre()
    centre.open()
    pump(local, 2)
    held = local.agents["north"]._runs[RUN].rounds._party.setup.keys.held  # type: ignore[union-attr]
    held["east"] = bytes(len(held["east"]))

    def west_answers_last() -> None:  # three answers would do, if one of them were not false
        asked = path_of(place, NAMES.round(1, "unmask")).exists()
        enough = "Too many shares" in local.said("centre")
        local.absent = {"west"} if asked and not enough else set()
        local.pump()

    local.ticks.others = west_answers_last
    assert conduct(local.centre()) == honest
    assert "north has a wrong share of east" in local.said("centre")


# -- hostile exchange ----------------------------------------------------------------------


def _flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


ALTERATIONS: dict[str, Callable[[bytes], bytes | None]] = {
    "corrupted": _flipped,
    "truncated": lambda data: data[:-1],
    "emptied": lambda data: b"",
    "lengthened": lambda data: data + b"\x00",
    "oversized": lambda data: data + bytes(8 << 20),
    "held back": lambda data: None,
}


@pytest.mark.parametrize("alteration", ALTERATIONS)
def test_altered_on_the_way_and_then_right(
    alteration: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mail: Mail,
    honest: dict[str, bytes],
) -> None:
    place = settle(tmp_path / "place")
    altered = set()

    def alter(name: str, data: bytes, earlier: int) -> bytes | None:
        if earlier > 1 or name.endswith(("/study", "/end")):
            return data
        altered.add(name)
        return ALTERATIONS[alteration](data)

    with monkeypatch.context() as patch:
        alter_reads(patch, alter)
        assert conduct(LocalConsortium(place).centre()) == honest
    assert len(altered) >= 3 * (2 + 4 + 4) + 2 + 8, "too little was altered"
    mail.check_said_once()
    for site in SITES:
        assert rounds_of(place, site) == rounds_of(place, site, "spend") == [1, 2, 3]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("/study", "not there within"),
        ("/advertise/west", "west"),
        ("/contribution/west", "west: no sound answer to round 1"),
    ],
)
def test_altered_for_good_ends_in_a_sentence(
    kind: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = settle(tmp_path / "place")
    with monkeypatch.context() as patch:
        alter_reads(patch, lambda name, data, _: _flipped(data) if name.endswith(kind) else data)
        with pytest.raises(SiteError, match=said):
            conduct(LocalConsortium(place).centre())


def test_swapped_messages_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = settle(tmp_path / "place")

    def swap(name: str, data: bytes, _: int) -> bytes:
        other = name.replace("contribution/east", "contribution/west")
        path = path_of(place, other)
        return path.read_bytes() if path.exists() else data

    with monkeypatch.context() as patch:
        alter_reads(patch, swap)
        with pytest.raises(SiteError, match=r"^east: no sound answer"):
            conduct(LocalConsortium(place).centre())


def test_replayed_from_an_older_run(tmp_path: Path, mail: Mail) -> None:
    """Every message of the first run lies in the place of the second's, and none is taken."""
    place = settle(tmp_path / "place", text=STUDY.replace("epsilon: 8", "epsilon: 2"))
    conduct(LocalConsortium(place).centre())
    place.files.out.rename(tmp_path / "first")
    agree(place, read_roster(place.files.roster), runs=2)
    local = LocalConsortium(place)
    centre = local.centre()
    assert centre.context.run == "small-0002"
    old = place.files.exchange / "runs" / RUN
    for kind in ("contribution", "unmasking"):
        name = f"runs/small-0002/00001/{kind}/west"
        write(place, name, (old / "00001" / kind / "west").read_bytes())
    with pytest.raises(ConsortiumError, match="west"):
        conduct(centre)
    mail.check_said_once()


@pytest.mark.parametrize("name", ["../escape", "UPPER", "sp ace", "\x1b[31m", "-x", "n" * 200])
def test_tricky_names_on_the_exchange(name: str, tmp_path: Path, honest: dict[str, bytes]) -> None:
    place = settle(tmp_path / "place")
    runs = place.files.exchange / "runs"
    (runs / "x").mkdir(parents=True)
    (runs / name).mkdir(parents=True, exist_ok=True)
    (runs / name / "study").write_bytes(b"boo")
    local = LocalConsortium(place)
    assert conduct(local.centre()) == honest
    assert all(line.isprintable() for _, line in local.log)


def test_exchange_that_fails_for_a_while_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mail: Mail, honest: dict[str, bytes]
) -> None:
    """Every first attempt of a site to put a message fails, as on a share that comes and goes."""
    from consortium.errors import ExchangeError
    from consortium.exchange import DirectoryExchange

    place = settle(tmp_path / "place")
    real, tried = DirectoryExchange.put, set()

    def put(exchange: DirectoryExchange, name: str, data: bytes) -> None:
        if name.endswith(SITES) and "/shares/" not in name and name not in tried:
            tried.add(name)
            raise ExchangeError(f"{name} can't be written (stale handle). Wait.")
        real(exchange, name, data)

    monkeypatch.setattr(DirectoryExchange, "put", put)
    assert conduct(LocalConsortium(place).centre()) == honest
    assert len(tried) == 4 * (3 + 3 * 2 + 1)  # with an attestation


def test_exchange_that_can_not_be_listed_does_not_end_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from consortium.errors import ExchangeError
    from consortium.exchange import DirectoryExchange

    def children(*_: object) -> list[str]:
        raise ExchangeError("runs can't be listed (stale handle). Wait.")

    local = LocalConsortium(settle(tmp_path / "place"))
    with monkeypatch.context() as patch:
        patch.setattr(DirectoryExchange, "children", children)
        local.pump()
    assert "stale handle" in local.said("north")
    conduct(local.centre())


def test_encode_query_is_what_the_attacks_use() -> None:
    """The forged queries are well-formed: only the plan is against them."""
    body, beside = encode_query(_ica(5))
    assert body
    assert not beside
