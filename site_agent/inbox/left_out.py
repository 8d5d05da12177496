"""Changes of the left-out table by forms: rows that are added, or removed and confirmed."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from consortium.base.atomic import write_bytes
from consortium.base.lock import take_turns
from consortium.base.work import work_folder
from consortium.errors import ConfigurationError, ConsortiumError, TableError
from site_agent.approval.left_out import record_left_out
from site_agent.config import SiteConfig
from site_agent.data.people import REASON, read_left_out, site_tables
from site_agent.inbox.site_yaml import set_left_out
from site_agent.labels import Spellings
from site_agent.layout import DECISIONS

_PERSON = "participant_id"
_NEW = "left-out.tsv"
_MOST_CELL = 200
_FORMULA = "=+-@"


def add_row(folder: Path, label: str, reason: str, still: Callable[[], None]) -> None:
    """Add a participant to the left-out table, which is made if there is none.

    Raises ConfigurationError if a cell is not one line of text. Raises TableError if the table
    can't be read.

    Parameters
    ----------
    folder : Path
        The site's.
    label : str
        The participant's label.
    reason : str
        Why the participant is excluded.
    still : callable
        Raises an error if the table has changed since the staff looked.
    """
    cells = {_PERSON: _cell(label, "participant"), REASON: _cell(reason, "reason")}
    with take_turns(folder, DECISIONS):
        still()
        config = SiteConfig.load(folder)
        table = config.left_out or folder / _NEW
        lines = _lines(table) if table.exists() else [f"{_PERSON}\t{REASON}\n"]
        names = _names(table, lines)
        end = "\r\n" if lines[0].endswith("\r\n") else "\n"
        row = "\t".join(cells.get(name, "n/a") for name in names)
        _write(folder, config, table, [_ended(line, end) for line in lines] + [row + end])
        if config.left_out is None:
            set_left_out(folder, _NEW)


def remove_row(
    folder: Path, label: str, now: datetime, still: Callable[[], None]
) -> ConsortiumError | None:
    """Remove a participant from the left-out table, and record the shorter table.

    Raises ConfigurationError if the table does not name the participant. Raises TableError if the
    table can't be read.

    Parameters
    ----------
    folder : Path
        The site's.
    label : str
        The participant's label, as the table has it.
    now : datetime
        The time, for the ledger's readers.
    still : callable
        Raises an error if the table has changed since the staff looked.

    Returns
    -------
    ConsortiumError or None
        Why the ledger's head was not put on the exchange.
    """
    with take_turns(folder, DECISIONS):
        still()
        config = SiteConfig.load(folder)
        table = config.left_out
        lines = _lines(table) if table is not None else []
        if table is None or not lines:
            raise ConfigurationError("The site has no left-out table. Nothing was changed.")
        place = _names(table, lines).index(_PERSON)
        same = Spellings(exact=config.labels == "exact").key
        kept = [line for line in lines[1:] if same(_label(line, place)) != same(label)]
        if len(kept) == len(lines) - 1:
            raise ConfigurationError(
                f"{table}: a row must name the participant to be removed, and no row names "
                f"'{label[:_MOST_CELL]}'. Reload the page."
            )
        _write(folder, config, table, [lines[0], *kept])
        return record_left_out(folder, now.isoformat(timespec="seconds"))


def _cell(text: str, what: str) -> str:
    cell = text.strip()
    if not cell or not cell.isprintable() or len(cell) > _MOST_CELL or '"' in cell:
        raise ConfigurationError(
            f"The {what} must be one line of 1 to {_MOST_CELL} printable characters without "
            "quotation marks. Correct it."
        )
    if cell[0] in _FORMULA:
        raise ConfigurationError(
            f"The {what} must not begin with one of {' '.join(_FORMULA)}, since a spreadsheet "
            f"would run it as a formula, and it begins with {cell[0]}. Correct it."
        )
    return cell


def _lines(table: Path) -> list[str]:
    try:
        with table.open(encoding="utf-8-sig", newline="") as file:
            return [line for line in file if line.strip()]
    except (OSError, ValueError) as error:
        raise TableError(table, "table", "it can't be read. Check it by hand.") from error


def _names(table: Path, lines: list[str]) -> list[str]:
    names = lines[0].rstrip("\r\n").split("\t") if lines else []
    if _PERSON not in names or REASON not in names or any('"' in line for line in lines):
        raise TableError(
            table,
            "header",
            f"a form can change only a tab-separated table with the columns {_PERSON} and {REASON} "
            "and without quotation marks. Edit this table by hand.",
        )
    return names


def _label(line: str, place: int) -> str:
    """Return the label of a row, which is empty in a row that is too short."""
    cells = line.rstrip("\r\n").split("\t")
    return cells[place] if len(cells) > place else ""


def _ended(line: str, end: str) -> str:
    return line if line.endswith("\n") else line + end


def _write(folder: Path, config: SiteConfig, table: Path, lines: list[str]) -> None:
    """Write the table, if the site's reader accepts it."""
    data = "".join(lines).encode()
    draft = work_folder(folder) / f"{table.name}.draft"
    mode = table.stat().st_mode & 0o777 if table.exists() else 0o600
    try:
        write_bytes(draft, data, mode=0o600)
        read_left_out(draft, site_tables(config))
    finally:
        draft.unlink(missing_ok=True)
    target = table.resolve() if table.exists() else table  # a link to a shared table stays one
    write_bytes(target, data, mode=mode)
