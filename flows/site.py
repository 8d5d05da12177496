"""A site's flow, for a site whose owner runs a Prefect; others call the agent itself."""

from __future__ import annotations

from collections.abc import Callable

from prefect import flow


def attend(site: str, work: Callable[[], None]) -> None:
    """Let an agent work as a flow run on the site's own Prefect.

    Parameters
    ----------
    site : str
        Shown by Prefect; nothing else is.
    work : callable
        The agent's own installed code.
    """

    @flow(name="site-agent", flow_run_name="{site}", validate_parameters=False)
    def site_agent(site: str) -> None:
        del site  # shown by Prefect
        work()

    site_agent(site)
