"""A hostile Prefect API: in front of a real server, it forwards requests and alters answers."""

import base64
import json
import pickle
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.support.prefect_server import Server, free_port

Tamper = Callable[[str, Any], Any]
"""Function from the request's path and the answer's JSON to the altered answer."""


@dataclass
class Liar:
    """A hostile API.

    Parameters
    ----------
    url : str
    tamper : callable
    asked : list of (str, bytes)
        Path and body of every request.
    """

    url: str
    tamper: Tamper
    asked: list[tuple[str, bytes]] = field(default_factory=list)
    lies: int = 0

    def heard(self) -> bytes:
        """Return everything that was sent here."""
        return b"\n".join(path.encode() + b" " + body for path, body in self.asked)


@contextmanager
def hostile_prefect(server: Server, tamper: Tamper) -> Iterator[Liar]:
    """Answer as the server would, but for the tampering."""
    port = free_port()
    liar = Liar(f"http://127.0.0.1:{port}/api", tamper)
    with httpx.Client(base_url=server.url.removesuffix("/api"), timeout=30) as real:

        def forward(request: Request, body: bytes) -> Response:
            path = request.url.path.removeprefix("/api")
            liar.asked.append((f"{path}?{request.url.query}", body))
            own = {"host", "content-length", "accept-encoding", "connection"}
            headers = {k: v for k, v in request.headers.items() if k not in own}
            address = f"{request.url.path}?{request.url.query}"
            told = real.request(request.method, address, content=body, headers=headers)
            content = told.content
            if content:
                answer = json.loads(content)
                lie = tamper(path, json.loads(content))
                liar.lies += lie != answer
                content = json.dumps(lie).encode()
            return Response(content, told.status_code, media_type="application/json")

        async def answer(request: Request) -> Response:
            from anyio.to_thread import run_sync

            return await run_sync(forward, request, await request.body())

        methods = ["GET", "POST", "PATCH", "PUT", "DELETE"]
        app = Starlette(routes=[Route("/{path:path}", answer, methods=methods)])
        config = uvicorn.Config(app, "127.0.0.1", port, log_level="critical", ws="none")
        host = uvicorn.Server(config)
        thread = threading.Thread(target=host.run, daemon=True)
        thread.start()
        while not host.started:
            time.sleep(0.01)
        try:
            yield liar
        finally:
            host.should_exit = True
            thread.join(10)


def everywhere(change: Callable[[dict[str, Any]], None]) -> Tamper:
    """Alter every object of an answer, however deep."""

    def tamper(_: str, answer: Any) -> Any:
        if isinstance(answer, dict):
            change(answer)
        for part in answer.values() if isinstance(answer, dict) else answer or ():
            if isinstance(part, dict | list):
                tamper(_, part)
        return answer

    return lambda path, answer: tamper(path, answer) if isinstance(answer, dict | list) else answer


class Evil:
    """An object whose unpickling makes a file."""

    def __init__(self, canary: Path) -> None:
        self.canary = str(canary)

    def __reduce__(self) -> tuple[Any, ...]:
        return subprocess.check_call, (["/usr/bin/touch", self.canary],)


def plant_result(file: Path, canary: Path) -> dict[str, Any]:
    """Write a pickled result in a public folder; return a state's data that points to it."""
    metadata = {"storage_key": str(file), "serializer": {"type": "pickle"}}
    pickled = base64.encodebytes(pickle.dumps(Evil(canary))).decode()
    file.write_text(json.dumps({"metadata": metadata, "result": pickled}))
    return metadata


def finished_with(data: dict[str, Any], honest: list[int] | None = None) -> Tamper:
    """Report that a run whose state is to be set is finished and has a result.

    ``honest`` contains the number of honest reports before that; it may be changed on the way.
    """
    left = [0] if honest is None else honest
    state = {"id": str(uuid.uuid4()), "type": "COMPLETED", "name": "Completed", "data": data}
    rejected = {
        "state": {**state, "timestamp": "2026-01-01T00:00:00Z"},
        "status": "REJECT",
        "details": {"type": "reject_details", "reason": "finished"},
    }

    def tamper(path: str, answer: Any) -> Any:
        if not path.endswith("/set_state"):
            return answer
        left[0] -= 1
        return answer if left[0] >= 0 else rejected

    return tamper
