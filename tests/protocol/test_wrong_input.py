"""Wrong files and settings, as users make them: one sentence, and nothing of the data told."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest
from rich.console import Console

from consortium.base.lock import only_one
from consortium.coordinator.demo.prepare import DemoFolders
from consortium.coordinator.run import run_study
from consortium.coordinator.run_folder import read_run
from consortium.engine.clock import Clock
from consortium.engine.names import END
from consortium.errors import (
    BudgetError,
    ConfigurationError,
    ConsortiumError,
    LedgerError,
    OutputError,
    ProtocolError,
    SiteError,
    StudyError,
)
from consortium.membership.roster import read_roster
from consortium.secagg import unseal
from site_agent.agent import Agent
from site_agent.images.series import PersonBlocks
from site_agent.layout import LEDGER
from site_agent.ledger.ledger import Charge, Ledger
from tests.support.charges import charged
from tests.support.forgery import NAMES, RUN, alter_reads, ledger, path_of, pump, refusal, settle
from tests.support.local_consortium import SITES, STUDY, LocalConsortium, agree, conduct, limit
from tests.support.patience import PATIENCE


def _image(place: DemoFolders) -> Path:
    return sorted(place.dataset("east").glob("sub-002/func/*_bold.nii.gz"))[0]


def _rewrite(place: DemoFolders, change: Callable[[np.ndarray, np.ndarray], object]) -> None:
    """Change the voxels or the affine of one image of the site 'east'."""
    path = _image(place)
    image = nib.load(path)
    data, affine = image.get_fdata(dtype=np.float32), image.affine.copy()
    found = change(data, affine)
    data = found if isinstance(found, np.ndarray) else data
    nib.save(nib.Nifti1Image(data, affine), path)


def _truncate(place: DemoFolders) -> None:
    path = _image(place)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _far_away(_: np.ndarray, affine: np.ndarray) -> None:
    affine[:3, 3] += 4000.0


def _spoil(data: np.ndarray, _: np.ndarray) -> None:
    data[..., 3] = np.nan


def _empty(data: np.ndarray, _: np.ndarray) -> None:
    data[:] = 0.0


IMAGES: dict[str, tuple[Callable[[DemoFolders], None], str]] = {
    "truncated": (_truncate, "cut short|can't be read|damaged"),
    "three axes": (lambda p: _rewrite(p, lambda d, a: d[..., 0]), "has 3 axes"),
    "elsewhere": (lambda p: _rewrite(p, _far_away), "shows 0% of the study's mask"),
    "not finite": (lambda p: _rewrite(p, _spoil), "not finite in volume 4"),
    "nothing in the mask": (lambda p: _rewrite(p, _empty), "zero or constant in the study's mask"),
    "not an image": (lambda p: _image(p).write_bytes(b"hello") and None, "can't be read"),
}


@pytest.mark.parametrize("fault", IMAGES)
def test_one_unusable_image_ends_no_run_and_is_told_to_its_own_people(
    fault: str, tmp_path: Path
) -> None:
    """Whether a site answers does not depend on one person's files."""
    place = settle(tmp_path / "place")
    damage, said = IMAGES[fault]
    damage(place)
    local = LocalConsortium(place)
    centre = local.centre()
    conduct(centre)
    assert centre.session is not None
    assert centre.session.plan.shape.subjects == (10, 10, 10, 10)
    assert "with 2 participants" in local.said("east")
    assert _matches(said, local.said("east"))
    assert "hospitals/east" in local.said("east")
    sent = b"".join(p.read_bytes() for p in (place.root / "exchange").rglob("*") if p.is_file())
    assert b"sub-002" not in sent


@pytest.mark.parametrize("is_cached", [True, False])
@pytest.mark.parametrize("what", ["removed", "replaced"])
def test_an_image_that_changes_during_a_run_changes_no_run(
    what: str, is_cached: bool, tmp_path: Path
) -> None:
    place = settle(tmp_path / "place")
    local = LocalConsortium(place)
    centre = local.centre()
    centre.open()
    assert centre.session is not None
    centre.step()
    image = _image(place)
    if what == "removed":
        image.unlink()
    else:
        _truncate(place)
    blocks = [*(place.site("east") / "cache").rglob("*.npy")]
    assert blocks
    if not is_cached:
        for block in blocks:
            block.unlink()
    while centre.session.pending is not None:
        centre.step()
    assert all(np.isfinite(array).all() for array in centre.finish().arrays.values())
    lines = [line for line in local.said("east").splitlines() if str(image) in line]
    assert len(lines) == 1
    assert ("zeros" in lines[0]) is not is_cached
    assert all(
        [entry.charge.round for entry in ledger(place, site)] == [1, 1, 2, 2, 3, 3]
        for site in SITES
    )


def test_a_data_set_that_is_gone(tmp_path: Path) -> None:
    """Its own log names it; everybody else hears the site's name and the kind of trouble."""
    place = settle(tmp_path / "place")
    place.dataset("east").rename(place.root / "x")
    local, said = LocalConsortium(place), "not a folder"
    centre = local.centre()
    with pytest.raises(SiteError, match=r"^east takes no further part \(data\)") as caught:
        conduct(centre)
    centre.abort(caught.value)
    pump(local, 2)
    keys = read_roster(place.files.roster).keys
    own = local.said("east")
    assert _matches(said, own)
    assert "hospitals/east" in own
    end = unseal(
        path_of(place, NAMES.end()).read_bytes(), keys, run=RUN, kind=END, limit=1 << 16
    ).body.decode()
    assert "east" in end
    others = "".join(local.said(s) for s in SITES if s != "east")
    for public in (end, str(refusal(place, "east", keys)), str(caught.value), others):
        for secret in ("sub-", "002", ".nii", "/", "bids"):
            assert secret not in public
    for site in SITES:
        assert [e.charge.round for e in ledger(place, site)] in ([], [1, 1])
    assert ledger(place, "east") == []


def _matches(pattern: str, text: str) -> bool:
    import re

    return re.search(pattern, text) is not None


def test_ledger_over_its_limit_refuses_before_any_voxel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    real = PersonBlocks.blocks

    def blocks(self: PersonBlocks) -> Any:
        read.extend(subject.runs[0].bold for subject in self.subjects)
        return real(self)

    monkeypatch.setattr(PersonBlocks, "blocks", blocks)
    place = settle(tmp_path / "place")
    limit(place, "east", 1.0)
    local = LocalConsortium(place)
    with pytest.raises(SiteError, match=r"^east takes no further part \(budget\)"):
        conduct(local.centre())
    assert "over the limit" in local.said("east")
    assert read
    assert not any(path.is_relative_to(place.dataset("east")) for path in read)
    assert all(ledger(place, site) == [] for site in SITES)


def test_altered_ledger_is_not_trusted(tmp_path: Path) -> None:
    import sqlite3

    place = settle(tmp_path / "place")
    path = place.site("east") / LEDGER
    charge = Charge("d", "s", "r", 1, "a", "b", "subject", 0.5, "0" * 64, "1" * 64, "2" * 64, 0.4)
    charged(Ledger(path), charge)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE entries SET mu = 0")
    with pytest.raises(SiteError, match=r"^east takes no further part \(ledger\)"):
        conduct(LocalConsortium(place).centre())
    with pytest.raises(LedgerError):
        ledger(place, "east")


def test_study_that_was_never_approved_is_left_alone(tmp_path: Path) -> None:
    place = settle(tmp_path / "place")
    for record in (place.site("east") / "approved").iterdir():
        record.unlink()
    local = LocalConsortium(place)
    with pytest.raises(SiteError, match=r"^east: not there within 4 s"):
        conduct(local.centre())
    assert "not approved here" in local.said("east")


def test_epsilon_too_small_for_the_rounds(tmp_path: Path) -> None:
    text = STUDY.replace("epsilon: 8, delta: 1.0e-5", "epsilon: 1.0e-15, delta: 1.0e-18")
    place = settle(tmp_path / "place", text=text)
    with pytest.raises(BudgetError, match=r"field 'privacy.epsilon': must be larger than 1e-15"):
        conduct(LocalConsortium(place).centre())
    assert all(ledger(place, site) == [] for site in SITES)


def _study(place: DemoFolders, old: str, new: str) -> None:
    path = place.files.study
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with suppress(StudyError):  # it is for the command to say what is wrong
        agree(place, read_roster(place.files.roster), only=())


def _run_json(place: DemoFolders, text: str) -> None:
    place.files.out.mkdir()
    (place.files.out / "run.json").write_text(text)


ERRANDS: dict[str, tuple[Callable[[DemoFolders], object], type[ConsortiumError], str]] = {
    "unknown key": (lambda p: _study(p, "study: s", "sturdy: 1\nstudy: s"), StudyError, "'sturdy'"),
    "scheme none": (
        lambda p: _study(p, "boost: exact", "scheme: none"),
        StudyError,
        "'privacy.scheme': 'none'",
    ),
    "keys for all": (lambda p: (p.files.keys / "keys").chmod(0o644), ConfigurationError, "others"),
    "keys damaged": (
        lambda p: (p.files.keys / "keys").write_bytes(b"x"),
        ConfigurationError,
        "keys is damaged",
    ),
    "roster damaged": (lambda p: p.files.roster.write_text("[1"), StudyError, "is not a roster"),
    "roster binary": (lambda p: p.files.roster.write_bytes(b"\xff"), StudyError, "is not a roster"),
    "run.json damaged": (lambda p: _run_json(p, "{"), OutputError, "run.json is damaged"),
    "run.json elsewhere": (
        lambda p: _run_json(p, '{"run": "../../x", "study": "y"}'),
        OutputError,
        "run.json is damaged",
    ),
    "another study": (
        lambda p: _run_json(p, '{"run": "small-0001", "study": "y"}'),
        OutputError,
        "is the output folder of another study",
    ),
    "output is a file": (lambda p: p.files.out.write_text(""), OutputError, "can't be written"),
}


@pytest.mark.parametrize("fault", ERRANDS)
def test_centres_errand(fault: str, tmp_path: Path) -> None:
    place = settle(tmp_path / "place")
    damage, kind, said = ERRANDS[fault]
    damage(place)
    with pytest.raises(kind, match=said) as caught:
        run_study(place.files, Clock(), Console(quiet=True))
    assert "\n" not in str(caught.value)


def test_second_centre_in_one_folder(tmp_path: Path) -> None:
    place = settle(tmp_path / "place")
    with only_one(place.files.out):
        with pytest.raises(OutputError, match="in use by another centre"):
            run_study(place.files, Clock(), Console(quiet=True))
        assert read_run(place.files.out) is None
    with only_one(place.files.out):
        pass  # free again
    with pytest.raises(BlockingIOError), only_one(place.files.out):
        raise BlockingIOError("not the lock's")


def _change_values(path: Path, values: np.ndarray) -> None:
    np.save(path, values)


RECORDS: dict[str, Callable[[Path], object]] = {
    "cut": lambda f: (f / "round-00001.npy").write_bytes(b"\x93NUMPY"),
    "no numbers": lambda f: (f / "round-00001.npy").unlink(),
    "not json": lambda f: (f / "round-00001.json").write_text("{"),
    "not a record": lambda f: (f / "round-00001.json").write_text("[]"),
    "another length": lambda f: _change_values(f / "round-00001.npy", np.zeros(3, np.uint32)),
    "another type": lambda f: _change_values(f / "round-00001.npy", np.array(["a"])),
    "unknown site": lambda f: _survivors(f, [0, 1, 2, 7]),
    "too few": lambda f: _survivors(f, [0]),
    "twice": lambda f: _survivors(f, [0, 1, 2, 2]),
}


def _survivors(folder: Path, sites: list[int]) -> None:
    path = folder / "round-00001.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "survivors": sites}))


@pytest.mark.parametrize("fault", RECORDS)
def test_damaged_transcript(fault: str, tmp_path: Path) -> None:
    place = settle(tmp_path / "place")
    local = LocalConsortium(place)
    centre = local.centre()
    centre.open()
    centre.step()
    RECORDS[fault](place.files.out / "transcript")
    with pytest.raises((OutputError, ProtocolError), match=r"is damaged|belongs to another study"):
        local.centre().open()


def test_centres_own_trouble_is_not_told_to_the_sites(tmp_path: Path) -> None:
    local = LocalConsortium(settle(tmp_path / "place"))
    centre = local.centre()
    centre.open()
    centre.abort(OutputError("/home/anna/output can't be written. Check disk space."))
    pump(local, 2)
    end = path_of(local.place, NAMES.end()).read_bytes()
    assert b"/home" not in end
    assert b"its own log says why" in end


def test_abort_never_hides_what_ended_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = LocalConsortium(settle(tmp_path / "place"))
    centre = local.centre()
    centre.open()
    centre.abort(SiteError("first"))
    alter_reads(monkeypatch, lambda name, data, _: data + bytes(1 << 20))
    centre.abort(SiteError("second"))
    assert "is too large" in local.said("centre")


def _agent(place: DemoFolders) -> Agent:
    return Agent(place.site("east"), Clock(), lambda: "now", lambda line: None)


FOLDERS: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "keys for all": ("start", lambda f: (f / "keys").chmod(0o640), "can be read by others"),
    "config damaged": ("start", lambda f: (f / "site.yaml").write_bytes(b"\xff"), "site.yaml"),
    "ledger damaged": ("start", lambda f: (f / LEDGER).write_bytes(b"x" * 5000), LEDGER),
}


@pytest.mark.parametrize("fault", FOLDERS)
def test_damaged_site_folder(fault: str, tmp_path: Path) -> None:
    place = settle(tmp_path / "place")
    _, damage, said = FOLDERS[fault]
    damage(place.site("east"))
    with pytest.raises(ConsortiumError, match=said):
        _agent(place)


COMMANDS: dict[str, tuple[list[str], Callable[[DemoFolders], object], str]] = {
    "agent, bad name": (["site_agent", "init", "--name", "No Name"], lambda p: None, "name must"),
    "agent, keys": (
        ["site_agent", "start"],
        lambda p: (p.site("east") / "keys").chmod(0o644),
        "keys can be read by others",
    ),
    "agent, approval": (
        ["site_agent", "status"],
        lambda p: [f.write_text("{") for f in (p.site("east") / "approved").glob("*.json")],
        "is damaged, or of an earlier version. Remove it and approve the study again",
    ),
    "centre, study": (
        ["consortium", "run"],
        lambda p: _study(p, "ica", "icy"),
        "'icy' is not k",
    ),
}


@pytest.mark.parametrize("row", COMMANDS)
def test_command_prints_one_sentence_and_fails(row: str, tmp_path: Path) -> None:
    place = settle(tmp_path / "place")
    words, damage, said = COMMANDS[row]
    damage(place)
    e = place.files
    more = {
        "init": ["--dataset", str(tmp_path), "--exchange", str(tmp_path)],
        "run": [str(e.study), "--roster", str(e.roster), "--exchange", str(e.exchange)],
    }.get(words[1], [])
    more += ["--keys", str(e.keys), "--out", str(e.out)] if words[1] == "run" else []
    folder = ["--folder", str(place.site("east"))] if words[0] == "site_agent" else []
    call = [sys.executable, "-m", words[0], *words[1:]]
    done = subprocess.run(
        [*call, *more, *folder],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
