"""Files with the same bytes are found, and those that only begin alike are not."""

from pathlib import Path

from site_agent.images.copies import same_files


def _write(folder: Path, **contents: bytes) -> list[Path]:
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in contents]


def test_copies_are_found_and_files_that_begin_alike_are_not(tmp_path: Path) -> None:
    begin = bytes(1 << 20)
    paths = _write(tmp_path, a=begin + b"1", b=begin + b"2", c=begin + b"1", d=b"x", e=b"y")
    assert same_files([*paths, tmp_path / "gone"]) == [[tmp_path / "a", tmp_path / "c"]]


def test_files_of_different_sizes_are_not_read(tmp_path: Path, monkeypatch) -> None:
    paths = _write(tmp_path, a=b"1", b=b"22")
    monkeypatch.setattr(Path, "open", None)
    assert same_files(paths) == []
