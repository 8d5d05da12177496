"""The README's ways to install a release, each typed beside the wheel into an empty home."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from consortium import __version__
from tests.long.installation import ROOT, release
from tests.long.platforms import python_with

README = (ROOT / "README.md").read_text(encoding="utf-8")
LINES = re.findall(r"^(\S.* install \S+\.whl)$", README, re.MULTILINE)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    release(folder)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the program pipx."""
    folder = tmp_path_factory.mktemp("tools")
    return python_with("pipx==1.18.4", folder, "CAPE_PIPX_PYTHON").parent


def test_the_readme_names_three_ways() -> None:
    assert [shlex.split(line)[0] for line in LINES] == ["pip", "pipx", "uv"]


@pytest.mark.parametrize("line", LINES)
def test_each_way_of_the_readme_brings_both_programs(
    line: str, wheel: Path, tools: Path, tmp_path: Path
) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    places = {"PIPX_HOME": "pipx", "PIPX_BIN_DIR": "bin", "UV_TOOL_DIR": "uv"}
    places |= {"UV_TOOL_BIN_DIR": "bin"}
    found = (tmp_path / "venv" / "bin", tmp_path / "bin", tools, Path(sys.executable).parent)
    around = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        **{name: str(tmp_path / folder) for name, folder in places.items()},
        "PATH": ":".join(map(str, (*found, "/usr/bin", "/bin"))),
    }
    words = shlex.split(line)
    assert Path(words[-1]).name == wheel.name
    done = subprocess.run(words, cwd=wheel.parent, env=around, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    here = next(each for each in found[:2] if (each / "site-agent").exists())
    for program in ("consortium", "site-agent"):
        told = subprocess.run(
            [here / program, "--version"], env=around, capture_output=True, text=True, check=True
        )
        assert told.stdout.strip() == __version__
    init = ("init", "--name", "east", "--dataset", tmp_path, "--exchange", tmp_path / "mail")
    (tmp_path / "mail").mkdir()
    words = [here / "site-agent", *init, "--folder", tmp_path / "agent"]
    subprocess.run(words, env=around, check=True, capture_output=True)
    assert (tmp_path / "agent" / "site.yaml").is_file()
