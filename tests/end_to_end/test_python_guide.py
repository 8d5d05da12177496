"""The worked example of the guide for Python runs as it is printed, and prints what it says."""

import re
from pathlib import Path

import numpy as np
import pytest

from consortium.simulation.__main__ import main
from tests.end_to_end.test_docs import DOCS, blocks, prose

GUIDE = DOCS / "guides" / "python.md"


def test_the_guide_leads_from_data_to_a_map(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    made = re.search(r"`python -m consortium.simulation ([^`]*)`", prose(GUIDE))
    assert made is not None
    main(made[1].split())
    (code,) = blocks(GUIDE, "python")
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    names: dict[str, object] = {}
    exec(compile(code, str(GUIDE), "exec"), names)  # our own page
    said = capsys.readouterr().out
    (price,) = blocks(GUIDE, "text")
    assert price in said
    assert re.search(r"network 1: expected correlation 0\.[789]\d, found: True", said)
    assert (tmp_path / "networks.png").stat().st_size > 10_000
    expected = np.array(names["model"].expected_)  # type: ignore[attr-defined]
    assert np.isfinite(expected).sum() >= 5
