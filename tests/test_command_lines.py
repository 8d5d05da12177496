"""The two command lines as people type them: the whole way, and what goes wrong on it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest
from townhall import PLAIN, papers, public, publish
from village import STUDY

from consortium.cli import main as consortium_main
from consortium.demo import Place
from consortium.engine.wire import Clock
from consortium.identity import create_identity
from consortium.progress import only_one
from consortium.roster import Membership, read_roster
from consortium.synthetic.bids import Recipe, make_consortium
from consortium.synthetic.signals import Levels
from site_agent.agent import Agent
from site_agent.cli import main as site_main
from site_agent.policy import Allowance, Policy

PROGRAMS = {"consortium": consortium_main, "site-agent": site_main}
TRIO = ("north", "east", "south")


@dataclass(frozen=True)
class Said:
    """What a command left behind."""

    code: int
    out: str
    err: str


Type = Callable[..., Said]


@pytest.fixture
def enter(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Type:
    """Type a command; anything but an exit is a failure of the test."""

    def act(program: str, *words: object, answer: str = "") -> Said:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", [program, *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        code = 0
        try:
            PROGRAMS[program]()
        except SystemExit as end:
            code = int(end.code or 0)
        return Said(code, *capsys.readouterr())

    return act


@pytest.fixture
def refused(enter: Type) -> Callable[..., str]:
    """Type a command that must fail with one sentence."""

    def act(program: str, *words: object, answer: str = "") -> str:
        said = enter(program, *words, answer=answer)
        assert said.code == 1, said
        assert said.err.startswith(f"{program}: "), said
        assert said.err.endswith(".\n"), said
        assert said.err.count("\n") == 1, said
        return said.err

    return act


# -- the whole way ------------------------------------------------------------------------


def _scans(place: Place) -> None:
    recipe = Recipe(TRIO, 3, 5, volumes=24, networks=2, resolution=30.0, levels=Levels())
    make_consortium(place.root / "hospitals", recipe, workers=1)


def _write_study(place: Place) -> None:
    text = STUDY.replace("SCHEME", "cape").replace("DROPOUTS", "0").replace(", west]", "]")
    text = text.replace("rounds: 2", "rounds: 1").replace("{join: 4, answer: 4}", "{join: 90}")
    place.errand.study.write_text(text)


def _begin(enter: Type, place: Place) -> None:
    """Init, join, admit, sign, check and approve."""
    errand = place.errand
    papers_of_centre = ("--roster", errand.roster, "--keys", errand.keys)
    said = enter("consortium", "init", errand.keys)
    (key,) = [line for line in said.out.splitlines() if len(line) == 64]
    (errand.keys / "roster.yaml").rename(errand.roster)
    for name in TRIO:
        folder = ("--folder", place.site(name))
        where = ("--dataset", place.dataset(name), "--exchange", errand.exchange)
        said = enter("site-agent", "init", "--name", name, *where, *folder)
        own = next(x for x in said.out.splitlines() if "fingerprint" in x).split()[-1].rstrip(".")
        said = enter("site-agent", "join", "--centre", key, *folder)
        assert own in said.out
        request = place.site(name) / f"{name}.join.yaml"
        said = enter("consortium", "admit", request, *papers_of_centre, answer="y\n")
        assert (said.code, said.err) == (0, "")
        assert f"{name}: {own}" in said.out
    assert "The roster has 3 sites, serial number 4." in said.out
    said = enter("consortium", "sign", errand.study, *papers_of_centre)
    assert "study.yaml.sig is made" in said.out
    assert "north, east, south" in said.out


def _agree(enter: Type, place: Place) -> None:
    files = (place.errand.study, "--roster", place.errand.roster)
    for name in TRIO:
        folder = ("--folder", place.site(name))
        said = enter("site-agent", "check", *files, *folder)
        assert said.code == 0, said
        assert "3 persons qualify" in said.out
        said = enter("site-agent", "approve", *files, *folder)
        assert said.code == 0
        assert "Approved: small: ica, ε ≤ 8 at δ = 1e-05, unit subject, 1 run." in said.out
        said = enter("site-agent", "status", *folder)
        assert "approved   small: ica" in said.out
        assert "agent      not running" in said.out


def _start(*words: object) -> subprocess.Popen[str]:
    """Start a command as a process of its own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PREFECT_")}
    command = [sys.executable, "-m", *map(str, words)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=kept, stdout=pipe, stderr=pipe, text=True)


def _carry_out(place: Place) -> str:
    """Run the study: the centre and north as processes, the others in this one."""
    errand = place.errand
    options = ("--roster", errand.roster, "--exchange", errand.exchange, "--keys", errand.keys)
    agent = _start("site_agent", "start", "--once", "--folder", place.site("north"))
    centre = _start("consortium", "run", errand.study, *options, "--out", errand.out)
    now = lambda: datetime.now().astimezone()  # noqa: E731
    others = [Agent(place.site(n), Clock(), now, lambda _: None) for n in TRIO[1:]]
    deadline = time.monotonic() + 120
    try:
        while centre.poll() is None:
            assert time.monotonic() < deadline, "the centre hangs"
            for other in others:
                other.round_trip()
            time.sleep(0.1)  # the centre starts an embedded Prefect meanwhile
        out, err = centre.communicate()
        assert centre.returncode == 0, err
        told = agent.communicate(timeout=60)[1]
        assert agent.returncode == 0, told
        assert "small-0001 has ended: complete" in told
        return out
    finally:
        for process in (agent, centre):
            process.kill()
            process.wait()


def _look_back(enter: Type, place: Place) -> None:
    """Status, report, ledger and doctor."""
    errand, folder = place.errand, ("--folder", place.site("east"))
    where = ("--out", errand.out, "--exchange", errand.exchange)
    assert "small-0001: ended (complete)" in enter("consortium", "status", errand.study, *where).out
    found = json.loads(enter("consortium", "status", errand.study, *where, "--json").out)
    assert [site["name"] for site in found["sites"]] == list(TRIO)
    said = enter("consortium", "report", errand.out)
    assert said.code == 0
    assert "ε" in said.out
    said = enter("site-agent", "ledger", *folder)
    assert "small" in said.out
    assert "of 20 spent at δ = 1e-05" in said.out
    lines = json.loads(enter("site-agent", "ledger", "--json", *folder).out)
    assert "small-0001" in json.dumps(lines)
    page = place.root / "ledger.html"
    assert enter("site-agent", "ledger", "--page", page, *folder).code == 0
    assert "small" in page.read_text()
    said = enter("site-agent", "doctor", *folder, "--study", errand.study)
    assert said.code == 0, said
    assert "fail " not in said.out


@pytest.mark.slow
@pytest.mark.xdist_group("prefect")
def test_the_whole_way(enter: Type, tmp_path: Path) -> None:
    place = Place(tmp_path)
    _scans(place)
    _write_study(place)
    _begin(enter, place)
    _agree(enter, place)
    out = _carry_out(place)
    assert "open report.html" in out
    assert (place.errand.out / "report.html").exists()
    _look_back(enter, place)


# -- what goes wrong ----------------------------------------------------------------------


@pytest.fixture
def town(tmp_path: Path) -> tuple[Place, Membership]:
    return papers(tmp_path)


def _site(place: Place, *words: object) -> tuple[object, ...]:
    """A site's command on the study."""
    errand = place.errand
    rest = (errand.study, "--roster", errand.roster, "--folder", place.site("east"))
    return "site-agent", words[0], *rest, *words[1:]


def _centre(place: Place, *words: object) -> tuple[object, ...]:
    """A coordinator's command on the roster."""
    return "consortium", *words, "--roster", place.errand.roster, "--keys", place.errand.keys


Town = tuple[Place, Membership]
Refused = Callable[..., str]


def test_a_wrong_fingerprint_admits_nobody(
    enter: Type, refused: Refused, town: Town, tmp_path: Path
) -> None:
    place, members = town
    new = tmp_path / "new"
    where = ("--dataset", tmp_path, "--exchange", place.errand.exchange, "--folder", new)
    enter("site-agent", "init", "--name", "new", *where)
    enter("site-agent", "join", "--centre", members.centre.hex(), "--folder", new)
    request = new / "new.join.yaml"
    said = refused(*_centre(place, "admit", request), answer="n\n")
    assert "new was not admitted; ask it for its fingerprint" in said
    assert read_roster(place.errand.roster) == members
    assert enter(*_centre(place, "admit", request)).code == 1  # nobody there to answer
    assert read_roster(place.errand.roster) == members
    assert enter(*_centre(place, "admit", request, "--yes")).code == 0
    assert "new" in read_roster(place.errand.roster).sites


@pytest.mark.parametrize("command", ["check", "approve"])
def test_a_study_that_is_not_what_was_signed(command: str, refused: Refused, town: Town) -> None:
    place, members = town
    study = place.errand.study
    study.write_text(PLAIN + "# edited\n")
    assert "the study file changed after the coordinator signed" in refused(*_site(place, command))
    study.with_name("study.yaml.sig").unlink()
    assert "has no sound signature beside it" in refused(*_site(place, command))
    study.unlink()
    assert "can't be read as a study file" in refused(*_site(place, command))
    study.write_text("study: [")
    assert "is not plain YAML" in refused(*_site(place, command))
    assert not (place.site("east") / "approved").exists()


def test_a_roster_of_another_consortium(enter: Type, refused: Refused, town: Town) -> None:
    place, members = town
    assert enter(*_site(place, "approve")).code == 0
    (place.errand.keys / "keys").unlink()
    other = create_identity(place.errand.keys, b"o" * 64).public
    publish(place, Membership(99, other, members.sites))
    assert "this site has joined the consortium of" in refused(*_site(place, "approve"))
    place.errand.roster.write_text("no roster")
    assert "is no roster; ask the coordinator" in refused(*_site(place, "approve"))


def test_keys_that_are_missing_or_open(refused: Refused, town: Town) -> None:
    place, _ = town
    keys = place.errand.keys / "keys"
    keys.chmod(0o644)
    assert "run chmod 600 on it" in refused(*_centre(place, "sign", place.errand.study))
    keys.unlink()
    assert "keys can't be read" in refused(*_centre(place, "sign", place.errand.study))
    (place.site("east") / "keys").chmod(0o640)
    assert "run chmod 600 on it" in refused("site-agent", "status", "--folder", place.site("east"))
    assert "make it with 'site-agent init'" in refused("site-agent", "status", "-f", place.root)


def test_a_name_that_is_not_on_the_roster(refused: Refused, town: Town) -> None:
    place, members = town
    said = refused(*_centre(place, "remove", "nowhere"))
    assert "nowhere is not on the roster, which has east, north, south, west" in said
    assert read_roster(place.errand.roster) == members


def test_keys_of_somebody_else(refused: Refused, town: Town, tmp_path: Path) -> None:
    place, members = town
    errand = place.errand
    wrong = ("--roster", errand.roster, "--keys", place.site("east"))
    for words in (["remove", "west"], ["rotate", "--new", tmp_path / "new"]):
        said = refused("consortium", *words, *wrong)
        assert "are not those of the consortium" in said
    assert read_roster(errand.roster) == members
    assert not (tmp_path / "new").exists()


def test_a_consortium_is_made_once(enter: Type, refused: Refused, tmp_path: Path) -> None:
    assert enter("consortium", "init", tmp_path / "centre").code == 0
    roster = (tmp_path / "centre" / "roster.yaml").read_bytes()
    assert "keys exists" in refused("consortium", "init", tmp_path / "centre")
    assert (tmp_path / "centre" / "roster.yaml").read_bytes() == roster
    (tmp_path / "file").write_text("")
    assert "can't be made" in refused("consortium", "init", tmp_path / "file")
    where = ("--name", "x", "--dataset", tmp_path, "--exchange", "mail")
    assert "can't be made" in refused("site-agent", "init", *where, "-f", tmp_path / "file")
    where = ("--name", "centre", *where[2:], "-f", tmp_path / "site")
    assert "coordinator's own name" in refused("site-agent", "init", *where)
    assert not (tmp_path / "site").exists()


def test_an_exchange_of_unknown_kind(refused: Refused, town: Town) -> None:
    place, _ = town
    folder = place.site("east")
    config = folder / "site.yaml"
    text = config.read_text().replace(str(place.errand.exchange), "ftp://host/mail")
    config.write_text(text)
    said = refused("site-agent", "start", "--once", "--folder", folder)
    assert "'ftp:' is no kind of address that an exchange can have" in said
    words = ("run", place.errand.study, "--exchange", "ftp://host/mail", "--out", place.errand.out)
    assert "'ftp:' is no kind of address" in refused(*_centre(place, *words))


def test_a_policy_with_an_unknown_field(refused: Refused, town: Town) -> None:
    place, _ = town
    (place.site("east") / "policy.yaml").write_text("budget: 3\n")
    for command in ("check", "approve"):
        said = refused(*_site(place, command))
        assert "policy.yaml: field 'budget' is unknown" in said
    assert "field 'budget'" in refused("site-agent", "start", "-f", place.site("east"))


def test_a_yes_beyond_the_policy(enter: Type, refused: Refused, town: Town) -> None:
    place, _ = town
    Policy(subject=Allowance(study=7.5, total=7.5)).save(place.site("east"))
    said = refused(*_site(place, "approve"))
    assert "the study asks for ε = 8" in said
    assert "raise the field" in said
    assert "is no bound" in refused(*_site(place, "approve", "--epsilon", "0"))
    assert "is no bound" in refused(*_site(place, "approve", "--epsilon", "inf"))
    assert enter(*_site(place, "approve", "--runs", "0")).code == 2  # the parser's own word
    assert "approved " not in enter("site-agent", "status", "-f", place.site("east")).out


def test_a_second_agent_in_one_folder(refused: Refused, town: Town) -> None:
    place, _ = town
    with only_one(place.site("east"), "agent"):
        said = refused("site-agent", "start", "--once", "-f", place.site("east"))
    assert "is in use by another agent" in said


def test_an_agent_without_work_says_so(refused: Refused, town: Town) -> None:
    place, _ = town
    words = ("start", "--once", "--idle", "0.1", "-f", place.site("east"))
    assert "nothing to do for 0.1 s" in refused("site-agent", *words)


def test_where_no_run_is(refused: Refused, town: Town) -> None:
    place, _ = town
    where = ("--out", place.errand.out, "--exchange", place.errand.exchange)
    assert "holds no run" in refused("consortium", "status", place.errand.study, *where)
    assert "privacy_report.json" in refused("consortium", "report", place.errand.out)


def test_joining_without_the_right_key(enter: Type, refused: Refused, town: Town) -> None:
    place, members = town
    folder = ("--folder", place.site("east"))
    assert "name it with --centre" in refused("site-agent", "join", *folder)
    assert "not a key of 64" in refused("site-agent", "join", "--centre", "abc", *folder)
    assert enter("site-agent", "join", "--centre", members.centre.hex(), *folder).code == 0
    other = refused("site-agent", "join", "--centre", public(9).hex(), *folder)
    assert "has joined the consortium of" in other


def test_a_ledger_that_is_none(refused: Refused, town: Town) -> None:
    place, _ = town
    (place.site("east") / "ledger.sqlite").write_bytes(b"no database" * 1000)
    assert "ledger.sqlite can't be used" in refused(
        "site-agent", "ledger", "-f", place.site("east")
    )


def test_a_real_process_prints_no_traceback(tmp_path: Path) -> None:
    process = _start("site_agent", "status", "--folder", tmp_path)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert out == ""
    expected = f"{tmp_path / 'site.yaml'} can't be read; make it with 'site-agent init'."
    assert err == f"site-agent: {expected}\n"


# -- the help -----------------------------------------------------------------------------


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_names_every_command_under_a_heading(program: str, enter: Type) -> None:
    said = enter(program, "--help")
    assert said.code == 0
    assert "─ Commands ─" not in said.out, "a command has no heading"
    assert "completion" not in said.out
    assert "A study" in said.out
