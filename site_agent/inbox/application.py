"""Addresses of the inbox, and the pages of errors."""

import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from consortium.errors import ConsortiumError
from site_agent.inbox import account_pages, study_pages, table_pages
from site_agent.inbox.guard import Door
from site_agent.inbox.office import Office

Page = Callable[[Office, Request], Response]
_SHOWN: dict[str, Page] = {
    "": study_pages.show_home,
    "study/{ident}": study_pages.show_study,
    "study/{ident}/decline": study_pages.ask_declining,
    "withdraw/{study}": study_pages.ask_withdrawal,
    "left-out": table_pages.show_left_out,
    "names": table_pages.show_names,
    "budget": account_pages.show_budget,
    "ledger": account_pages.show_ledger_lines,
    "agent": account_pages.show_agent,
    "style.css": account_pages.show_style,
}
"""Pages by address; none changes anything."""
_FORMS: dict[str, Page] = {
    "study/{ident}/check": study_pages.start_check,
    "study/{ident}/confirm": study_pages.ask_approval,
    "study/{ident}/approve": study_pages.approve_study,
    "study/{ident}/decline": study_pages.decline_study,
    "study/{ident}/note": study_pages.keep_note,
    "withdraw/{study}": study_pages.withdraw_study,
    "left-out/add": table_pages.add_left_out,
    "left-out/return": table_pages.ask_return,
    "left-out/remove": table_pages.remove_left_out,
    "left-out/confirm": table_pages.record_shorter_table,
    "names/set": table_pages.set_column_names,
    "names/remove": table_pages.remove_column_names,
}
"""Forms by address."""


@dataclass
class Inbox:
    """The web application of the inbox of a site's folder, without its admission."""

    folder: Path
    """The site's own folder."""
    now: Callable[[], datetime]
    """The time, with its time zone."""
    door: Door
    """Secrets and sessions."""

    def application(self) -> Starlette:
        """Return the application; only `Guard` may pass requests on to it."""
        office = Office(self.folder, self.now, self.door)
        base = self.door.base
        routes = [_route(base + path, page, office, "GET") for path, page in _SHOWN.items()]
        routes += [_route(base + path, page, office, "POST") for path, page in _FORMS.items()]
        handlers: dict[Any, Callable[[Request, Exception], Response]] = {
            ConsortiumError: partial(_refused, office),
            HTTPException: _missing,
            Exception: _failed,
        }
        found = Starlette(routes=routes, exception_handlers=handlers)
        found.router.redirect_slashes = False
        return found


def _route(path: str, page: Page, office: Office, method: str) -> Route:
    def answer(request: Request) -> Response:  # in a thread, since Starlette gets no coroutine
        return page(office, request)

    return Route(path, answer, methods=[method])


def _refused(office: Office, request: Request, error: Exception) -> Response:
    return office.show(
        request, "error.html.j2", HTTPStatus.CONFLICT, sentence=str(error), site="Inbox"
    )


def _missing(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else HTTPStatus.NOT_FOUND
    return PlainTextResponse("There is nothing here.\n", status)


def _failed(_: Request, error: Exception) -> Response:
    """Answer without details of a fault, which the terminal gets."""
    traceback.print_exception(error, file=sys.stderr)
    return PlainTextResponse(
        "The software has a fault. The terminal of 'site-agent serve' shows it. Report it.\n",
        HTTPStatus.INTERNAL_SERVER_ERROR,
    )
