"""Modes on a shared directory: what shuts somebody out is named, with what to type."""

import grp
import os
import stat
import subprocess
from pathlib import Path

import pytest

from consortium.exchange.directory import DirectoryExchange
from consortium.exchange.modes import shared_directory


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shared place"
    root.mkdir()
    root.chmod(0o2770)
    for name in ("runs/small-0001/study", "consents/east/small"):
        DirectoryExchange(root).put(name, b"x")
    return root


def test_what_the_exchange_makes_is_open_to_all_its_users_whatever_the_umask(root: Path) -> None:
    before = os.umask(0o077)
    try:
        DirectoryExchange(root).put("runs/small-0002/study", b"x")
    finally:
        os.umask(before)
    assert shared_directory(root).state == "ok"


@pytest.mark.parametrize(
    ("name", "mode", "wanted"),
    [("runs/small-0001", 0o700, "2770"), ("consents/east/small", 0o600, "660")],
)
def test_a_wrong_mode_is_named_and_what_is_typed_mends_it(
    root: Path, name: str, mode: int, wanted: str
) -> None:
    (root / name).chmod(mode)
    found = shared_directory(root)
    assert found.state == "warn"
    assert f"{root / name} has mode {mode:o} and group" in found.message
    assert f"where its users need {wanted} and" in found.message
    command = found.remedy.partition("type: ")[2]
    assert command == f"chmod {wanted} '{root / name}'"
    subprocess.run(command, shell=True, check=True)
    assert shared_directory(root).state == "ok"


def test_several_are_mended_by_one_command(root: Path) -> None:
    for path in root.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    found = shared_directory(root)
    assert "others like it)" in found.message
    subprocess.run(found.remedy.partition("type: ")[2], shell=True, check=True)
    assert shared_directory(root).state == "ok"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to other groups")
def test_another_group_is_named(root: Path) -> None:
    other = next(each for each in grp.getgrall() if each.gr_gid != root.stat().st_gid)
    os.chown(root / "runs", -1, other.gr_gid)
    found = shared_directory(root)
    assert f"{root / 'runs'} has mode 2770 and group {other.gr_name}" in found.message
    subprocess.run(found.remedy.partition("type: ")[2], shell=True, check=True)
    assert shared_directory(root).state == "ok"


def test_a_directory_of_one_user_alone_and_drafts_under_way_are_passed_over(root: Path) -> None:
    (root / "runs" / ".draft").touch(mode=0o600)
    (root / "runs" / "link").symlink_to("nowhere")
    assert shared_directory(root).state == "ok"
    (root / "runs").chmod(0o700)
    root.chmod(stat.S_IRWXU)
    assert shared_directory(root).state == "ok"
