"""The descriptor of the BIDS App, held against Boutiques itself."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.end_to_end.test_bids_app import DESCRIPTOR, contents, maps, place, words
from tests.long.platforms import python_with
from tests.support.command_line import enter

__all__ = ["maps", "place"]


@pytest.fixture(scope="module")
def bosh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("boutiques")
    return python_with("boutiques==0.5.33", folder, "CAPE_BOUTIQUES_PYTHON").with_name("bosh")


def said(bosh: Path, *more: object) -> str:
    line = [*map(str, (bosh, *more))]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_descriptor_is_valid_and_a_broken_one_is_not(bosh: Path, tmp_path: Path) -> None:
    assert "OK" in said(bosh, "validate", DESCRIPTOR)
    broken = json.loads(DESCRIPTOR.read_text(encoding="utf-8"))
    del broken["inputs"][0]["value-key"], broken["command-line"]
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    done = subprocess.run([bosh, "validate", tmp_path / "broken.json"], capture_output=True)
    assert done.returncode != 0


def test_what_it_types_is_understood(bosh: Path, place, maps: Path, tmp_path: Path) -> None:
    people = sorted(path.name for path in place.dataset("east").glob("sub-*"))
    _, source, target, level, *_, resolution = words(place, tmp_path / "typed", maps)
    asked = {
        "bids_dir": str(source),
        "output_dir": str(target),
        "analysis_level": level,
        "participant_label": people[:2],
        "templates": str(maps),
        "resolution": resolution,
    }
    (tmp_path / "asked.json").write_text(json.dumps(asked))
    out = said(bosh, "exec", "simulate", DESCRIPTOR, "-i", tmp_path / "asked.json")
    program, *typed = shlex.split(next(x for x in out.splitlines() if x.startswith("site-agent ")))
    assert enter(program, *typed).code == 0
    assert enter(program, *words(place, tmp_path / "own", maps, *people[:2])).code == 0
    assert contents(tmp_path / "typed") == contents(tmp_path / "own")
