"""A browser's requests to a site's inbox, without a socket."""

import asyncio
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from shutil import copy
from typing import Any

from httpx import ASGITransport, AsyncClient, Cookies, Response

from consortium.coordinator.demo.prepare import DemoFolders
from site_agent.inbox.application import Inbox
from site_agent.inbox.guard import Door, Guard
from site_agent.layout import STUDIES
from tests.support.patience import PATIENCE

PORT = 8431
NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)


def receive_study(place: DemoFolders, site: str = "east") -> Path:
    """Copy the study's files to the folder for received studies, and return the folder."""
    folder = place.site(site)
    files = place.files
    (folder / STUDIES).mkdir(exist_ok=True)
    signature = files.study.with_name(f"{files.study.name}.sig")
    for path in (files.study, signature, files.roster):
        copy(path, folder / STUDIES)
    return folder


class Client:
    """A browser without a screen, which asks an application directly.

    Parameters
    ----------
    app : ASGI application
        Application that answers.
    origin : str
        Address of its host.
    """

    def __init__(self, app: Any, origin: str) -> None:
        self.app = app
        self._origin = origin
        self.cookies = Cookies()

    def request(self, method: str, path: str, **options: Any) -> Response:
        """Ask for something, with the cookies that were received, and follow redirects."""

        async def ask() -> Response:
            way = ASGITransport(self.app, raise_app_exceptions=False)
            client = AsyncClient(transport=way, base_url=self._origin, cookies=self.cookies)
            async with client:
                answer = await client.request(method, path, follow_redirects=True, **options)
            self.cookies = client.cookies
            return answer

        return asyncio.run(ask())

    def get(self, path: str, **options: Any) -> Response:
        """Ask for a page."""
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> Response:
        """Send a form."""
        return self.request("POST", path, **options)


class Visitor:
    """One browser and the inbox that it talks to."""

    def __init__(self, folder: Path, read_only: bool = False) -> None:
        self.addresses: list[str] = []
        self.door = Door(PORT, self.addresses.append, read_only)
        pages = Inbox(folder, lambda: NOW, self.door).application()
        self.routes: list[Any] = [*pages.routes]
        self.client = Client(Guard(pages, self.door), self.door.origin)
        self.door.renew()

    def enter(self) -> "Visitor":
        """Open the printed address, which begins a session."""
        assert self.client.get(self.addresses[-1]).status_code == 200
        return self

    def forms(self, **parts: str) -> list[str]:
        """Return the addresses of all forms of the application, with these parts in them."""
        paths = [each.path for each in self.routes if not {*each.methods} <= {"GET", "HEAD"}]
        return [path.removeprefix(self.door.base).format(**parts) for path in paths]

    @property
    def token(self) -> str:
        """Token of the session's forms."""
        return self.door.session(self.client.cookies[self.door.cookie]) or ""

    def get(self, path: str = "", **headers: str) -> Response:
        """Ask for a page."""
        return self.client.get(self.door.base + path, headers=headers)

    def post(self, path: str, /, **fields: str) -> Response:
        """Send a form as the inbox's own page does."""
        fields = {"token": self.token, **fields}
        return self.client.post(
            self.door.base + path, data=fields, headers={"Origin": self.door.origin}
        )

    def shown(self, path: str) -> str:
        """Return the digest that the forms of a page carry."""
        found = re.search(r'name="shown" value="([0-9a-f]{64})"', self.get(path).text)
        assert found is not None, path
        return found[1]

    def study(self) -> str:
        """Return the address of the first study on the page of decisions."""
        found = re.search(r"study/[0-9a-f]{16}", self.get().text)
        assert found is not None
        return found[0]

    def check(self) -> str:
        """Check the first study, and return its address."""
        study = self.study()
        assert self.post(f"{study}/check").status_code == 200
        until = time.monotonic() + PATIENCE
        while 'http-equiv="refresh"' in self.get(study).text:
            assert time.monotonic() < until
            time.sleep(0.05)
        return study
