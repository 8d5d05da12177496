"""One Prefect server for all tests of this folder that need one."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from tests.support.local_consortium import build
from tests.support.office import Office
from tests.support.prefect_server import Server, prefect_server


@pytest.fixture(scope="package")  # its loops take a tenth of a core, as long as it is there
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real server on the loopback, with a home and database of its own."""
    with prefect_server(tmp_path_factory.mktemp("prefect")) as started:
        yield started


@pytest.fixture
def office(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Office]:
    monkeypatch.setenv("PREFECT_API_URL", server.url)
    with temporary_settings({PREFECT_API_URL: server.url}):
        yield Office(build(tmp_path / "place"), server)
