"""How often an agent looks at what is approved."""

from pathlib import Path

import pytest

from consortium.engine.clock import Clock
from site_agent.approval.approval import Approval
from site_agent.loading.progress import at_once
from site_agent.run.preload import Preload


@pytest.mark.parametrize(("takes", "share"), [(0.0, 0.0), (0.03, 0.007), (1.0, 0.011)])
def test_looking_takes_a_hundredth_of_the_time_at_most(
    takes: float, share: float, tmp_path: Path
) -> None:
    time, looks = 0.0, 0

    def slowly() -> list[Approval]:
        nonlocal time, looks
        time, looks = time + takes, looks + 1
        return []

    def never(_: Approval) -> None:
        raise AssertionError

    ahead = Preload(tmp_path, never, at_once, Clock(now=lambda: time), print)  # type: ignore[arg-type]
    while time < 2000:
        ahead.look(slowly)
        time += 0.25
    assert looks >= 2000 * min(1 / 5.5, 0.009 / max(takes, 1e-9))
    assert looks * takes <= share * 2000 + takes
