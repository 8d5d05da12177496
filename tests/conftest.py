"""What holds for every test."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
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
