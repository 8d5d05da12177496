"""Sums of a release, and their signature: whoever flips a byte is found by what the page types."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.long.guides import prompts

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("make", "ssh-keygen", "sha256sum"))), reason="lacks OpenSSH or make"
)


def run(*words: object, cwd: Path = ROOT) -> int:
    return subprocess.run([*map(str, words)], cwd=cwd, capture_output=True, check=False).returncode


def typed(dist: Path) -> list[int]:
    """Exit codes of the page's two commands."""
    lines = [x for x in prompts("guides/installing.md") if "SHA256SUMS" in x]
    assert len(lines) == 2
    return [run("sh", "-c", line, cwd=dist) for line in lines]


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """A signed release of two files, with the list of who may sign."""
    folder, key = tmp_path / "dist", tmp_path / "key"
    folder.mkdir()
    folder.joinpath("a.whl").write_bytes(bytes(range(256)))
    folder.joinpath("b.tar.gz").write_bytes(b"sources")
    assert run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "throw-away", "-f", key) == 0
    assert run("make", "-s", "sums", f"DIST={folder}", f"RELEASE_KEY={key}") == 0
    public = " ".join(key.with_suffix(".pub").read_text().split()[:2])
    line = f'release namespaces="cape-consortium" {public}\n'
    folder.joinpath("allowed_signers").write_text(line)
    return folder


def test_a_release_as_it_was_signed_passes(dist: Path) -> None:
    assert [line.split()[1] for line in (dist / "SHA256SUMS").read_text().splitlines()] == [
        "a.whl",
        "b.tar.gz",
    ]
    assert typed(dist) == [0, 0]


@pytest.mark.parametrize("name", ["a.whl", "SHA256SUMS", "SHA256SUMS.sig"])
def test_a_flipped_byte_is_found(dist: Path, name: str) -> None:
    path = dist / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert any(typed(dist))


def test_sums_made_anew_without_the_key_are_found(dist: Path) -> None:
    old = (dist / "SHA256SUMS.sig").read_bytes()
    dist.joinpath("a.whl").write_bytes(b"another program")
    assert run("make", "-s", "sums", f"DIST={dist}") == 0
    assert not dist.joinpath("SHA256SUMS.sig").exists()
    dist.joinpath("SHA256SUMS.sig").write_bytes(old)
    assert typed(dist)[0] != 0


def test_nobody_signs_who_is_not_listed() -> None:
    lines = (ROOT / "deploy" / "allowed_signers").read_text(encoding="utf-8").splitlines()
    for line in (line for line in lines if not line.startswith("#")):
        assert shlex.split(line)[:3] == ["release", "namespaces=cape-consortium", "ssh-ed25519"]
