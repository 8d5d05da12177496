"""Every error that this software raises on purpose.

A message states where the fault is, the requirement, the given value, and the remedy. The class's
docstring, shown next to it, describes the fault in general terms. Only ``code``, which names the
kind of fault and nothing of the data, may cross a site's border.
"""

from __future__ import annotations

_MOST = 4000


def printable(text: object, most: int = _MOST) -> str:
    """Return another party's text for an error: cut, with a mark for unprintable characters."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text)[:most])


class ConsortiumError(Exception):
    """Something went wrong that the software foresaw."""

    code = "error"

    def __str__(self) -> str:
        # A message may quote what another party wrote, and ends in a terminal or a log.
        return printable(super().__str__())


class ConfigurationError(ConsortiumError):
    """A site's or the centre's own configuration is incomplete or wrong."""

    code = "configuration"


class StudyError(ConsortiumError):
    """The study file can't be used as it is."""

    code = "study"


class DataError(ConsortiumError):
    """An image or table of the data set can't be used as the study asks."""

    code = "data"


class TableError(DataError):
    """A table's rows, labels or columns are not what its header or the study requires."""

    code = "table"

    def __init__(self, path: object, kind: str, sentence: str, line: int | None = None) -> None:
        place = f"{path}" if line is None else f"{path}, line {line}"
        super().__init__(f"{place}: {sentence}")
        self.path = path
        self.kind = kind
        self.line = line


class NotReleasedError(DataError, AttributeError):
    """A result does not have the map, table or number that is asked for."""

    code = "not-released"


class PrivacyError(ConsortiumError):
    """The request gives less privacy than the study or the site requires, or than can be proved."""

    code = "privacy"


class WithdrawnError(PrivacyError):
    """A site's people took their approval back, or gave another one, after a run had begun."""

    code = "withdrawn"


class BudgetError(PrivacyError):
    """The privacy budget does not cover the requested loss."""

    code = "budget"


class RangeError(PrivacyError):
    """A number is outside the range that the plan computed before the run."""

    code = "range"


class LedgerError(ConsortiumError):
    """The site's ledger can't be trusted or can't be written."""

    code = "ledger"


class CopyError(ConsortiumError):
    """Another copy of this site's folder has answered in its name."""

    code = "copy"


class ProtocolError(ConsortiumError):
    """A message arrived that the protocol does not allow now; nothing was changed by it."""

    code = "protocol"


class SignatureError(ProtocolError):
    """A message is not from its stated sender, or was altered on its way."""

    code = "signature"


class AlteredError(ProtocolError):
    """A message on the exchange differs from the one that its sender signed."""

    code = "altered"


class ThresholdError(ProtocolError):
    """Too few sites are left for the sum to be opened."""

    code = "threshold"


class ExchangeError(ConsortiumError):
    """The place where sites and centre leave their messages can't be read or written."""

    code = "exchange"


class TakenError(ExchangeError):
    """A message with this name and other content is on the exchange. Waiting does not help."""

    code = "taken"


class OversizedError(ExchangeError):
    """A message on the exchange is larger than any of its kind. Waiting does not help."""

    code = "oversized"


class DisagreementError(ConsortiumError):
    """Two parties of a run have different plans."""

    code = "plan-differs"


class ReleaseError(ConsortiumError):
    """A release differs from the one that the sites signed."""

    code = "release-differs"


class ContradictionError(ConsortiumError):
    """A published result contradicts a signed one."""

    code = "contradiction"

    def __init__(self, where: str, sentence: str) -> None:
        super().__init__(f"{where}: {sentence}")
        self.where = where
        self.sentence = sentence


class SiteError(ConsortiumError):
    """A site is missing, has refused, or has failed."""

    code = "site"


class AbsentError(SiteError):
    """Too few sites were ready when a run was to start; nothing was asked or charged."""

    code = "absent"


class RunCancelledError(ConsortiumError):
    """The coordinator ended the run, by command or on Prefect."""

    code = "cancelled"


class EngineError(ConsortiumError):
    """A site's computing engine does not answer; nothing is charged, and the site tries again."""

    code = "engine"


class SoftwareError(ConsortiumError):
    """The software failed in an unforeseen way; report this fault."""

    code = "software"

    @classmethod
    def of(cls, error: Exception) -> SoftwareError:
        """Wrap any exception; its text stays where it happened."""
        return cls(f"{type(error).__name__}: {error}; this is a fault of the software, report it.")


class OutputError(ConsortiumError):
    """The output folder can't be used."""

    code = "output"


class OpenRunError(ConsortiumError):
    """An unfinished run of the study on the exchange belongs to another output folder."""

    code = "open-run"
