"""What holds for every test."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

# A machine that does something else at the same time is no counterexample.
# Twenty examples a property keep the whole suite within minutes; HYPOTHESIS_PROFILE=thorough has
# 500.
settings.register_profile("any-machine", deadline=None, max_examples=20)
settings.register_profile("thorough", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "any-machine"))

GROUPS = {
    "prefect": r"tests/unit/flows/test_(deployment|flow_run|hostile_prefect|prepare|public)\.py",
    "s3": r"tests/contract/test_exchanges.*(\[s3|bucket|hostile_store)",
    "sftp": r"tests/contract/test_exchanges.*(\[sftp|_sftp_|private_key|silence_at_the_door)",
}
"""Tests that share a server which takes long to start: one worker has them all."""
WHOLE = re.compile(
    r"(tests/(end_to_end/test_(atlas|feature|fusion)_study|unit/report/test_(page|features)"
    r"|contract/test_sensitivity_search|unit/algorithms/test_group_ica)\.py)"
)
"""Files whose tests share what takes long to make: one worker has each."""


@pytest.fixture(scope="session", autouse=True)
def bulks_are_found_once() -> Iterator[None]:
    """Find the bulk of a spectrum once: hundreds of tests play a run of the same few studies.

    The replays with which it is found begin at a fixed seed, so that what they tell is a function
    of the spectrum.
    """
    from consortium.algorithms.pca import result
    from consortium.kernels.bulk import Bulk

    known: dict[tuple[bytes, float, int], Bulk] = {}
    find = result.find_bulk

    def find_once(
        values: NDArray[np.float64], deviation: float, samples: int, generator: np.random.Generator
    ) -> Bulk:
        key = values.tobytes(), deviation, samples
        if key not in known:
            known[key] = find(values, deviation, samples, generator)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result, "find_bulk", find_once)
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Deal tests out one by one, but for the groups and some files.

    The marker ``xdist_group`` would do; pytest 9.2 has no place for what pytest-xdist 3.8 makes of
    it.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByServer(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            groups = (group for group, ids in GROUPS.items() if re.match(ids, nodeid))
            whole = WHOLE.match(nodeid)
            return next(groups, whole[1] if whole else nodeid)

    return ByServer(config, log)
