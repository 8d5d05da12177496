"""The site as the inbox shows it: its folder, the sessions, and the rendering of pages."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from http import HTTPStatus
from pathlib import Path

from jinja2 import Environment, Undefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from consortium.errors import ConfigurationError
from site_agent.approval.folder import SiteFolder
from site_agent.approval.offers import Offer, digest_or_empty, read_offers
from site_agent.config import SiteConfig
from site_agent.inbox.checks import StudyChecks
from site_agent.inbox.guard import FORM, SESSION_TOKEN, Door
from site_agent.inbox.read_only_view import read_only_view, with_real_paths
from site_agent.layout import CONFIG
from site_agent.page.page import page_environment

CHANGED = (
    "The site or the study has changed since the page was shown. Nothing was done. Go back, reload "
    "the page, and read it again."
)


@dataclass
class Office:
    """A site's folder and the values that all pages share."""

    folder: Path
    """The site's own folder."""
    now: Callable[[], datetime]
    """The time, with its time zone."""
    door: Door
    """Secrets and sessions."""
    checks: StudyChecks = field(default_factory=StudyChecks)
    """Checks that were started."""

    @contextmanager
    def reading(self) -> Iterator[Path]:
        """Provide the folder that pages are made from: a view of it if nothing may be written."""
        if not self.door.read_only:
            yield self.folder
            return
        with read_only_view(self.folder) as view:
            yield view

    def show(
        self,
        request: Request,
        template: str,
        status: HTTPStatus = HTTPStatus.OK,
        **values: object,
    ) -> Response:
        """Return a page."""
        text = self._environment.get_template(template).render(
            base=self.door.base,
            read_only=self.door.read_only,
            token=request.scope[SESSION_TOKEN],
            **values,
        )
        return HTMLResponse(text, status)

    @cached_property
    def _environment(self) -> Environment:
        return page_environment("site_agent.inbox").overlay(finalize=self._finalize)

    def _finalize(self, value: object) -> object:
        """Return a value as a page shows it, with a mark instead of each unprintable character.

        Such a character could reverse the order of the others, or act in a terminal. Text that is
        escaped already is left as it is.
        """
        if value is None or isinstance(value, Undefined) or hasattr(value, "__html__"):
            return value
        text = with_real_paths(str(value), self.folder) if self.door.read_only else str(value)
        return "".join(map(_shown, text))

    def done(self, request: Request, *sentences: str, back: str = "") -> Response:
        """Return the page that follows a form.

        Parameters
        ----------
        sentences : str
            Result, a sentence each.
        back : str
            Address of the next page, relative to the inbox.
        """
        told = [each for each in sentences if each]
        site = SiteConfig.load(self.folder).name
        return self.show(request, "done.html.j2", sentences=told, back=back, site=site)


def _shown(character: str) -> str:
    fit = character.isprintable() or character in "\n\t"
    return character if fit else "\N{REPLACEMENT CHARACTER}"


def form_of(request: Request) -> Mapping[str, str]:
    """Return the fields of a form that the inbox received."""
    fields: Mapping[str, str] = request.scope[FORM]
    return fields


def field_of(request: Request, name: str) -> str:
    """Return a field of a form of the inbox; raises ConfigurationError if it is missing."""
    try:
        return form_of(request)[name]
    except KeyError as error:
        raise ConfigurationError(
            f"The form must have the field '{name}'. Go back, and reload the page."
        ) from error


def find_offer(folder: Path, ident: str) -> tuple[SiteFolder, Offer]:
    """Return a study file by its name in the inbox's addresses.

    Raises ConfigurationError if there is none.
    """
    site = SiteFolder.open(folder)
    for offer in read_offers(site):
        if offer.ident == ident:
            return site, offer
    raise ConfigurationError("The study's file is not in the folder any more. Go to Decisions.")


def digest_of(folder: Path) -> str:
    """Return a digest of the files that the forms on participants and names change."""
    parts = (digest_or_empty(folder / CONFIG), digest_or_empty(SiteConfig.load(folder).left_out))
    return hashlib.sha256("|".join(parts).encode()).hexdigest()


def unchanged(digest: Callable[[], str], shown: str) -> Callable[[], None]:
    """Return a check that a digest is still the one that a page of the inbox showed.

    The check raises ConfigurationError if it is not.
    """

    def still() -> None:
        if digest() != shown:
            raise ConfigurationError(CHANGED)

    return still
