"""Pages that only show: privacy budget, ledger, and the agent's state."""

from starlette.requests import Request
from starlette.responses import Response

from site_agent.inbox.office import Office
from site_agent.page.page import page_content, page_environment
from site_agent.status import HEADING, read_status


def show_budget(office: Office, request: Request) -> Response:
    """Show the privacy budget, and the releases of studies."""
    return _show(office, request, "budget.html.j2")


def show_ledger_lines(office: Office, request: Request) -> Response:
    """Show the last lines of the ledger on a page of the inbox."""
    return _show(office, request, "ledger.html.j2")


def show_agent(office: Office, request: Request) -> Response:
    """Show the agent's state, the site's status and the last lines of the log."""
    with office.reading() as folder:
        lines = read_status(folder).lines()
        facts = [(line[:HEADING].strip(), line[HEADING:]) for line in lines]
        content = page_content(folder, office.now())
        return office.show(request, "agent.html.j2", **content, facts=facts)


def show_style(_: Office, __: Request) -> Response:
    """Return the style sheet of all pages."""
    environment = page_environment("site_agent.inbox")
    return Response(environment.get_template("inbox.css").render(), media_type="text/css")


def _show(office: Office, request: Request, template: str) -> Response:
    with office.reading() as folder:
        return office.show(request, template, **page_content(folder, office.now()))
