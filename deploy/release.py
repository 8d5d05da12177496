"""Build a commit's wheels and sources: the same bytes on every machine and at any time.

``python deploy/release.py DIST`` does so for the commit that is checked out, without what was
changed since. Times are the commit's, users are nobody, the build tool is the pinned one.
"""

import gzip
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
PARTS = (".", "relay")
"""Folders of distributions."""


def build(target: Path) -> list[Path]:
    """Build the wheel and the source distribution of each part.

    Parameters
    ----------
    target : Path
        A folder, made if it is not there.

    Returns
    -------
    list of Path
        The files, in the order of their names.

    Raises
    ------
    CalledProcessError
        If there is no commit, or it can't be built.
    """
    when = int(_git("log", "-1", "--format=%ct"))
    target.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as place:
        with tarfile.open(fileobj=io.BytesIO(_git("archive", "HEAD"))) as commit:
            commit.extractall(place, filter="data")
        for part in PARTS:
            _build_one(Path(place, part), target.resolve(), when)
    for sources in target.glob("*.tar.gz"):
        sources.write_bytes(repacked(sources.read_bytes(), when))
    return sorted(path for path in target.iterdir() if path.name.endswith((".whl", ".tar.gz")))


def _git(*words: str) -> bytes:
    return subprocess.run(["git", "-C", ROOT, *words], check=True, capture_output=True).stdout


def _build_one(folder: Path, target: Path, when: int) -> None:
    words = ["uv", "build", "--quiet", "--out-dir", target, "--require-hashes"]
    words += ["--build-constraints", ROOT / "deploy" / "build.lock", folder]
    around = {**os.environ, "SOURCE_DATE_EPOCH": str(when)}
    # Modes of files as they are unpacked become modes in the wheel.
    subprocess.run([sys.executable, "-m", *words], env=around, check=True, umask=0o022)


def repacked(archive: bytes, when: int) -> bytes:
    """Pack an archive of sources anew: in the order of names, with one time and no user's name.

    Parameters
    ----------
    archive : bytes
        A gzipped tar file.
    when : int
        Seconds since 1970, for the archive and all that is in it.
    """
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as old,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda each: each.name):
            plain = tarfile.TarInfo(member.name)
            plain.type, plain.size, plain.mtime = member.type, member.size, when
            plain.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            new.addfile(plain, old.extractfile(member) if member.isfile() else None)
    return gzip.compress(packed.getvalue(), mtime=when)


if __name__ == "__main__":
    sys.stdout.write("".join(f"{path}\n" for path in build(Path(sys.argv[1]))))
