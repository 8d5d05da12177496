"""What the coordinator's machine knows of its schedules: written, read, and refused if wrong."""

from datetime import date
from pathlib import Path

import pytest

from consortium.coordinator.deploy import (
    HOME,
    ScheduledStudy,
    load_scheduled,
    new_schedule,
    not_covered,
    save_scheduled,
    settings_folder,
)
from consortium.coordinator.run import RunFiles
from consortium.errors import ConfigurationError
from flows.deployment import check_schedule
from tests.support.local_consortium import SITES, STUDY
from tests.support.membership_files import PLAIN, consent, papers

PLACES = dict.fromkeys(("study", "roster", "exchange", "keys", "out"), "/some/where")


def record(**changes: str) -> ScheduledStudy:
    return ScheduledStudy(**{"name": "small", "cron": "0 3 1 * *", **PLACES, **changes})  # type: ignore[arg-type]


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    path = save_scheduled(tmp_path, record(timezone="Europe/Berlin"))
    assert path == tmp_path / "deployments" / "small.yaml"
    assert load_scheduled(tmp_path, "small") == record(timezone="Europe/Berlin")


@pytest.mark.parametrize(
    "name",
    ["../../x", "../deployments/small", "/etc/passwd", "", "Small", "small.yaml", "x\n", "x" * 64],
)
def test_a_name_that_is_none_is_refused_unread(tmp_path: Path, name: str) -> None:
    save_scheduled(tmp_path, record())
    with pytest.raises(ConfigurationError, match="A study's name must"):
        load_scheduled(tmp_path, name)


def test_an_unknown_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="'other' is not scheduled"):
        load_scheduled(tmp_path, "other")


@pytest.mark.parametrize(
    "text", ["", "- 1", "name: small", "name: small\nextra: 1", "\x00", "name: [", "name: other"]
)
def test_a_damaged_record_is_refused(tmp_path: Path, text: str) -> None:
    path = save_scheduled(tmp_path, record())
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="damaged"):
        load_scheduled(tmp_path, "small")


def test_a_record_under_another_name_is_refused(tmp_path: Path) -> None:
    save_scheduled(tmp_path, record()).rename(tmp_path / "deployments" / "other.yaml")
    with pytest.raises(ConfigurationError, match="of another study"):
        load_scheduled(tmp_path, "other")


def test_the_home_is_where_the_environment_says(tmp_path: Path) -> None:
    assert settings_folder({HOME: str(tmp_path)}) == tmp_path
    assert settings_folder({}).name == "cape-consortium"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"cron": "every day"}, "--cron 'every day'"),
        ({"cron": "61 * * * *"}, "--cron"),
        ({"cron": ""}, "--cron"),
        ({"cron": "R * * * *"}, "--cron"),
        ({"timezone": "Mars/Olympus"}, "--timezone 'Mars/Olympus'"),
    ],
)
def test_a_wrong_schedule_is_one_sentence(changes: dict[str, str], told: str) -> None:
    wrong = record(**changes)
    with pytest.raises(ConfigurationError) as caught:
        check_schedule(wrong.cron, wrong.timezone)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_right_schedule_is_kept() -> None:
    assert check_schedule(record().cron, record().timezone).cron == "0 3 1 * *"


@pytest.mark.parametrize("exchange", ["s3://bucket/prefix", "sftp://me@host/path"])
def test_an_exchange_that_is_no_directory_keeps_its_address(
    tmp_path: Path, exchange: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = STUDY.replace("BOOST", "exact").replace("DROPOUTS", "0")
    (tmp_path / "study.yaml").write_text(text)
    here = Path("study.yaml")
    made = new_schedule(
        RunFiles(here, Path("r"), exchange, Path("k"), Path("o"), Path("c")), "@daily"
    )
    assert made.name == "small"
    assert made.exchange == exchange
    assert (made.study, made.credentials) == (tmp_path / here, tmp_path / "c")
    assert made.files(made.out / "0001").exchange == exchange


@pytest.mark.parametrize(
    ("quorum", "approved", "opened"), [("", 3, False), ("quorum: 3\n", 3, True)]
)
def test_a_run_is_opened_when_as_many_sites_approved_as_it_may_start_with(
    quorum: str, approved: int, opened: bool, tmp_path: Path
) -> None:
    place, _ = papers(tmp_path, PLAIN + quorum)
    scheduled = new_schedule(place.files, "0 3 1 * *")
    consent(place, *SITES[: approved - 1])
    today = date(2026, 3, 1)
    assert len(not_covered(scheduled, today)) == len(SITES) - approved + 1
    consent(place, SITES[approved - 1])
    assert (not not_covered(scheduled, today)) is opened
