"""What one's own Prefect server keeps of a run that fails, at every level of logging."""

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prefect.logging.configuration import setup_logging
from prefect.logging.handlers import APILogHandler
from prefect.settings import PREFECT_API_URL, PREFECT_LOGGING_LEVEL, temporary_settings

from consortium.algorithms.base import Result
from consortium.engine.session import Round
from consortium.errors import ConsortiumError, SiteError
from consortium.study.plan import Plan
from flows.outputs import Outputs, PublishedTexts
from flows.prepare import prepare_all
from flows.study import StudyFlow
from tests.support.local_consortium import SITES, LocalConsortium, build
from tests.support.prefect_server import Server

SECRET = "/private/of/the/coordinator"
TOLD = ("Traceback", "flows/study.py", "site-packages", SECRET)


@pytest.fixture(autouse=True)
def own_prefect(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PREFECT_API_URL", server.url)
    level = logging.getLogger("prefect").level
    with temporary_settings({PREFECT_API_URL: server.url, PREFECT_LOGGING_LEVEL: "DEBUG"}):
        setup_logging()
        yield
    logging.getLogger("prefect").setLevel(level)


def _kept(server: Server, act: Callable[[], None], ends: type[Exception]) -> str:
    """Everything that the server wrote down while something failed."""
    began = server.now()
    with pytest.raises(ends):
        act()
    APILogHandler().flush()
    return server.written_since(began)


def _no_disk(_done: int, _all: int) -> None:
    raise OSError(28, "No space left on device", SECRET)


def _nothing(_plan: Plan, _rounds: list[Round], _result: Result) -> PublishedTexts:
    return PublishedTexts("")


def _fails(root: Path, *, absent: bool) -> None:
    local = LocalConsortium(build(root / "place"))
    if absent:
        local.absent = set(SITES)
        StudyFlow(local.centre(), Outputs(_nothing, lambda _done, _all: None)).run()
    StudyFlow(local.centre(), Outputs(_nothing, _no_disk)).run()


@pytest.mark.parametrize(
    ("absent", "ends", "said"),
    [
        (
            True,
            SiteError,
            f"absent. It was at opening the run, waiting for {', '.join(SITES)} (present)",
        ),
        (False, OSError, "software. It was at showing progress."),
    ],
)
def test_a_failing_study_is_told_by_its_kind_alone(
    absent: bool, ends: type[Exception], said: str, tmp_path: Path, server: Server
) -> None:
    began = server.now()
    kept = _kept(server, partial(_fails, tmp_path, absent=absent), ends)
    assert f"The study ended before its time: {said}" in kept
    if absent:
        events = server.events("consortium.site.awaited", since=began)
        assert json.loads(events["consortium.site.awaited"])["sites"] == list(SITES)
        assert str(tmp_path) not in str(events)
    for secret in (*TOLD, str(tmp_path)):
        assert secret not in kept, secret


def test_with_its_logs_a_failing_study_would_tell_paths(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_logs(more: dict[Any, Any]) -> AbstractContextManager[object]:
        return temporary_settings(more)

    monkeypatch.setattr("flows.study.without_logs", with_logs)
    kept = _kept(server, partial(_fails, tmp_path, absent=True), SiteError)
    assert "Traceback" in kept
    assert "flows/study.py" in kept


def test_the_first_map_and_a_link_stand_among_the_artifacts(tmp_path: Path, server: Server) -> None:
    local = LocalConsortium(build(tmp_path / "place"))
    shown = PublishedTexts(
        "summary", "data:image/webp;base64,UklGRg==", "https://results.example/r.html"
    )
    StudyFlow(local.centre(), Outputs(lambda *_: shown, lambda _done, _all: None)).run()
    kept = server.rows("SELECT key, type, data FROM artifact WHERE key LIKE '%-small'")
    artifacts = {key: (kind, str(data)) for key, kind, data in kept}
    assert artifacts["map-small"] == ("image", f'"{shown.picture}"')
    assert artifacts["privacy-small"] == ("markdown", '"summary"')
    assert shown.link in artifacts["report-small"][1]


def _break(_number: int) -> None:
    raise ValueError(SECRET)


def test_a_failing_preparation_is_told_to_its_owner_alone(tmp_path: Path, server: Server) -> None:
    prepare = partial(prepare_all, _break, 2, "threads", {}, tmp_path / "home")
    kept = _kept(server, prepare, ConsortiumError)
    assert "prepare" in kept
    for secret in TOLD:
        assert secret not in kept, secret
    with pytest.raises(ConsortiumError, match=f"ValueError: {SECRET}; this is a fault"):
        prepare()
