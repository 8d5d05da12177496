"""The numbers that a site tells of a study's data, and who is behind them."""

import statistics
from collections.abc import Iterator, Sequence

from consortium.study.spec import Study
from site_agent.data.survey import SkippedPerson
from site_agent.ledger.ledger import Ledger
from site_agent.ledger.sizes import Sizes
from site_agent.loading.progress import Data
from site_agent.policy.policy import Policy


def sizes_of(study: Study, data: Data) -> Sizes:
    """Return who is behind the numbers that a study's data would tell.

    Whoever the study leaves out makes its persons chosen ones: which columns, events, recordings
    and files somebody must have is its choice, too, and by which column they are families.
    """
    survey = data.survey
    people = data.representatives if survey.lengths else ()
    own = ("left-out-here", "too-few-new")
    by_column = study.analysis.grouped is not None and study.analysis.grouped.family is not None
    left_out = any(each.reason not in own for each in survey.skipped)
    chosen = study.data.chooses or by_column or left_out
    recordings: tuple[str, ...] = ()
    if study.privacy.unit == "timepoint":
        pairs = zip(people, survey.lengths, strict=True)
        recordings = tuple(f"{label}\0{length}" for label, length in pairs)
    samples = samples_of(study, data) if people else 0
    return Sizes(people, survey.whole, recordings, chosen, samples)


def too_few_new(ledger: Ledger, policy: Policy, labels: Sequence[str]) -> Iterator[SkippedPerson]:
    """Leave out who came since an earlier study's number, while they are few."""
    least = policy.fewest_subjects_chosen
    for label in ledger.newcomers(labels, least):
        detail = f"sub-{label} was not in an earlier study; left out until {least} were not."
        yield SkippedPerson(label, "too-few-new", detail)


def samples_of(study: Study, data: Data) -> int:
    """Return the number of volumes that is told.

    All of them where a volume is the unit of privacy; else so many times the median person's, in
    two digits, as single persons' numbers are theirs. Raises DataError if nobody takes part.
    """
    lengths = data.lengths
    if study.privacy.unit == "timepoint":
        return sum(lengths)
    return len(lengths) * int(float(f"{statistics.median(lengths):.2g}"))
