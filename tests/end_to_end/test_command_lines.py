"""Wrong inputs to the two command lines: exit code 1 and one sentence; and their help."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from consortium.base.lock import only_one
from consortium.coordinator.demo.prepare import DemoFolders
from consortium.membership.keys import create_identity
from consortium.membership.roster import Roster, read_roster
from consortium.study.reader import read_study
from site_agent.config import SiteConfig
from site_agent.policy.policy import Allowance, Policy
from tests.support.command_line import PROGRAMS, enter, refused
from tests.support.membership_files import PLAIN, give_scans, papers, public, publish
from tests.support.patience import PATIENCE

Town = tuple[DemoFolders, Roster]


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return papers(tmp_path)


def _site(place: DemoFolders, *words: object) -> tuple[object, ...]:
    """A site's command on the study."""
    files = place.files
    rest = (files.study, "--roster", files.roster, "--folder", place.site("east"))
    sure = ("--yes",) if words[0] == "approve" else ()
    return "site-agent", words[0], *rest, *words[1:], *sure


def _centre(place: DemoFolders, *words: object) -> tuple[object, ...]:
    """A coordinator's command on the roster."""
    return "consortium", *words, "--roster", place.files.roster, "--keys", place.files.keys


def test_a_wrong_fingerprint_admits_nobody(town: Town, tmp_path: Path) -> None:
    place, members = town
    new = tmp_path / "new"
    where = ("--dataset", tmp_path, "--exchange", place.files.exchange, "--folder", new)
    enter("site-agent", "init", "--name", "new", *where)
    enter("site-agent", "join", "--centre", members.centre.hex(), "--folder", new)
    request = new / "new.join.yaml"
    said = refused(*_centre(place, "admit", request), answer="n\n")
    assert "new was not admitted. Ask it for its fingerprint" in said
    assert read_roster(place.files.roster) == members
    assert enter(*_centre(place, "admit", request)).code == 1  # nobody there to answer
    assert read_roster(place.files.roster) == members
    assert enter(*_centre(place, "admit", request, "--yes")).code == 0
    assert "new" in read_roster(place.files.roster).sites


@pytest.mark.parametrize("command", ["check", "approve"])
def test_a_study_that_is_not_what_was_signed(command: str, town: Town) -> None:
    place, _ = town
    study = place.files.study
    study.write_text(PLAIN + "# edited\n")
    assert "the study file changed after the coordinator signed" in refused(*_site(place, command))
    study.with_name("study.yaml.sig").unlink()
    assert "has no valid signature next to it" in refused(*_site(place, command))
    study.unlink()
    assert "must be a study file" in refused(*_site(place, command))
    study.write_text("study: [")
    assert "must be plain YAML" in refused(*_site(place, command))
    assert not (place.site("east") / "approved").exists()


def test_the_keys_of_another_consortium_leave_a_good_signature_as_it_is(
    town: Town, tmp_path: Path
) -> None:
    place, _ = town
    signature = place.files.study.with_name("study.yaml.sig")
    before = signature.read_bytes()
    (tmp_path / "other").mkdir()
    create_identity(tmp_path / "other", bytes(64))
    files = place.files
    words = (files.study, "--roster", files.roster, "--keys", tmp_path / "other")
    said = refused("consortium", "sign", *words)
    assert "are not those of the consortium" in said
    assert "Name the right folder with --keys" in said
    assert signature.read_bytes() == before
    signature.unlink()
    refused("consortium", "sign", *words)
    assert not signature.exists()


def test_a_roster_of_another_consortium(town: Town) -> None:
    place, members = town
    give_scans(place)
    assert enter(*_site(place, "approve", "--despite-warnings")).code == 0
    (place.files.keys / "keys").unlink()
    other = create_identity(place.files.keys, b"o" * 64).public
    publish(place, Roster(99, other, members.sites))
    assert "this site has joined the consortium of" in refused(*_site(place, "approve"))
    place.files.roster.write_text("no roster")
    assert "is not a roster. Ask the coordinator" in refused(*_site(place, "approve"))


def test_keys_that_are_missing_or_open(town: Town) -> None:
    place, _ = town
    keys = place.files.keys / "keys"
    keys.chmod(0o644)
    assert "Run chmod 600 on it" in refused(*_centre(place, "sign", place.files.study))
    keys.unlink()
    assert "keys can't be read" in refused(*_centre(place, "sign", place.files.study))
    (place.site("east") / "keys").chmod(0o640)
    assert "Run chmod 600 on it" in refused("site-agent", "status", "--folder", place.site("east"))
    assert "Make it with 'site-agent init'" in refused("site-agent", "status", "-f", place.root)


def test_a_name_that_is_not_on_the_roster(town: Town) -> None:
    place, members = town
    said = refused(*_centre(place, "remove", "nowhere"))
    assert "nowhere is not on the roster, which has east, north, south, west" in said
    assert read_roster(place.files.roster) == members


def test_keys_of_somebody_else(town: Town, tmp_path: Path) -> None:
    place, members = town
    files = place.files
    wrong = ("--roster", files.roster, "--keys", place.site("east"))
    for words in (["remove", "west"], ["rotate", "--new", tmp_path / "new"]):
        said = refused("consortium", *words, *wrong)
        assert "are not those of the consortium" in said
    assert read_roster(files.roster) == members
    assert not (tmp_path / "new").exists()


def test_a_nominal_number_goes_from_a_site_into_the_study(town: Town, tmp_path: Path) -> None:
    place, members = town
    new, study = tmp_path / "new", tmp_path / "alone.yaml"
    where = ("--dataset", tmp_path, "--exchange", place.files.exchange, "--folder", new)
    words = ("init", "--name", "new", *where, "--centre", members.centre.hex(), "--participants")
    assert "Write 160." in refused("site-agent", *words, "157")
    assert not new.exists()
    assert enter("site-agent", *words, "160").code == 0
    assert SiteConfig.load(new).nominal_participants == 160
    assert enter(*_centre(place, "admit", new / "new.join.yaml", "--yes")).code == 0
    roster = ("--roster", place.files.roster)
    drafted = enter("consortium", "new-study", study, *roster, "--sites", "new", *_ALONE)
    assert drafted.code == 0
    assert read_study(study).participants == {"new": 160}
    text = study.read_text()
    (line,) = (each for each in text.splitlines() if each.startswith("participants:"))
    study.write_text(text.replace(line, line.replace("160", "200")))
    said = enter(*_centre(place, "sign", study))
    assert "One participant's privacy loss: ε ≤" in said.out.splitlines()[0]
    assert "WARNING: new stated 160 participants when it joined, and the study has 200" in said.out
    study.write_text(text.replace(line, line.replace("160", "157")))
    assert "field 'participants.new'" in refused(*_centre(place, "sign", study))


_ALONE = ("--algorithm", "ica", "--colluding-sites", "0")


def test_a_site_is_made_once(tmp_path: Path) -> None:
    folder = tmp_path / "north"
    where = ("--dataset", tmp_path, "--exchange", "mail", "--folder", folder)
    assert enter("site-agent", "init", "--name", "north", *where).code == 0
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert "keys exists" in refused("site-agent", "init", "--name", "other", *where)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_site_is_made_and_asks_to_be_admitted_in_one_step(town: Town, tmp_path: Path) -> None:
    place, members = town
    new = tmp_path / "new"
    where = ("--dataset", tmp_path, "--exchange", place.files.exchange, "--folder", new)
    words = ("init", "--name", "new", *where, "--centre")
    said = enter("site-agent", *words, members.centre.hex())
    assert said.code == 0
    (*_, fingerprint) = said.out.splitlines()
    admitted = enter(*_centre(place, "admit", new / "new.join.yaml", "--yes"))
    assert f"new: {fingerprint}" in admitted.out


def test_a_consortium_is_made_with_a_directory_for_its_messages(tmp_path: Path) -> None:
    words = ("init", tmp_path / "centre", "--exchange", tmp_path / "shared")
    said = enter("consortium", *words)
    assert said.code == 0
    assert len(said.out.splitlines()[-1]) == 64
    assert (tmp_path / "shared").is_dir()


def test_an_address_for_messages_is_tried_before_anything_is_made(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    for wrong in (f"file://{shared}", "ftp://host/shared", "s3://a"):
        assert refused("consortium", "init", tmp_path / "centre", "--exchange", wrong)
        assert list(tmp_path.iterdir()) == []
    shared.mkdir()
    words = ("init", tmp_path / "centre", "--exchange", f"file://{shared}")
    assert enter("consortium", *words).code == 0
    assert list(shared.rglob("*")) == []  # the probe is taken away


def test_a_consortium_is_made_once(tmp_path: Path) -> None:
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


def test_an_exchange_of_unknown_kind(town: Town) -> None:
    place, _ = town
    folder = place.site("east")
    config = folder / "site.yaml"
    text = config.read_text().replace(str(place.files.exchange), "ftp://host/mail")
    config.write_text(text)
    said = refused("site-agent", "start", "--once", "--folder", folder)
    assert "got 'ftp:'" in said
    words = ("run", place.files.study, "--exchange", "ftp://host/mail", "--out", place.files.out)
    assert "got 'ftp:'" in refused(*_centre(place, *words))


def test_a_policy_with_an_unknown_field(town: Town) -> None:
    place, _ = town
    (place.site("east") / "policy.yaml").write_text("budget: 3\n")
    for command in ("check", "approve"):
        said = refused(*_site(place, command))
        assert "policy.yaml: field 'budget' is unknown" in said
    assert "field 'budget'" in refused("site-agent", "start", "-f", place.site("east"))


def test_a_yes_beyond_the_policy(town: Town) -> None:
    place, _ = town
    give_scans(place)
    Policy(subject=Allowance(study=7.5, total=7.5)).save(place.site("east"))
    said = refused(*_site(place, "approve"))
    assert "the study asks for ε = 8" in said
    assert "raise the field" in said
    assert "--epsilon: must be" in refused(*_site(place, "approve", "--epsilon", "0"))
    assert "--epsilon: must be" in refused(*_site(place, "approve", "--epsilon", "inf"))
    assert enter(*_site(place, "approve", "--runs", "0")).code == 2  # the parser's own word
    assert "approved " not in enter("site-agent", "status", "-f", place.site("east")).out


def test_a_second_agent_in_one_folder(town: Town) -> None:
    place, _ = town
    with only_one(place.site("east"), "agent"):
        said = refused("site-agent", "start", "--once", "-f", place.site("east"))
    assert "is in use by another agent" in said


def test_an_agent_without_work_says_so(town: Town) -> None:
    place, _ = town
    words = ("start", "--once", "--idle", "0.1", "-f", place.site("east"))
    assert "nothing to do for 0.1 s" in refused("site-agent", *words)


def test_where_no_run_is(town: Town) -> None:
    place, _ = town
    where = ("--out", place.files.out, "--exchange", place.files.exchange)
    assert "has no run" in refused("consortium", "status", place.files.study, *where)
    assert "privacy_report.json" in refused("consortium", "report", place.files.out)


def test_joining_without_the_right_key(town: Town) -> None:
    place, members = town
    folder = ("--folder", place.site("east"))
    assert "Name it with --centre" in refused("site-agent", "join", *folder)
    assert "not a key of 64" in refused("site-agent", "join", "--centre", "abc", *folder)
    assert enter("site-agent", "join", "--centre", members.centre.hex(), *folder).code == 0
    other = refused("site-agent", "join", "--centre", public(9).hex(), *folder)
    assert "has joined the consortium of" in other


def test_a_ledger_that_is_none(town: Town) -> None:
    place, _ = town
    (place.site("east") / "ledger.sqlite").write_bytes(b"no database" * 1000)
    assert "ledger.sqlite can't be used" in refused(
        "site-agent", "ledger", "-f", place.site("east")
    )


def test_a_real_process_prints_no_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "site_agent", "status", "--folder", str(tmp_path)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert process.returncode == 1
    assert process.stdout == ""
    expected = f"{tmp_path / 'site.yaml'} can't be read. Make it with 'site-agent init'."
    assert process.stderr == f"site-agent: {expected}\n"


# -- the help -----------------------------------------------------------------------------


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_names_every_command_under_a_heading(
    program: str,
) -> None:
    said = enter(program, "--help")
    assert said.code == 0
    assert "─ Commands ─" not in said.out, "a command has no heading"
    assert "A study" in said.out


_HEAVY = ("numpy", "scipy", "pydantic", "cryptography", "nibabel", "nilearn", "prefect", "yaml")


@pytest.mark.parametrize("module", ["consortium.coordinator.cli", "site_agent.cli"])
@pytest.mark.parametrize("option", ["--help", "--version"])
def test_what_is_asked_first_imports_nothing_heavy(module: str, option: str) -> None:
    code = (
        f"import sys; sys.argv = ['x', {option!r}]\n"
        f"from {module} import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sorted(sys.modules), sep='\\n', file=sys.stderr)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    imported = {name.split(".")[0] for name in told.stderr.split()}
    assert not imported & set(_HEAVY)
    assert {"typer", module.split(".")[0]} <= imported


def test_quiet_and_verbose(tmp_path: Path) -> None:
    assert enter("consortium", "--quiet", "init", tmp_path / "keys").out == ""
    said = enter("consortium", "--verbose", "report", tmp_path)
    assert "Traceback" in said.err
    assert said.err.splitlines()[-1].startswith("consortium: ")


@pytest.mark.parametrize(("own", "expected"), [({}, "20"), ({"OPENBLAS_THREAD_TIMEOUT": "8"}, "8")])
def test_threads_of_products_are_told_to_rest_before_numpy_comes(own, expected):
    code = (
        "import os, sys\n"
        "from consortium.base.command_line import Terminal, run_program\n"
        "def app():\n"
        "    print(os.environ['OPENBLAS_THREAD_TIMEOUT'], 'numpy' in sys.modules)\n"
        "run_program('program', app, Terminal())\n"
    )
    plain = {k: v for k, v in os.environ.items() if k != "OPENBLAS_THREAD_TIMEOUT"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=plain | own, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [expected, "False"]
