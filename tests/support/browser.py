"""A real browser without a window and without a network, driven by its own protocol."""

import base64
import json
import shutil
import subprocess
import time
import urllib.request
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from websockets.sync.client import connect

from tests.support.patience import PATIENCE

NAMES = "chromium", "chromium-browser", "google-chrome", "chrome"
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--no-first-run",
    "--disable-background-networking",
    "--hide-scrollbars",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--remote-debugging-port=0",
)
NOWHERE = "MAP * ~NOTFOUND"
"""Rule of the browser's resolver by which no host is found."""


def find_browser():
    """Return the path of a browser of Chromium's family, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Tab:
    """One page of it."""

    def __init__(self, socket, offline=True):
        self._socket, self._numbers, self.asked, self.said = socket, count(1), [], []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        if offline:
            self.send(
                "Network.emulateNetworkConditions",
                offline=True,
                latency=0,
                downloadThroughput=0,
                uploadThroughput=0,
            )

    def send(self, method, **parameters):
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            heard = json.loads(self._socket.recv(timeout=90))
            self._note(heard)
            if heard.get("id") == number:
                assert "error" not in heard, heard
                return heard["result"]

    def _note(self, heard):
        told = heard.get("params", {})
        if heard.get("method") == "Network.requestWillBeSent":
            self.asked.append(told["request"]["url"][:200])
        if heard.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.said.append(json.dumps(told)[:500])

    def run(self, script):
        """Return the value of an expression, which may be a promise."""
        found = self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def open(self, path, fragment=""):
        """Open a file; returns the seconds until it was loaded and drawn."""
        return self.visit(f"{Path(path).as_uri()}{fragment}")

    def visit(self, address):
        """Open an address, as `open` does."""
        self.asked.clear()
        self.said.clear()
        start = time.perf_counter()
        self.send("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")
        self.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        return time.perf_counter() - start

    def wait(self, condition, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while not self._holds(condition):
            assert time.monotonic() < end, condition
            time.sleep(0.02)

    def _holds(self, condition):
        """Return whether a condition holds; between two pages there is nothing to ask."""
        try:
            return self.run(condition)
        except AssertionError as error:
            if "navigated" in str(error) or "context" in str(error):
                return False
            raise

    def press(self, key, code=0):
        """Press a key as a user does."""
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text
            )

    def picture(self, path, width=1200, height=900):
        """Take a picture of the window."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        time.sleep(0.5)
        data = self.send("Page.captureScreenshot", format="png")["data"]
        Path(path).write_bytes(base64.b64decode(data))


@contextmanager
def browser(width=1200, height=900, hosts=NOWHERE):
    """Start a browser, and end it; with other rules for hosts it is not offline."""
    program = find_browser()
    assert program is not None
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        window = [f"--user-data-dir={profile}", f"--window-size={width},{height}"]
        rules = f"--host-resolver-rules={hosts}"
        command = [program, *FLAGS, rules, *window, "about:blank"]
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with connect(_address(Path(profile)), max_size=1 << 28) as socket:
                yield Tab(socket, offline=hosts == NOWHERE)
        finally:
            running.terminate()
            running.wait(timeout=20)


def _address(profile):
    """Return the address at which the first page listens."""
    told = profile / "DevToolsActivePort"
    end = time.monotonic() + 30
    while not (told.exists() and len(told.read_text().splitlines()) == 2):
        assert time.monotonic() < end, "the browser does not start"
        time.sleep(0.05)
    port = told.read_text().splitlines()[0]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=10) as answer:
        pages = [each for each in json.load(answer) if each["type"] == "page"]
    return pages[0]["webSocketDebuggerUrl"]
