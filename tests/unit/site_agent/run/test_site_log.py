"""The site's log: what is kept for the page, and what strangers can't push off it."""

from pathlib import Path

from site_agent.run.site_log import _KEPT, _MOST, SiteLog, read_log_lines


def texts(folder: Path) -> list[str]:
    return [line.text for line in read_log_lines(folder)]


def test_lines_of_one_subject_push_nothing_off_the_page(tmp_path: Path) -> None:
    log = SiteLog(tmp_path, lambda: "noon", lambda _line: None)
    log.write("joined small-0001")
    for number in range(3 * _KEPT):
        log.keep(f"small-{number:04} goes on without this site", "refused small")
    assert texts(tmp_path) == [
        "joined small-0001",
        f"small-{3 * _KEPT - 1:04} goes on without this site",
    ]
    for number in range(_KEPT):
        log.keep(f"line {number}")
    assert texts(tmp_path) == [f"line {number}" for number in range(_KEPT)]


def test_what_is_logged_only_is_not_on_the_page(tmp_path: Path) -> None:
    heard: list[str] = []
    log = SiteLog(tmp_path, lambda: "noon", heard.append)
    log.line("sub-01 has a gap")
    log.line_once("other-0001 is not approved here")
    log.line_once("other-0001 is not approved here")
    log.write_once("nothing is answered before 9")
    log.write_once("nothing is answered before 9")
    log.keep("the page alone")
    assert texts(tmp_path) == ["nothing is answered before 9", "the page alone"]
    assert heard == [
        "sub-01 has a gap",
        "other-0001 is not approved here",
        "nothing is answered before 9",
    ]
    assert log.kept == 2


def test_the_lines_of_strangers_fill_neither_memory_nor_disk(tmp_path: Path) -> None:
    heard: list[str] = []
    log = SiteLog(tmp_path, lambda: "noon", heard.append)
    for _ in range(3):  # looks at an exchange with as many odd folders
        for number in range(_MOST + 100):
            log.line_once(f"line {number}")
    assert len(heard) == _MOST + 1
    assert "further ones are omitted" in heard[-1]
    log.line("what the agent itself does goes on")
    assert len(heard) == _MOST + 2


def test_a_page_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    heard: list[str] = []
    log = SiteLog(tmp_path / "file", lambda: "noon", heard.append)
    (tmp_path / "file").write_text("no folder")
    log.keep("line")
    assert len(heard) == 1
