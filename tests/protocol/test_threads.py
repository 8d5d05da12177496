"""What agents do in threads: data and page in their own, persons two at a time."""

import ast
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import matplotlib  # noqa: F401 - builds some at its import, in which threads wait for each other
import pytest

from site_agent.config import SiteConfig
from site_agent.loading.progress import in_thread
from site_agent.page.updater import PageUpdater
from tests.support.forgery import settle
from tests.support.local_consortium import NOON, SITES, LocalConsortium, Ticks, conduct


@dataclass
class Builder:
    """Builds syntax trees, and notes which threads asked for one."""

    asked: list[str]

    def __post_init__(self) -> None:
        self.build = ast.parse

    def __call__(self, *words: object, **more: object) -> object:
        here = threading.current_thread()
        if here is not threading.main_thread():
            self.asked.append(here.name)
        return self.build(*words, **more)  # type: ignore[call-overload]


class RealTime(Ticks):
    """Time in which threads come along, too."""

    def pause(self, seconds: float) -> None:
        super().pause(seconds)
        time.sleep(0.005)


def test_no_thread_of_an_agent_builds_a_syntax_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to CPython 3.11.7 one of two that are built at a time may fail (gh-106905)."""
    place = settle(tmp_path / "place")
    for name in SITES:
        config = SiteConfig.load(place.site(name))
        config.model_copy(update={"workers": 2}).save(place.site(name))
    asked: list[str] = []
    monkeypatch.setattr(ast, "parse", Builder(asked))
    local = LocalConsortium(place, drive=in_thread)
    local.ticks = RealTime()
    clock, trouble = local.ticks.clock(), list[str]()
    page = PageUpdater(place.site("north"), clock, lambda: NOON, trouble.append, in_thread)

    def others() -> None:
        local.pump()
        page.look(object())

    local.ticks.others = others
    conduct(local.centre())
    assert (place.site("north") / "site.html").exists(), trouble
    assert list(place.site("north").glob("**/*.npy")), "nothing was cached"
    assert asked == []
