"""Errors of one participant's files."""

from pathlib import Path

import pytest

from consortium.errors import ConfigurationError, DataError
from site_agent.eeg.damage import UNFORESEEN, only_data_errors

PATH = Path("sub-01_eeg.edf")


@pytest.mark.parametrize(
    "error", [*UNFORESEEN, FloatingPointError, UnicodeError, FileNotFoundError]
)
def test_every_error_of_a_damaged_file_becomes_a_data_error(error: type[Exception]) -> None:
    given = UnicodeError("x") if error is UnicodeError else error("secret of a library")
    with pytest.raises(DataError) as found, only_data_errors(PATH):
        raise given
    assert str(found.value).startswith("sub-01_eeg.edf: ")
    assert "secret" not in str(found.value)


@pytest.mark.parametrize("error", [DataError, ConfigurationError, MemoryError, AssertionError])
def test_any_other_error_passes_unchanged(error: type[Exception]) -> None:
    given = error("x")
    with pytest.raises(error) as found, only_data_errors(PATH):
        raise given
    assert found.value is given
