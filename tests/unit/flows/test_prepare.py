"""Scans prepared ahead on a Prefect task runner, and runners that are not there."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from consortium.errors import ConfigurationError, ConsortiumError, DataError
from flows.prepare import prepare_all
from tests.support.prefect_server import Server


def leave(folder: Path, number: int) -> None:
    """Work that shows where it was done."""
    if number == 7:
        raise DataError("sub-7.nii.gz is cut short. Copy it again.")
    (folder / f"{number}").write_text("prepared")


@pytest.fixture(autouse=True)
def owners_prefect(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PREFECT_API_URL", server.url)
    with temporary_settings({PREFECT_API_URL: server.url}):
        yield


def test_every_person_is_prepared_once_and_trouble_is_one_sentence(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    prepare_all(partial(leave, out), 3, "threads", {"max_workers": 2}, tmp_path / "home")
    assert sorted(path.name for path in out.iterdir()) == ["0", "1", "2"]
    with pytest.raises(ConsortiumError, match=r"sub-7\.nii\.gz is cut short"):
        prepare_all(partial(leave, out), 9, "threads", {}, tmp_path / "home")
    assert (out / "8").exists()  # the others are prepared all the same


@pytest.mark.parametrize(
    ("runner", "options", "told"),
    [
        ("dask2", {}, "dask2 is not installed here"),
        ("prefect.task_runners:Nothing", {}, "is not installed here"),
        ("threads", {"wings": 2}, "field 'task_runner_options'"),
    ],
)
def test_a_runner_that_is_not_there_is_told_in_one_sentence(
    tmp_path: Path, runner: str, options: dict[str, int], told: str
) -> None:
    with pytest.raises(ConfigurationError, match=told):
        prepare_all(partial(leave, tmp_path), 1, runner, options, tmp_path / "home")


def test_prefect_records_no_number_of_participants_as_a_parameter(
    tmp_path: Path, server: Server
) -> None:
    (tmp_path / "out").mkdir()
    prepare_all(partial(leave, tmp_path / "out"), 3, "threads", {}, tmp_path / "home")
    found = server.rows(
        "SELECT flow_run.parameters FROM flow_run JOIN flow ON flow.id = flow_run.flow_id "
        "WHERE flow.name = 'prepare-scans'"
    )
    assert {str(parameters) for (parameters,) in found} == {"{}"}
