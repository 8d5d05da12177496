"""The page of what was measured: who is missing is said, and a table replaces only its own."""

from pathlib import Path

import pytest

from benchmarks import page, peers
from benchmarks.__main__ import ROWS
from benchmarks.by_persons import exponent
from benchmarks.page import PAGE, put, replaced
from benchmarks.table import Row, alternate

MARKS = "<!-- measured: {} -->\n{}<!-- end -->\n"
TEXT = "# Page\n\n" + MARKS.format("a", "old\n") + "\nkept\n\n" + MARKS.format("b", "")


def test_a_peer_that_is_not_installed_is_said_to_be_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(peers.PEERS, "Flower", "no-such-distribution")
    assert peers.installed("Flower") is None
    assert "Flower not installed" in peers.versions()
    cells = Row("sums", 3.0, "Flower", None, "≥ 10").cells()
    assert cells == ("sums", "3 ms", "Flower", "not installed", "", "≥ 10")


def test_a_table_replaces_its_own_and_nothing_else() -> None:
    assert replaced(TEXT, "a", "new") == TEXT.replace("old", "new")
    assert replaced(replaced(TEXT, "b", "x"), "b", "") == replaced(TEXT, "b", "")
    with pytest.raises(ValueError, match="no marks 'c'"):
        replaced(TEXT, "c", "new")


def test_a_table_is_written_with_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    page.PAGE.write_text(TEXT)
    put("b", ("work", "ours"), [Row("a|b", 2.0, "", None, "").cells()[:2]])
    written = page.PAGE.read_text()
    assert "| work | ours |\n| --- | --- |\n| a\\|b | 2 ms |\n<!-- end -->" in written
    assert page.processor() in written
    assert "old" in written


def test_the_page_has_been_measured() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, rows in {**dict.fromkeys(ROWS, 1), "persons": 3, "workers": 3, "parts": 3}.items():
        inside = text.partition(f"<!-- measured: {name} -->")[2].partition("<!-- end -->")[0]
        assert inside.count("\n| ") > rows + 1, name
        assert "Measured on " in inside, name


def test_ratios_and_turns() -> None:
    assert Row("", 2.0, "", 8.0, "").ratio == 0.25
    assert Row("", 2.0, "", 8.0, "", inverse=True).ratio == 4.0
    turns: list[str] = []
    clock = iter(range(100))
    least = alternate(
        lambda: turns.append("a"), lambda: turns.append("b"), repeats=2, clock=lambda: next(clock)
    )
    assert turns == ["a", "b", "a", "b"]
    assert least == [1000.0, 1000.0]


def test_the_exponent_is_that_of_a_power() -> None:
    assert exponent((10, 100, 1000), [2.0, 20.0, 200.0]) == pytest.approx(1.0)
    assert exponent((10, 100, 1000), [5.0, 5.0, 5.0]) == pytest.approx(0.0)
