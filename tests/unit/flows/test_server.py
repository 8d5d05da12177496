"""The pinned server answers what Prefect's own command line asks."""

import httpx
import pytest

from tests.support.prefect_server import Server

FILTERS = ("flows", "flow_runs", "task_runs", "deployments", "work_pools", "artifacts", "limit")
LISTED = ("deployments", "flow_runs", "work_pools", "artifacts/latest", "flows", "automations")


@pytest.mark.parametrize("listed", LISTED)
def test_filters_that_are_null_are_no_filters(listed: str, server: Server) -> None:
    answer = httpx.post(f"{server.url}/{listed}/filter", json=dict.fromkeys(FILTERS))
    assert answer.status_code == 200, answer.text
    assert isinstance(answer.json(), list)
