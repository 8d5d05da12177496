"""The installation of docs/guides/installing.md, typed into a clean folder: no /opt is touched.

``python -m tests.long.installation FOLDER`` leaves it there.
"""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests.long.guides import prompts

ROOT = Path(__file__).parents[2]
PAGE = "guides/installing.md"
PLACE = "/opt/cape-consortium"


def release(folder: Path) -> None:
    """Put there what a release hands out: the wheel, and what it needs with its hashes."""
    words = ["-m", "uv", "build", "--quiet", "--out-dir", str(folder), str(ROOT)]
    subprocess.run([sys.executable, *words], check=True)
    for name in ("requirements", "requirements-all"):
        shutil.copyfile(ROOT / "deploy" / f"{name}.lock", folder / f"{name}.txt")


def commands(place: Path) -> list[list[str]]:
    """The page's commands that install, for another folder than its own."""
    lines = [
        shlex.split(line) for line in prompts(PAGE) if "python3 -m venv" in line or "/pip " in line
    ]
    lines = lines[: 1 + next(k for k, line in enumerate(lines) if line[-1] == "check")]
    without = [line[1:] if line[0] == "sudo" else line for line in lines]
    return [[word.replace(PLACE, str(place)) for word in line] for line in without]


def for_coordinator(place: Path) -> Path:
    """Where the coordinator's software is, if a site's is here."""
    return place.with_name(f"{place.name}-all")


def install_both(place: Path) -> None:
    """Install what a site needs, and beside it all that the coordinator does."""
    install(place)
    install(for_coordinator(place), "requirements-all.txt")


def install(place: Path, requirements: str = "requirements.txt") -> None:
    """Type them, where a release lies, with one of its two lists."""
    papers = place.with_name("release")
    if not papers.exists():
        papers.mkdir()
        release(papers)
    bare = {"PATH": "/usr/bin:/bin", "HOME": str(papers), "LANG": "C.UTF-8"}
    for words in commands(place):
        line = [requirements if word == "requirements.txt" else word for word in words]
        done = subprocess.run(
            line, cwd=papers, env=bare, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (line, done.stdout[-2000:], done.stderr)


if __name__ == "__main__":
    install(Path(sys.argv[1]).resolve())
