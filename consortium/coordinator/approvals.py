"""Which sites have approved a study, how long the others have been awaited, and a reminder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from email.message import EmailMessage
from importlib.resources import files
from pathlib import Path

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment

from consortium.base.atomic import write_bytes
from consortium.base.formatting import count
from consortium.base.strict_yaml import read_limited
from consortium.errors import StudyError
from consortium.exchange.base import Exchange
from consortium.membership.consent import Consent, read_consents, uncovered_sites
from consortium.membership.signed_study import SignedStudy, signature_path
from consortium.study.spec import Study

REMINDER = "reminder.txt"


@dataclass(frozen=True)
class SiteApproval:
    """Whether a site's approval on the exchange covers one more run."""

    site: str
    approved: bool
    reason: str = ""
    """Sentence with the reason if it does not; it begins with the site's name."""
    days: int | None = None
    """Whole days since the study was signed or the approval ended; None if that is unknown."""
    declined: bool = False
    """Whether the site's staff declined the study, so that no reminder is due."""


def approved_sentence(approved: int, study: Study) -> str:
    """State how many sites' approvals cover the next run, and how many sites it needs."""
    many = count(len(study.sites), "site")
    return f"Approvals of {approved} of {many} cover the next run, and {study.fewest} are needed."


def site_approvals(
    exchange: Exchange, signed: SignedStudy, study_file: Path, today: date
) -> tuple[SiteApproval, ...]:
    """Return the approval of every site of a signed study, in the study's order.

    Raises ExchangeError if the exchange can't be read.

    Parameters
    ----------
    study_file : Path
        Next to its signature, whose file's date is when sites are awaited from.
    today : date
        In UTC.
    """
    study = signed.study
    missing = uncovered_sites(exchange, study, signed.keys, today)
    consents = read_consents(exchange, study, signed.keys)
    signed_at = datetime.fromtimestamp(signature_path(study_file).stat().st_mtime, UTC).date()
    return tuple(
        SiteApproval(site, True)
        if site not in missing
        else SiteApproval(
            site,
            False,
            missing[site],
            _days(consents[site], signed_at, today),
            _is_declined(consents[site]),
        )
        for site in study.sites
    )


def _is_declined(consent: Consent | None) -> bool:
    return consent is not None and consent.declined


def _days(consent: Consent | None, signed_at: date, today: date) -> int | None:
    """Return the days for which a site has been awaited."""
    if consent is None:
        return max((today - signed_at).days, 0)
    ended = consent.terms is not None and consent.terms.ended(today) and consent.until is not None
    if ended and consent.until is not None:
        return max((today - consent.until - timedelta(days=1)).days, 0)
    return None


def write_reminders(
    signed: SignedStudy,
    study_file: Path,
    awaited: Sequence[SiteApproval],
    template: Path | None,
    folder: Path,
) -> dict[str, Path]:
    """Write a draft of a mail for each awaited site, which a mail program opens.

    Raises StudyError if the template can't be used. Raises OutputError if a file can't be written.

    Parameters
    ----------
    template : Path, optional
        Text with the fields of `reminder.txt`; its first line is the subject (default: that file).

    Returns
    -------
    dict of str to Path
        The written files by site.
    """
    written = {}
    for each in awaited:
        text = _reminder(signed, study_file, each, template)
        written[each.site] = write_bytes(folder / f"{each.site}.eml", text)
    return written


def _reminder(
    signed: SignedStudy, study_file: Path, awaited: SiteApproval, template: Path | None
) -> bytes:
    state = awaited.reason.partition(". Ask")[0].rstrip(".")  # without the coordinator's next step
    fields: Mapping[str, object] = {
        "site": awaited.site,
        "study": signed.study.study,
        "title": signed.study.heading,
        "file": study_file.name,
        "digest": signed.file,
        "reason": f"{state}.",
        "days": awaited.days,
    }
    try:
        source = _usual_template() if template is None else read_limited(template).decode()
        text = SandboxedEnvironment(undefined=StrictUndefined).from_string(source).render(fields)
    except (OSError, UnicodeDecodeError, TemplateError) as error:
        raise StudyError(
            f"--template {template}: a text in UTF-8 with the fields {', '.join(fields)} in double "
            f"braces is required. Correct it: {error}."
        ) from error
    subject, *body = text.strip().splitlines()
    mail = EmailMessage()
    mail["X-Unsent"] = "1"  # mail programs open such a file as a draft
    mail["Subject"] = subject
    mail.set_content("\n".join(body).strip() + "\n", cte="8bit")
    return mail.as_bytes()


def _usual_template() -> str:
    return (files("consortium.coordinator") / "drafts" / REMINDER).read_text(encoding="utf-8")
