"""A study over vantage6's own tools: its mock client carries what agents and centre say."""

import subprocess
from pathlib import Path

import pytest

from tests.long.platforms import (
    SITES,
    apart,
    around,
    centre_at_work,
    check_all_alike,
    python_with,
    write_job,
)

CARRY = """
import json, sys
import pandas as pd
from vantage6.algorithm.tools.mock_client import MockAlgorithmClient
task, organizations = json.load(open("job/task.json")), sys.argv[1].split(",")
data = [[{"database": pd.DataFrame()}] for _ in organizations]
client = MockAlgorithmClient(data, "cape_relay.vantage", organization_ids=organizations)
made = client.task.create(input_=task, organizations=organizations[:1])
print(client.wait_for_results(made["id"])[0])
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vantage6")
    return python_with("vantage6-algorithm-tools==4.15.2", folder, "CAPE_VANTAGE6_PYTHON")


def test_the_mock_client_carries_a_study_that_can_be_shown(python: Path, tmp_path: Path) -> None:
    place = apart(tmp_path / "place")
    job = write_job("vantage6", place, "--wait", "1")
    words = [str(python), "-c", CARRY, ",".join(["server", *SITES])]
    where = {"env": around(place.root) | {"PYTHONPATH": str(job)}, "cwd": place.root}
    with centre_at_work(place) as centre:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=900, check=False, **where
        )
        said, _ = centre.communicate(timeout=60)
    assert (done.returncode, centre.returncode) == (0, 0), (done.stderr[-3000:], said)
    print(done.stdout.splitlines()[-1])
    assert "relay: " in done.stdout
    check_all_alike(place)
