"""Pages of the files that staff change by forms: the left-out table, and names of columns."""

from collections.abc import Callable
from functools import partial

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from consortium.base.formatting import count
from consortium.base.frozen_model import first_problem
from consortium.base.lock import take_turns
from consortium.errors import ConfigurationError, DataError
from site_agent.approval.left_out import read_states, record_left_out
from site_agent.config import Alias, SiteConfig
from site_agent.data.people import everybody_in, read_left_out, site_tables
from site_agent.inbox.left_out import add_row, remove_row
from site_agent.inbox.office import Office, digest_of, field_of, form_of, unchanged
from site_agent.inbox.site_yaml import set_alias
from site_agent.layout import DECISIONS

_MOST_NAME = 200


def show_left_out(office: Office, request: Request) -> Response:
    """Show the left-out table, with its forms."""
    with office.reading() as folder:
        config = SiteConfig.load(folder)
        trouble = ""
        rows: list[tuple[str, str, bool]] = []
        missing = 0
        try:
            if config.left_out is not None:
                tables = site_tables(config)
                known = everybody_in(config.dataset, tables)
                read = read_left_out(config.left_out, tables)
                rows = [(label, reason, known.knows(label)) for label, reason in read.items()]
            if config.ledger.exists():
                missing = read_states(folder).count_left_out()[1]
        except DataError as error:
            trouble = str(error)
        return office.show(
            request,
            "left_out.html.j2",
            site=config.name,
            table=config.left_out,
            rows=rows,
            missing=missing,
            trouble=trouble,
            shown=digest_of(office.folder),
        )


def add_left_out(office: Office, request: Request) -> Response:
    """Leave a participant out of every later study."""
    still = _still(office, request)
    add_row(office.folder, field_of(request, "participant"), field_of(request, "reason"), still)
    return RedirectResponse(f"{office.door.base}left-out", 303)


def ask_return(office: Office, request: Request) -> Response:
    """Ask on a page of the inbox for the confirmation that a participant takes part again."""
    return office.show(
        request,
        "take_back.html.j2",
        site=SiteConfig.load(office.folder).name,
        participant=field_of(request, "participant"),
        missing=read_states(office.folder).count_left_out()[1],
        shown=field_of(request, "shown"),
    )


def remove_left_out(office: Office, request: Request) -> Response:
    """Remove a participant from the left-out table, from a page of the inbox."""
    still = _still(office, request)
    participant = field_of(request, "participant")
    trouble = remove_row(office.folder, participant, office.now(), still)
    return office.done(
        request,
        f"{participant} is no longer in the left-out table, and runs use this table from now on.",
        f"The ledger's head is put on the exchange with the next run ({trouble})" * bool(trouble),
        back="left-out",
    )


def record_shorter_table(office: Office, request: Request) -> Response:
    """Record a left-out table that lacks participants."""
    still = _still(office, request)
    with take_turns(office.folder, DECISIONS):
        still()
        _, missing = read_states(office.folder).count_left_out()
        trouble = record_left_out(office.folder, office.now().isoformat(timespec="seconds"))
    return office.done(
        request,
        f"Recorded without {count(missing, 'participant')}: runs use this table from now on.",
        f"The ledger's head is put on the exchange with the next run ({trouble})" * bool(trouble),
        back="left-out",
    )


def show_names(office: Office, request: Request) -> Response:
    """Show the site's names of columns and levels, with their form."""
    with office.reading() as folder:
        config = SiteConfig.load(folder)
        return office.show(
            request,
            "names.html.j2",
            site=config.name,
            aliases=config.aliases,
            shown=digest_of(office.folder),
        )


def set_column_names(office: Office, request: Request) -> Response:
    """Set the site's names of one column of the studies."""
    column = _name(field_of(request, "column"))
    form = form_of(request)
    here = form.get("here", "").strip()
    levels = _levels(form.get("levels", ""))
    if not here and not levels:
        raise ConfigurationError(
            "The form must have the column's name here, or at least one level. Fill one in."
        )
    try:
        alias = Alias(column=here or None, levels=levels)
    except ValidationError as error:
        raise ConfigurationError(f"{column}: {first_problem(error, Alias)}") from error
    set_alias(office.folder, column, alias, _still(office, request))
    return RedirectResponse(f"{office.door.base}names", 303)


def remove_column_names(office: Office, request: Request) -> Response:
    """Remove the site's names of one column of the studies."""
    still = _still(office, request)
    set_alias(office.folder, field_of(request, "column"), None, still)
    return RedirectResponse(f"{office.door.base}names", 303)


def _name(text: str) -> str:
    name = text.strip()
    if not name or not name.isprintable() or len(name) > _MOST_NAME:
        raise ConfigurationError(
            f"The column must be one line of 1 to {_MOST_NAME} printable characters. Correct it."
        )
    return name


def _levels(text: str) -> dict[str, tuple[str, ...]]:
    """Return levels from lines such as 'SCZ = scz, 1'."""
    found: dict[str, tuple[str, ...]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        level, sign, values = line.partition("=")
        own = tuple(filter(None, map(str.strip, values.split(","))))
        if not sign or not level.strip() or not own or level.strip() in found:
            raise ConfigurationError(
                f"Each line must be a level of the study once, an equals sign and values here, "
                f"such as 'SCZ = scz, 1', and one is '{line[:80]}'. Correct the line."
            )
        found[level.strip()] = own
    return found


def _still(office: Office, request: Request) -> Callable[[], None]:
    """Return a check that the files behind a form have not changed since it was shown."""
    return unchanged(partial(digest_of, office.folder), field_of(request, "shown"))
