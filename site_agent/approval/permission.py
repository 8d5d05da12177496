"""A site's current permission for a study, requested when a run begins and at every round."""

import math
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from consortium.errors import BudgetError, PrivacyError, StudyError, WithdrawnError
from consortium.membership.keys import Identity
from consortium.membership.signed_study import named_files_digest
from consortium.privacy.gdp import epsilon_of, mu_of
from consortium.study.plan import promised_mu
from site_agent.approval.approval import Approval, newest_approval
from site_agent.enrolment.pinned_consortium import read_pinned
from site_agent.ledger.ledger import Ledger, LedgerLimits
from site_agent.ledger.limits import no_run_left
from site_agent.policy.policy import Policy

_ROUNDING = 1e-9
"""Relative rounding of a number of runs."""


@dataclass(frozen=True)
class Permission:
    """The site's newest approval of a study, as it is at this moment."""

    approval: Approval
    centres: frozenset[str]
    """Public keys that its consortium has or had, in hexadecimal."""
    today: date

    def limits(self, policy: Policy) -> LedgerLimits:
        """Return the limits that the ledger compares with a run's loss before the run."""
        study = self.approval.study
        return LedgerLimits(
            totals=policy.totals(),
            study=policy.study_limit(study.privacy.unit),
            runs=self._runs,
            centres=self.centres,
            ended=self._ended(),
        )

    @property
    def _runs(self) -> float:
        """Runs that the terms allow, each with the study's promised loss.

        Nothing here depends on the actual participants. Otherwise a refusal would reveal whether
        anyone took part.
        """
        study = self.approval.study
        terms = self.approval.terms
        if terms.epsilon is None:
            return terms.runs
        one = promised_mu(study)
        whole = mu_of(terms.epsilon, study.privacy.delta)
        return min(terms.runs, math.floor((whole / one) ** 2 * (1 + _ROUNDING)))

    def check_new_run(self, ledger: Ledger) -> None:
        """Refuse another run than those that were approved, before an image is opened.

        Raises StudyError if the mask is not the one that was approved. Raises PrivacyError if the
        approved runs are used up, or the approval has ended. Raises BudgetError if one more run
        could cost more than was approved.
        """
        approval = self.approval
        study = self.approval.study
        terms = self.approval.terms
        if named_files_digest(study, approval.folder) != approval.mask:
            raise StudyError(
                f"The mask of '{study.study}' in {approval.folder} is not the one that was "
                "approved. Restore it, or approve the study again if you agree."
            )
        had = ledger.used(study.study, self.centres)
        asked = epsilon_of(math.sqrt(had + 1) * promised_mu(study), study.privacy.delta)
        match terms.refusal(had + 1, asked, self.today):
            case "runs":
                raise no_run_left(study.study, terms.runs)
            case "until":
                raise PrivacyError(self._ended())
            case "epsilon":
                raise BudgetError(
                    f"'{study.study}' was approved for ε = {terms.epsilon:g} in all, and another "
                    f"run could make it {asked:.4g}. Approve it again if you agree."
                )

    def _ended(self) -> str:
        terms = self.approval.terms
        name = self.approval.study.study
        if not terms.ended(self.today):
            return ""
        return f"The approval of '{name}' ended on {terms.until}. Approve it again if you agree."


def permit(folder: Path, identity: Identity, begun: Approval, today: date) -> Permission:
    """Return the current permission for a study that was approved when its run began.

    Raises WithdrawnError if the approval was withdrawn, or another study, mask or set of keys was
    approved. Raises StudyError if one of its keys was replaced since. Raises ConfigurationError if
    a record can't be read.

    Parameters
    ----------
    folder : Path
        The site's.
    begun : Approval
        Approval with which the run was set up.
    """
    name = begun.study.study
    trust = read_pinned(folder)
    held = newest_approval(folder, identity, name)
    if held is None or trust is None:
        raise WithdrawnError(f"The approval of '{name}' was withdrawn. Approve it if you agree.")
    if any(getattr(held, each) != getattr(begun, each) for each in ("file", "mask", "keys")):
        raise WithdrawnError(
            f"'{name}' was approved again, with another file, mask or keys than this run has; the "
            "run continues without this site."
        )
    trust.check_keys(name, held.keys)
    return Permission(held, trust.centres, today)
