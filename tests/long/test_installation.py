"""The page for a hospital's IT, typed into an empty folder."""

import subprocess
from pathlib import Path

import pytest

from tests.long.installation import commands, install


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="no Python of the system's")
def test_what_the_page_types_installs_both_programs_without_a_tool_of_tests(tmp_path: Path) -> None:
    place = tmp_path / "opt"
    assert commands(place)[0][-1] == str(place)
    install(place)
    for program in ("consortium", "site-agent"):
        done = subprocess.run(
            [place / "bin" / program, "--help"], env={}, capture_output=True, text=True, check=True
        )
        assert "Usage" in done.stdout
    listed = subprocess.run(
        [place / "bin" / "python", "-m", "pip", "list"], capture_output=True, text=True, check=True
    ).stdout
    names = {line.split()[0].lower() for line in listed.splitlines()}
    assert {"cape-consortium", "isal"} <= names
    assert len(names - {"pip", "setuptools"}) <= 2 + 60  # of pip's two lines of heading
    assert names.isdisjoint({"prefect", "fastapi", "sqlalchemy", "paramiko", "mne"})
    tools = {"pytest", "hypothesis", "moto", "mypy", "ruff", "import-linter", "statsmodels"}
    assert names.isdisjoint(tools)
    folders = {path.name for path in (place / "lib").glob("python3*/site-packages/*")}
    assert folders.isdisjoint({"tests", "benchmarks", "docs"})
