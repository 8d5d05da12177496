"""Errors that the values of a damaged recording cause."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from consortium.base.atomic import DAMAGED
from consortium.errors import DataError

UNFORESEEN = (*DAMAGED, ArithmeticError, IndexError)
"""Errors that impossible values may cause where no check names them."""


@contextmanager
def only_data_errors(path: Path) -> Iterator[None]:
    """Raise DataError in place of every error that one participant's files may cause.

    One participant's files must not stop the reading of the others'.

    Parameters
    ----------
    path : Path
        The participant's recording.
    """
    try:
        yield
    except UNFORESEEN as error:
        raise DataError(
            f"{path}: the recording, its tables and its JSON file must contain possible values, "
            "and at least one value can't be used. Correct the files, or export the recording "
            "again."
        ) from error
