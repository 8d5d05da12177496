"""What a site says when it takes no further part in a run: a code, and nothing of its data."""

import json

from consortium.engine.names import REFUSAL, Names
from consortium.errors import (
    ConsortiumError,
    CopyError,
    DataError,
    DeclinedError,
    DisagreementError,
    LedgerError,
    PrivacyError,
    ReleaseError,
    SoftwareError,
    StudyError,
    WithdrawnError,
)
from consortium.secagg import seal
from site_agent.layout import REFUSED
from site_agent.run.site import Site


def send_refusal(site: Site, run: str, error: ConsortiumError) -> None:
    """Tell the centre that this site takes no further part; nothing of why but a code.

    Raises ConsortiumError if it can't be stored or put on the exchange.
    """
    notice = json.dumps({"code": error.code, "reason": public_reason(error)}).encode()
    site.store.save(run, REFUSED, notice)
    post_refusal(site, run, notice)


def post_refusal(site: Site, run: str, notice: bytes) -> None:
    """Put a refusal on the exchange, signed."""
    message = seal(site.identity.key, run, site.name, REFUSAL, 0, notice)
    site.exchange.put(Names(run).refusal(site.name), message)


def public_reason(error: Exception) -> str:
    """What of an error may cross the border: nothing of the data, no file, no label."""
    if isinstance(error, DeclinedError):
        return "its rules, its data or its ledger speak against it; the site's own log says why"
    if isinstance(error, DataError):
        return "an image or table of its data set can't be used; the site's own log names it"
    if isinstance(error, CopyError):
        return "another copy of its folder has answered in its name; the site's own log says where"
    if isinstance(error, LedgerError):
        return "its ledger can't be used; the site's own log says why"
    if isinstance(error, DisagreementError):
        return (
            "it works out another plan than others; compare the versions of software and libraries"
        )
    if isinstance(error, ReleaseError):
        return "what was released is not what sites signed for; the site's own log says where"
    if isinstance(error, WithdrawnError):
        return "its people took their approval back, or gave another; ask them"
    if isinstance(error, PrivacyError | StudyError):
        return "its own rules refuse the study; the site's own log says why"
    if isinstance(error, SoftwareError):
        return "its software has a fault, which is no refusal; the site's own log says which"
    return "its machine or its settings fail it, which is no refusal; the site's own log says how"
