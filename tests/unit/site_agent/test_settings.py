"""Two files are read again once they changed and stand still; nothing else counts meanwhile."""

from pathlib import Path

import pytest

from consortium.engine.clock import Clock
from consortium.errors import ConfigurationError
from site_agent.config import SiteConfig
from site_agent.policy.policy import Policy
from site_agent.settings import Settings, SettingsFiles


class _Time:
    now = 0.0


@pytest.fixture
def time() -> _Time:
    return _Time()


@pytest.fixture
def files(tmp_path: Path, time: _Time) -> SettingsFiles:
    SiteConfig(name="north", dataset=tmp_path, exchange="shared").save(tmp_path)
    Policy(fewest_sites=2).save(tmp_path)
    return SettingsFiles(tmp_path, Clock(now=lambda: time.now))


def test_what_did_not_change_is_the_same_object(files: SettingsFiles) -> None:
    assert files.look() is files.first
    assert files.look() is files.first


def test_a_change_counts_once_it_stands_still(
    tmp_path: Path, files: SettingsFiles, time: _Time
) -> None:
    (tmp_path / "policy.yaml").write_text("")  # whose defaults must not count
    assert files.look() is None
    time.now = 0.9
    Policy(fewest_sites=5).save(tmp_path)
    assert files.look() is None
    time.now = 1.8
    assert files.look() is None
    time.now = 2.0
    found = files.look()
    assert isinstance(found, Settings)
    assert found.policy.fewest_sites == 5
    assert files.look() is found


@pytest.mark.parametrize("name", ["site.yaml", "policy.yaml"])
def test_a_file_that_is_gone_leaves_no_defaults(
    tmp_path: Path, files: SettingsFiles, time: _Time, name: str
) -> None:
    (tmp_path / name).unlink()
    files.look()
    time.now = 2.0
    found = files.look()
    assert isinstance(found, ConfigurationError)
    assert name in str(found)


@pytest.mark.parametrize("field", ["name", "exchange", "credentials", "ledger"])
def test_what_all_runs_share_needs_a_new_agent(
    tmp_path: Path, files: SettingsFiles, time: _Time, field: str
) -> None:
    other = tmp_path / "other" if field in ("credentials", "ledger") else "south"
    files.first.config.model_copy(update={field: other}).save(tmp_path)
    files.look()
    time.now = 2.0
    assert f"field '{field}' has changed" in str(files.look())
