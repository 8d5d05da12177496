"""Every kind of exchange, with its server."""

import importlib.util
from collections.abc import Iterator

import pytest

from tests.support.exchange_servers import SSHD, BucketServer, FileServer
from tests.support.venues import BucketVenue, DirectoryVenue, FileVenue, Venue


@pytest.fixture(scope="session")
def bucket_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BucketServer]:
    missing = [
        name for name in ("aiobotocore", "moto", "boto3") if not importlib.util.find_spec(name)
    ]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: no S3 server to test against")
    server = BucketServer(tmp_path_factory.mktemp("moto"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def file_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileServer]:
    if not SSHD.exists() or not importlib.util.find_spec("paramiko"):
        pytest.skip("sshd (Debian: openssh-server) or paramiko not installed: no SFTP server")
    server = FileServer(tmp_path_factory.mktemp("sshd"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def venue(kind: str, request: pytest.FixtureRequest) -> Venue:
    """A fresh place of a kind; tests are parametrized by ``kind``."""
    if kind == "memory":
        return Venue()
    folder = request.getfixturevalue("tmp_path")
    if kind == "directory":
        return DirectoryVenue(folder / "place")
    if kind == "sftp":
        return FileVenue(request.getfixturevalue("file_server"), folder / "place", folder)
    return BucketVenue(request.getfixturevalue("bucket_server"), f"trial/{folder.name}", folder)
