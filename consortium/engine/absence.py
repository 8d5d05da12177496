"""Who is missing, in the one sentence with which a run ends for want of them."""

from collections.abc import Sequence

from consortium.engine.mailbox import Mailbox
from consortium.errors import SiteError


def not_started(mail: Mailbox, missing: Sequence[str]) -> SiteError:
    """Name the sites for want of which a run does not start; nobody was asked anything yet."""
    timing = mail.context.study.timing
    slow = [s for s in missing if s in mail.notices.loading and s not in mail.notices.refused]
    if not slow or timing.ready <= timing.join:
        return shortage(mail, missing, "not there", timing.join)
    rest = [site for site in missing if site not in slow]
    others = f"{shortage(mail, rest, 'not there', timing.join)} " if rest else ""
    return SiteError(
        f"{others}{', '.join(slow)}: still loading after {timing.ready:g} s; nothing was asked "
        "and nothing is charged, so raise timing.ready, or run the study again when "
        "'site-agent status' says there that it is ready."
    )


def shortage(mail: Mailbox, sites: Sequence[str], what: str, seconds: float) -> SiteError:
    """Name the sites for want of which the run ends; of those that refused, say why."""
    reasons = [mail.notices.refused[site] for site in sites if site in mail.notices.refused]
    silent = [site for site in sites if site not in mail.notices.refused]
    remedy = "ask the site's people"
    if silent:
        reasons.append(f"{', '.join(silent)}: {what} within {seconds:g} s")
        remedy = "start the site's agent"
    return SiteError(f"{'; '.join(reasons)}; {remedy} and run the study again.")
