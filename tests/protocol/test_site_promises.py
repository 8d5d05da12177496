"""What the site guide promises of a whole run: scans stay as they are and where they are."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.privacy.mechanism import Mechanism
from site_agent.layout import CACHE, LEDGER
from tests.support.forgery import rounds_of, settle
from tests.support.local_consortium import SITES, LocalConsortium, conduct

PERSONS = (b"sub-", b"_bold", b".nii.gz")
"""What every name of a person or of a scan has in it."""
PIECE = 64


def _files(*folders: Path) -> Iterator[Path]:
    return (path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file())


def _content(*folders: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in _files(*folders)}


def _told(place: DemoFolders) -> dict[Path, bytes]:
    """All that others than a site can read, and what its ledger holds."""
    ledgers = {place.site(name) / LEDGER: b"" for name in SITES}
    for path in ledgers:
        ledgers[path] = b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*"))
    return _content(place.root / "exchange", place.files.out) | ledgers


@dataclass(frozen=True)
class Run:
    """A run that has ended: which data sets it changed, and what ledgers held at each draw."""

    place: DemoFolders
    changed: list[str]
    draws: list[tuple[str, list[int]]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run in which no socket may be bound, and every draw of noise looks at the ledger."""
    draws: list[tuple[str, list[int]]] = []
    protect = Mechanism.protect

    def watched(mechanism: Mechanism, site: int, *rest: Any) -> Any:
        draws.append((SITES[site], rounds_of(place, SITES[site])))
        return protect(mechanism, site, *rest)

    def bind(*_: object) -> None:
        raise AssertionError("a port was opened")

    place = settle(tmp_path_factory.mktemp("promises") / "place")
    before = {name: _content(place.dataset(name)) for name in SITES}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "bind", bind)
        patch.setattr(socket.socket, "listen", bind)
        patch.setattr(Mechanism, "protect", watched)
        with pytest.raises(AssertionError, match="a port"), socket.socket() as one:
            one.bind(("127.0.0.1", 0))
        conduct(LocalConsortium(place).centre())
    assert all(rounds_of(place, name) for name in SITES)
    changed = [name for name in SITES if _content(place.dataset(name)) != before[name]]
    return Run(place, changed, draws)


def _pieces(path: Path) -> list[bytes]:
    """Pieces of a file that are not a few values again and again."""
    data = path.read_bytes()
    pieces = [data[at : at + PIECE] for at in range(256, len(data) - PIECE, 37)]
    return [piece for piece in pieces if len(set(piece)) > 8]


def test_the_data_sets_are_left_as_they_were_and_no_port_is_opened(finished: Run) -> None:
    assert finished.changed == []


def test_a_round_is_in_the_ledger_before_its_noise_is_drawn(finished: Run) -> None:
    for name in SITES:
        held = [rounds for site, rounds in finished.draws if site == name]
        assert held == [[1], [1, 2], [1, 2, 3]]


def test_nobody_is_named_where_others_or_a_board_can_read(finished: Run) -> None:
    told = _told(finished.place)
    assert len(told) > 2 * len(SITES)
    names = [(path, name) for path, data in told.items() for name in PERSONS if name in data]
    assert names == []


def test_no_piece_of_a_scan_is_where_others_can_read(finished: Run) -> None:
    place = finished.place
    everything = b"".join(_told(place).values())
    folders = [place.site(name) / CACHE for name in SITES] + [place.dataset(n) for n in SITES]
    images = [path for path in _files(*folders) if path.suffix in (".npy", ".gz")]
    assert {path.suffix for path in images} == {".npy", ".gz"}
    for path in images:
        pieces = _pieces(path)
        assert pieces, path
        assert not any(piece in everything for piece in pieces), path
        planted = everything[:1000] + pieces[-1] + everything[1000:]
        assert any(piece in planted for piece in pieces), "a search that can find nothing"
