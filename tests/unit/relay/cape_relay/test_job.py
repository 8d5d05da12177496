"""What a platform is given: read by the platform itself in ``make long``, looked at here."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from cape_relay import RelayError
from cape_relay.job import Job, write_neuroflame, write_nvflare, write_vantage6

JOB = Job("rest", ("north", "east"), 2, ("runs/rest-",), "runs/rest-*/end", 2.0, 24.0)


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_job_for_nvflare_names_its_sites_and_no_folder_of_theirs(tmp_path: Path) -> None:
    write_nvflare(JOB, tmp_path / "job")
    meta = read(tmp_path / "job/meta.json")
    assert meta["deploy_map"] == {"hub": ["server"], "site": ["north", "east"]}
    assert meta["min_clients"] == 2
    hub = read(tmp_path / "job/hub/config/config_fed_server.json")["workflows"][0]
    assert hub["args"] == {
        "only": ["runs/rest-"], "last": "runs/rest-*/end", "wait": 2.0, "hours": 24.0,
    }  # fmt: skip
    (executor,) = read(tmp_path / "job/site/config/config_fed_client.json")["executors"]
    assert executor["tasks"] == ["sync"]
    assert executor["executor"]["args"] == {"only": ["runs/rest-"]}
    code = {f"{app}/custom/cape_relay/{name}.py" for app in ("hub", "site")
            for name in ("__init__", "folder", "sync", "flare")}  # fmt: skip
    assert {name for name in files(tmp_path / "job") if name.endswith(".py")} == code


def test_the_code_of_a_job_needs_nothing_that_is_not_in_it(tmp_path: Path) -> None:
    write_nvflare(JOB, tmp_path / "job")
    code = tmp_path / "job/site/custom/cape_relay"
    own = {f"cape_relay.{path.stem}" for path in code.glob("*.py")}
    lines = [line for path in code.glob("*.py") for line in path.read_text().splitlines()]
    imported = {line.split()[1] for line in lines if line.startswith("from cape_relay")}
    assert imported <= own | {"cape_relay"}


def test_who_has_the_relay_installed_is_sent_no_code(tmp_path: Path) -> None:
    write_nvflare(JOB, tmp_path / "job", code=False)
    assert not any(name.endswith(".py") for name in files(tmp_path / "job"))


def test_a_task_for_vantage6_has_its_image_beside_it(tmp_path: Path) -> None:
    write_vantage6(replace(JOB, wait=60.0), tmp_path / "job")
    task = read(tmp_path / "job/task.json")
    assert task["method"] == "central"
    assert task["kwargs"]["wait"] == 60.0
    assert "cape_relay/vantage.py" in files(tmp_path / "job")
    assert "PKG_NAME=cape_relay.vantage" in (tmp_path / "job/Dockerfile").read_text()


def test_nothing_is_written_over(tmp_path: Path) -> None:
    for write in (write_nvflare, write_vantage6, write_neuroflame):
        with pytest.raises(RelayError, match="exists already"):
            write(JOB, tmp_path)
    assert files(tmp_path) == set()
