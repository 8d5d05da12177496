"""Cores and memory are those of the machine, or of a container that may use less."""

import os
from pathlib import Path

import pytest

from site_agent.machine import usable_cores, usable_memory


def test_a_container_may_use_less_than_its_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    quota, group = tmp_path / "cpu.max", tmp_path / "memory.max"
    monkeypatch.setattr("site_agent.machine._QUOTA", quota)
    monkeypatch.setattr("site_agent.machine._GROUPS", (group,))
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert (usable_cores(), usable_memory()) == (8, machine)  # a kernel without such files
    for text, cores in (("300000 100000", 3), ("50000 100000", 1), ("max 100000", 8)):
        quota.write_text(text + "\n")
        assert usable_cores() == cores
    for text, memory in (("1000000000", 10**9), ("max", machine), ("9223372036854771712", machine)):
        group.write_text(text + "\n")
        assert usable_memory() == memory
