"""Every analysis has all parts that the guide for a new one requires, and a gap is named."""

from pathlib import Path

import pytest

from consortium.algorithms import REGISTRY
from tests.new_analysis import ROOT, missing_parts


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_analysis_has_all_parts(name: str) -> None:
    assert list(missing_parts(name)) == []


def test_every_missing_part_is_named(tmp_path: Path) -> None:
    for path in ("configs", "docs/explanation"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "docs/explanation/privacy-bounds.md").touch()
    found = " ".join(missing_parts("average", tmp_path))
    for part in ("docs/analyses/average.md", "benchmarks/honesty/average.py", "test_average.py"):
        assert f"{part} is missing" in found
    assert "no example with a title" in found
    assert "lacks the statistic mean_squares" in found


def test_an_unknown_analysis_lacks_its_line_in_the_registry() -> None:
    assert "REGISTRY lacks it" in next(missing_parts("share"))


def test_the_guide_names_the_command() -> None:
    guide = (ROOT / "docs/guides/new-analysis.md").read_text(encoding="utf-8")
    assert "python -m tests.new_analysis NAME" in guide
    assert "benchmarks/honesty/" in guide
