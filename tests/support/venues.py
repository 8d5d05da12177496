"""Places where an exchange can be, each with what its operator can do behind the parties' backs."""

from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from consortium.exchange import DirectoryExchange, Exchange, MemoryExchange, open_exchange
from consortium.exchange.credentials import S3Credentials, SftpCredentials, load_credentials
from tests.support.exchange_servers import BucketServer, FileServer, Server


class Venue:
    """A place in memory; every party has the same object."""

    server: Server | None = None

    def __init__(self) -> None:
        self._memory = MemoryExchange()

    def open(self, patience: float = 10.0) -> Exchange:
        """Connect as another party."""
        return self._memory

    def fill(self, prefix: str, count: int) -> None:
        """Put ``prefix/n0``, ``prefix/n1`` and so on."""
        for number in range(count):
            self._memory.put(f"{prefix}/n{number}", b"")


class DirectoryVenue(Venue):
    """A directory."""

    credentials: Path | None = None

    def __init__(self, root: Path) -> None:
        root.mkdir(exist_ok=True)
        self.root, self.url = root, str(root)

    def open(self, patience: float = 10.0) -> Exchange:
        return DirectoryExchange(self.root)

    def fill(self, prefix: str, count: int) -> None:
        (self.root / prefix).mkdir(parents=True)
        for number in range(count):
            (self.root / prefix / f"n{number}").touch()


class FileVenue(DirectoryVenue):
    """A directory of an SFTP server."""

    def __init__(self, server: FileServer, root: Path, folder: Path) -> None:
        self.server, self.root, self.url = server, root, server.place(root)
        self.credentials = server.credentials(folder)
        open_exchange(self.url, self.credentials)  # makes the directory

    def open(self, patience: float = 10.0) -> Exchange:
        from consortium.exchange.sftp import Address, SftpExchange

        user, entry = (
            self.url[7:].split("@")[0],
            load_credentials(self.credentials, SftpCredentials),
        )
        address = Address(user, "127.0.0.1", self.server.port)
        return SftpExchange(address, str(self.root), entry, patience)


class BucketVenue(Venue):
    """A prefix of a bucket."""

    def __init__(self, server: BucketServer, prefix: str, folder: Path) -> None:
        self.server, self.prefix = server, prefix
        self.url = f"s3://{server.bucket}/{prefix}"
        self.credentials = server.credentials(folder)

    def open(self, patience: float = 10.0) -> Exchange:
        from consortium.exchange.s3 import S3Exchange

        entry = load_credentials(self.credentials, S3Credentials)
        return S3Exchange(self.server.bucket, self.prefix, entry, patience)

    def fill(self, prefix: str, count: int) -> None:
        query = {"bucket": self.server.bucket, "prefix": f"{self.prefix}/{prefix}", "count": count}
        urlopen(Request(f"{self.server.url}/fill?{urlencode(query)}", method="PUT")).close()
