"""A study that is opened: one value has what its signature and its files state."""

from pathlib import Path

import pytest

from consortium.engine.run_context import RunContext
from consortium.errors import DataError
from consortium.membership.signed_study import sign_study
from consortium.opened_study import open_signed, open_study
from consortium.space.study_space import study_space
from consortium.study.reader import read_study
from tests.support.membership_files import members, private

TEXT = """\
study: small
sites: [north, east]
participants: {north: 10, east: 10}
privacy: {epsilon: 1, delta: 1.0e-5, colluding_sites: 0}
algorithm: average
features:
- {name: age, source: table, columns: {age: {low: 18, high: 90}}}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "study.yaml"
    found.write_text(TEXT)
    return found


def test_a_signed_study_makes_the_setting_that_its_parts_make(path: Path) -> None:
    signed = sign_study(path, members(), private(1))
    space = study_space(signed.study, path.parent)
    stated = RunContext(
        run="small-0001",
        study=signed.study,
        keys=signed.keys,
        grid=space.digest,
        extent=space.extent,
        file=signed.file,
    )
    made = open_signed(signed).context("small-0001")
    assert made.announcement == stated.announcement
    assert made.extent.views == (("age", 1),)


def test_a_study_without_a_signature_has_no_keys(path: Path) -> None:
    opened = open_study(read_study(path), path.parent)
    assert (opened.keys, opened.file, opened.folder) == ({}, "", path.parent)
    assert opened.space.features == 1


def test_a_missing_file_is_an_error_when_the_study_is_opened(path: Path) -> None:
    path.write_text(TEXT + "data: {mask: mask.nii.gz}\n")
    study = read_study(path)
    with pytest.raises(DataError, match=r"mask\.nii\.gz"):
        open_study(study, path.parent)
