"""Whoever runs the exchange can delay and delete; every other act is noticed or has no effect.

A whole run is played once in honesty and its mail is kept. Then it is played again for every
message and every act of the operator, who knows all the mail in advance, that of an earlier run
with the same sites included.
"""

import itertools
import shutil
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from consortium.errors import ConsortiumError, SiteError
from tests.support.exchange_operator import (
    ACTS,
    FIRST,
    SECOND,
    TEXT,
    Act,
    Operator,
    Scene,
    Trial,
    check_no_harm,
    deceive,
    exchange_of,
    flipped,
    note_secrets,
)
from tests.support.forgery import settle
from tests.support.local_consortium import SITES, LocalConsortium, conduct


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    root = tmp_path_factory.mktemp("operator")
    earlier = settle(root / "earlier", text=TEXT)
    conduct(LocalConsortium(earlier).centre())
    place = settle(root / "place", text=TEXT)  # the same sites, who know nothing of that run
    shutil.copytree(exchange_of(earlier) / FIRST, exchange_of(place) / FIRST)
    played = Scene(place, {}, {}, {}).copy(root / "played")
    secrets: dict[str, list[bytes]] = defaultdict(list)
    with pytest.MonkeyPatch.context() as patch:
        note_secrets(patch, secrets)
        result = conduct(LocalConsortium(played).centre())
    exchange = exchange_of(played)
    mail = {
        str(path.relative_to(exchange)): path.read_bytes()
        for path in sorted(exchange.rglob("*"))
        if path.is_file()
    }
    return Scene(place, mail, result, secrets)


@pytest.fixture
def attempt(scene: Scene, tmp_path: Path) -> Callable[[Act], Trial]:
    """Play the second run; afterwards the operator is honest."""
    numbers = itertools.count()

    def play(act: Act) -> Trial:
        place = scene.copy(tmp_path / str(next(numbers)))
        local = LocalConsortium(place)
        with pytest.MonkeyPatch.context() as patch:
            operator = Operator(patch, act)
            end: dict[str, bytes] | ConsortiumError
            try:
                end = conduct(local.centre())
                local.pump()  # the sites hear of the end
            except ConsortiumError as error:
                end = error
        check_no_harm(place, local, operator)
        return Trial(end, operator.handed, local)

    return play


def read_in_a_run(name: str) -> bool:
    """Whether somebody must read a message; what is for checkers of another scheme, nobody does."""
    return name.startswith(SECOND) and not name.endswith(("/release", "/closing"))


some_parties = pytest.mark.parametrize(
    "who",
    # The first and the last site only in `make long`.
    ["centre", *(pytest.param(site, marks=pytest.mark.long) for site in ("north", "west"))],
)


@some_parties
def test_no_false_message_changes_the_result(who: str, scene: Scene, attempt) -> None:
    """For every message and every act: the same result, or a stop that names whom it is about.

    In a trial every party that looks is handed one false message after the other, before it sees
    what others say in the same step. Where the first is enough to stop the run, the others get
    trials of their own.
    """
    for name in scene.said_by(who):
        made = [act(scene, name) for act in ACTS]
        false = [data for data in made if data is not None]
        assert scene.mail[name] not in false
        assert len(false) >= (3 if name.startswith(SECOND) else 2)
        while false:
            trial = attempt(deceive(name, tuple(false)))
            if trial.end != scene.result:
                assert isinstance(trial.end, ConsortiumError), f"{name}: another result"
                assert any(site in str(trial.end) for site in SITES), f"{name}: {trial.end}"
            if not trial.handed - {None}:
                assert not read_in_a_run(name), f"{name} is read by nobody"
                break
            false = [data for data in false if data not in trial.handed]


@some_parties
def test_delay_only_delays(who: str, scene: Scene, attempt) -> None:
    """For every message: at its readers' first looks it is not there, and then it is."""
    for name in scene.said_by(who):

        def hold(found: str, data: bytes, looks: int, name=name) -> bytes | None:
            return None if found == name and looks < 2 else data

        trial = attempt(hold)
        assert trial.handed == {None} or not read_in_a_run(name), f"{name} is read by nobody"
        assert trial.end == scene.result, f"{name}: {trial.end}"


@pytest.mark.parametrize("who", ["centre", pytest.param("north", marks=pytest.mark.long)])
def test_a_stopped_run_goes_on_once_the_mail_is_true(who: str, scene: Scene, attempt) -> None:
    """What the operator stopped was delayed, unless a site has had enough and said so."""
    went_on = 0
    for name in scene.said_by(who):

        def spoil(found: str, data: bytes, looks: int, name=name) -> bytes:
            return flipped(scene, name) if found == name else data

        trial = attempt(spoil)
        if trial.end == scene.result:
            continue
        if (exchange_of(trial.local.place) / SECOND / "refusal").exists():
            with pytest.raises(SiteError, match="takes no further part"):
                conduct(trial.local.centre())
        else:
            assert conduct(trial.local.centre()) == scene.result, name
            went_on += 1
    assert went_on >= 4


# -- what can be read ------------------------------------------------------------------------


def words_within(secrets: list[bytes], everything: bytes) -> int:
    """How many 8-byte words of the secrets stand anywhere in some bytes."""
    parts = [np.frombuffer(secret[: len(secret) // 8 * 8], "<u8") for secret in secrets]
    known = np.unique(np.concatenate(parts))
    # Words of few different bytes, like 0 or 1.0, are in any file.
    telling = [len(set(word.tobytes())) > 4 for word in known]
    known, found = known[telling], 0
    assert known.size
    for offset in range(8):
        size = (len(everything) - offset) // 8 * 8
        found += int(np.isin(known, np.frombuffer(everything[offset : offset + size], "<u8")).sum())
    return found


# A masked vector is mail, and as it is: the masks are its encryption (see `secagg.contribution`).
KINDS = ["statistic", "noise and statistic", "seed", "share", "mask's key", "mask"]


@pytest.mark.parametrize("kind", KINDS)
def test_all_the_mail_together_holds_no_secret(kind: str, scene: Scene) -> None:
    releases = {name: data for name, data in scene.mail.items() if name.endswith("/release")}
    everything = b"".join(data for name, data in scene.mail.items() if name not in releases)
    secrets = scene.secrets[kind]
    # A release shows one of the two seeds of each site in its round, and no other secret.
    rounds = sum(SECOND in name for name in releases)
    words = len(secrets[0]) // 8
    shown = words * len(SITES) * rounds if kind == "seed" else 0
    assert words_within(secrets, b"".join(releases.values())) == shown
    assert words_within(secrets, everything) == 0
    middle = len(everything) // 2  # a search that finds nothing must be able to find
    planted = everything[:middle] + secrets[0] + everything[middle:]
    assert words_within(secrets, planted) > 0
