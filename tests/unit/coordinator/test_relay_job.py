"""`consortium relay`: the job of a study, for a platform that is not installed here."""

import json
import sys
from pathlib import Path

import pytest

from tests.support.command_line import enter
from tests.support.local_consortium import STUDY


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.replace("BOOST", "exact").replace("DROPOUTS", "1"), encoding="utf-8")
    return path


def test_a_job_carries_the_messages_of_its_study_alone(study: Path, tmp_path: Path) -> None:
    said = enter("consortium", "relay", "nvflare", study, "--output", tmp_path / "job")
    assert (said.code, said.err) == (0, "")
    assert "CAPE_RELAY_FOLDER" in said.out
    meta = json.loads((tmp_path / "job/meta.json").read_text())
    assert meta["deploy_map"]["site"] == ["north", "east", "south", "west"]
    assert meta["min_clients"] == 3
    text = (tmp_path / "job/site/config/config_fed_client.json").read_text()
    (executor,) = json.loads(text)["executors"]
    assert executor["executor"]["args"]["only"] == ["runs/small-", "consent/small/", "ledgers/"]
    assert str(tmp_path) not in text


def test_the_platforms_names_of_sites_may_be_others(study: Path, tmp_path: Path) -> None:
    words = ("--clients", "a, b,c,d", "--installed", "--wait", "5")
    said = enter("consortium", "relay", "nvflare", study, "--output", tmp_path / "job", *words)
    assert said.code == 0
    meta = json.loads((tmp_path / "job/meta.json").read_text())
    assert meta["deploy_map"]["site"] == ["a", "b", "c", "d"]
    assert not (tmp_path / "job/site/custom").exists()


def test_parameters_for_neuroflame_count_the_coordinator_as_a_member(
    study: Path, tmp_path: Path
) -> None:
    said = enter("consortium", "relay", "neuroflame", study, "--output", tmp_path / "job")
    assert (said.code, said.err) == (0, "")
    assert "as its data" in said.out
    told = json.loads((tmp_path / "job/parameters.json").read_text())
    assert told == {
        "name": "small", "only": ["runs/small-", "consent/small/", "ledgers/"],
        "last": "runs/small-*/end", "wait": 2.0, "hours": 24.0, "least": 4,
        "coordinator": "coordinator",
    }  # fmt: skip


@pytest.mark.parametrize("clients", ["a,b,c", "a,b,c,c", "a,b,c,d,e"])
def test_another_number_of_names_is_refused(clients: str, study: Path, tmp_path: Path) -> None:
    words = ("--output", tmp_path / "job", "--clients", clients)
    said = enter("consortium", "relay", "nvflare", study, *words)
    assert said.code == 1
    assert "4 different names, one for each site" in said.err
    assert not (tmp_path / "job").exists()


def test_a_folder_that_is_there_stays_as_it_is(study: Path, tmp_path: Path) -> None:
    said = enter("consortium", "relay", "vantage6", study, "--output", tmp_path)
    assert said.code == 1
    assert "exists already" in said.err
    assert list(tmp_path.iterdir()) == [study]


def test_without_cape_relay_it_is_said_how_to_have_it(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cape_relay", None)
    said = enter("consortium", "relay", "nvflare", study, "--output", tmp_path / "job")
    assert said.code == 1
    assert 'pip install "cape-consortium[relay]"' in said.err
