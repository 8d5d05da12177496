"""The inbox in a real browser: a study is decided by hand, and other pages can do nothing."""

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.membership.keys import load_identity
from site_agent.approval.approval import approvals
from site_agent.config import SiteConfig
from site_agent.data.people import read_left_out
from site_agent.layout import DECLINED
from tests.support.browser import browser, find_browser
from tests.support.inbox_client import receive_study
from tests.support.membership_files import PLAIN, give_scans, papers
from tests.support.patience import PATIENCE

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_browser() is None, reason="needs a browser of Chromium's family"),
]
EVIL = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>"
HOSTS = (
    "MAP rebound.example 127.0.0.1, MAP evil.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
)


class _Attacker(ThreadingHTTPServer):
    """Another program on this machine, whose pages the browser opens; it keeps what it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self.page = ""
        self.cookies: list[str] = []

    @property
    def port(self) -> int:
        """Its port."""
        return int(self.server_address[1])


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer with the page, and keep the cookies."""
        server: Any = self.server
        server.cookies.append(self.headers.get("Cookie", ""))
        body = server.page.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """Answer as to GET."""
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def _attacker() -> Iterator[_Attacker]:
    with _Attacker() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def place(tmp_path: Path) -> DemoFolders:
    found, _ = papers(tmp_path, f"title: {json.dumps(EVIL)}\n{PLAIN}")
    give_scans(found)
    receive_study(found)
    return found


@contextmanager
def _served(folder: Path, *options: str) -> Iterator[str]:
    command = [sys.executable, "-m", "site_agent", "serve", "-f", str(folder), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            lines = iter(running.stdout.readline, "")
            yield next(line.split()[1] for line in lines if line.startswith("Open http"))
        finally:
            running.kill()


def _enter(tab: Any, address: str) -> str:
    """Open the printed address, and return the inbox's."""
    tab.send("Page.navigate", url=address)  # a page that leads on at once
    tab.wait("document.title.startsWith('Decisions')")
    base = address.split("?")[0]
    assert tab.run("location.href") == base  # without the token
    assert tab.run("document.cookie") == ""  # no script can read it
    return base


def _press(tab: Any, what: str, then: str) -> None:
    """Press what a selector finds, and wait for the page with a heading that begins so."""
    tab.run(f"window.left = 1, setTimeout(() => document.querySelector({what!r}).click()), 0")
    tab.wait("window.left !== 1")
    tab.wait(f"document.querySelector('h1')?.textContent.startsWith({then!r})")
    tab.wait("document.readyState === 'complete'")


def test_a_data_manager_decides_by_hand(place: DemoFolders) -> None:
    folder = place.site("east")
    title = EVIL[:20]
    with _served(folder) as address, browser(hosts=HOSTS) as tab:
        base = _enter(tab, address)
        _press(tab, "a[href*='/study/']", title)
        tab.run("setTimeout(() => document.querySelector('form[action$=check] button').click()), 0")
        tab.wait("document.querySelector('form[action$=confirm]') !== null", PATIENCE)
        tab.run("document.querySelector('textarea').value = 'The board meets in May.', 0")
        _press(tab, "form[action$=note] button", title)
        tab.wait("document.querySelector('textarea')?.value === 'The board meets in May.'")
        tab.run("document.querySelector('#until').value = '2030-06-30', 0")
        _press(tab, "form[action$=confirm] button", "Approve this study")
        assert approvals(folder, load_identity(folder)) == []
        _press(tab, "form[action$=approve] button", "Done")
        assert "Approved: small" in tab.run("document.body.innerText")
        (approval,) = approvals(folder, load_identity(folder))
        assert str(approval.terms.until) == "2030-06-30"
        tab.visit(f"{base}left-out")
        tab.run("document.querySelector('#participant').value = 'sub-002', 0")
        tab.run(f"document.querySelector('#reason').value = {json.dumps(EVIL)}, 0")
        _press(tab, "form[action$=add] button", "Left-out")
        tab.wait("document.querySelector('tbody') !== null")
        table = SiteConfig.load(folder).left_out
        assert table is not None
        assert read_left_out(table) == {"002": EVIL}
        _press(tab, "form[action$=return] button", "Let 002 take part again?")
        _press(tab, "form[action$=remove] button", "Done")
        assert read_left_out(table) == {}
        tab.visit(f"{base}names")
        for field, value in {"column": "diagnosis", "here": "Dx", "levels": "SCZ = 1"}.items():
            tab.run(f"document.querySelector('#{field}').value = {value!r}, 0")
        _press(tab, "form[action$=set] button", "Names")
        tab.wait("document.querySelector('tbody') !== null")
        assert SiteConfig.load(folder).aliases["diagnosis"].column == "Dx"
        for page in ("", "budget", "ledger", "agent", "left-out", "names"):
            tab.visit(base + page)
            assert tab.said == [], page
            assert "owned" not in tab.run("document.title")
            own = [each for each in tab.asked if not each.startswith(("data:", base))]
            assert own == []
        tab.visit(f"{base}withdraw/small")
        _press(tab, "button.grave", "Done")
        assert approvals(folder, load_identity(folder)) == []


def test_other_pages_of_the_browser_can_do_nothing(place: DemoFolders) -> None:
    folder = place.site("east")
    with _served(folder) as address, _attacker() as attacker, browser(hosts=HOSTS) as tab:
        base = _enter(tab, address)
        port = int(re.findall(r":(\d+)/", base)[0])
        study = tab.run("document.querySelector(\"a[href*='/study/']\").href")
        # By another name of this machine, with the whole address known.
        rebound = base.replace("127.0.0.1", "rebound.example")
        tab.visit(rebound)
        assert tab.run("document.body.innerText").strip() == "This address is not served here."
        stolen = f"fetch({rebound!r}).then((r) => r.text(), (e) => String(e))"
        assert "Failed to fetch" in tab.run(stolen)  # and that page may run nothing
        # By a form, a frame, a picture, a script and a link of another site, or another port.
        refused = "document.body?.innerText.trim() === 'The request comes from another page.'"
        for host in ("evil.example", "127.0.0.1"):
            attacker.page = (
                f"<title>page</title><form method=post action={study}/note>"
                "<input name=note value=owned></form>"
                f"<iframe src={base}></iframe><img src={base}style.css>"
                f"<a href={base}>link</a>"
            )
            here = f"http://{host}:{attacker.port}/"
            tab.visit(here)
            tab.wait("document.title === 'page'")
            reach = (
                f"fetch({base!r}, {{credentials: 'include'}})"
                ".then((r) => r.text(), (e) => 'stopped')"
            )
            assert tab.run(reach) == "stopped"
            sent = (
                f"fetch('{study}/note', {{method: 'POST', mode: 'no-cors', credentials: 'include',"
                " body: new URLSearchParams({note: 'owned'})})"
                ".then((r) => r.type, (e) => 'stopped')"
            )
            assert tab.run(sent) == "stopped"  # the answer forbids other pages to use it
            tab.run("setTimeout(() => document.querySelector('form').submit()), 0")
            tab.wait(refused)
            tab.visit(here)
            tab.run("setTimeout(() => document.querySelector('a').click()), 0")
            tab.wait(refused)
        assert not (folder / "notes.json").exists()
        # The cookie goes to no other program of this machine, since none knows its path.
        assert attacker.cookies
        assert set(attacker.cookies) == {""}
        assert port != attacker.port
        tab.visit(base)
        assert tab.run("document.title").startswith("Decisions")


def test_a_page_of_another_port_of_this_machine_can_not_frame_the_inbox(
    place: DemoFolders,
) -> None:
    folder = place.site("east")
    with _served(folder) as address, _attacker() as attacker, browser(hosts=HOSTS) as tab:
        base = _enter(tab, address)
        attacker.page = f"<title>page</title><iframe src={base}left-out></iframe>"
        tab.visit(f"http://127.0.0.1:{attacker.port}/")
        tab.wait("document.title === 'page'")
        (child,) = tab.send("Page.getFrameTree")["frameTree"]["childFrames"]
        assert child["frame"]["unreachableUrl"] == f"{base}left-out"  # the browser's own error


def test_a_page_of_an_inbox_that_ended_decides_nothing_in_the_next_one(place: DemoFolders) -> None:
    folder = place.site("east")
    with browser(hosts=HOSTS) as tab:
        with _served(folder) as address:
            base = _enter(tab, address)
            study = tab.run("document.querySelector(\"a[href*='/study/']\").href")
            tab.visit(f"{study}/decline")
        port = re.findall(r":(\d+)/", base)[0]
        with _served(folder, "--port", port) as address:
            assert address.split("?")[0] != base
            tab.run("setTimeout(() => document.querySelector('button.grave').click()), 0")
            tab.wait("document.body.innerText.trim() === 'There is nothing here.'")
            assert not (folder / DECLINED).exists()
