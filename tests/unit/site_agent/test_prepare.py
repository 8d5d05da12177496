"""Scans that are prepared ahead, by a worker that stays: always those of the study as it is now."""

from datetime import date
from pathlib import Path

import pytest

from consortium.errors import ConfigurationError, StudyError
from consortium.membership.keys import load_identity
from consortium.membership.roster import read_roster
from consortium.membership.signed_study import sign_study
from site_agent.approval.withdrawal import take_back
from site_agent.config import SiteConfig
from site_agent.layout import CACHE
from site_agent.prepare import check_own_prefect, count_persons, prepare_person
from tests.support.local_consortium import build


def test_a_study_that_is_changed_and_signed_again_is_prepared_anew(tmp_path: Path) -> None:
    place = build(tmp_path / "place")
    files, folder = place.files, place.site("north")
    assert count_persons(folder, files.study, files.roster) == 3
    prepare_person(folder, files.study, files.roster, 0)
    first = set((folder / CACHE).glob("*.npy"))
    prepare_person(folder, files.study, files.roster, 0)
    assert set((folder / CACHE).glob("*.npy")) == first
    text = files.study.read_text(encoding="utf-8")
    changed = text.replace("standardize: subject", "standardize: voxel")
    assert changed != text
    files.study.write_text(changed, encoding="utf-8")
    sign_study(files.study, read_roster(files.roster), load_identity(files.keys).key)
    prepare_person(folder, files.study, files.roster, 0)
    assert len(set((folder / CACHE).glob("*.npy")) - first) == len(first) == 1


def test_only_a_study_that_is_approved_here_is_prepared(tmp_path: Path) -> None:
    place = build(tmp_path / "place")
    files, folder = place.files, place.site("north")
    text = files.study.read_text(encoding="utf-8")
    files.study.write_text(text + "# another file than the approved one\n", encoding="utf-8")
    sign_study(files.study, read_roster(files.roster), load_identity(files.keys).key)
    with pytest.raises(StudyError, match="must be approved here before its scans are prepared"):
        count_persons(folder, files.study, files.roster)
    files.study.write_text(text, encoding="utf-8")
    sign_study(files.study, read_roster(files.roster), load_identity(files.keys).key)
    assert count_persons(folder, files.study, files.roster) == 3
    take_back(folder, "small", date(2026, 11, 21))
    with pytest.raises(StudyError, match="must be approved here before its scans are prepared"):
        count_persons(folder, files.study, files.roster)


def test_only_the_hospitals_own_prefect_may_count_participants(tmp_path: Path) -> None:
    config = SiteConfig(name="north", dataset=tmp_path, exchange=str(tmp_path))
    elsewhere = {"PREFECT_API_URL": "https://api.prefect.cloud/api"}
    check_own_prefect(config, {})
    check_own_prefect(config.model_copy(update={"prefect": True}), elsewhere)
    with pytest.raises(ConfigurationError, match=r"must be the hospital's own, got https://api"):
        check_own_prefect(config, elsewhere)
