"""Where an analysis was computed, and by which sources."""

import hashlib
import shutil
from pathlib import Path

import pytest

import consortium
from consortium.engine import own_platform as module
from consortium.engine.own_platform import own_platform

PACKAGE = Path(consortium.__file__).parent


def build_of(package: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(module, "__file__", str(package / "engine" / "own_platform.py"))
    module._own_build.cache_clear()
    return own_platform()["build"]


def test_a_build_is_told_by_its_sources_wherever_they_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = build_of(PACKAGE, monkeypatch)
    ignored = shutil.ignore_patterns("__pycache__")
    copy = Path(shutil.copytree(PACKAGE, tmp_path / "there", ignore=ignored))
    assert build_of(copy, monkeypatch) == here
    with (copy / "errors.py").open("a") as file:
        file.write("\n")
    assert build_of(copy, monkeypatch) not in (here, hashlib.sha256().hexdigest()[:16])
    monkeypatch.undo()
    module._own_build.cache_clear()
    assert own_platform()["build"] == here
