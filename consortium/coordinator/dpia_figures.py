"""The numbers of a data protection impact assessment, each with where it comes from."""

from collections.abc import Iterator
from dataclasses import dataclass

from consortium.base.formatting import number, percent, power_of_ten
from consortium.privacy.accountant import person_loss
from consortium.privacy.gdp import FALSE_ALARMS, best_guess, detection_power, epsilon_of
from consortium.study.outlook import Outlook, StageOutlook
from consortium.study.plan import Plan

_WORDS = {
    "rounds": "rounds",
    "entries": "numbers",
    "bound": "bound of one participant or volume",
    "sigma_aggregate": "noise σ",
}
STUDY, PLAN, SIZES = "study file", "consortium plan --json", "--subjects"


@dataclass(frozen=True)
class Figure:
    """A number as the assessment writes it."""

    name: str
    """What it counts, for people."""
    text: str
    """As it is written."""
    place: str
    """The study file, what ``consortium plan --json`` prints, or an option of the command."""
    path: str
    """Field there, with dots; of a computed number that which it is computed from."""
    how: str = ""
    """How it is computed from it; empty if it is the number itself."""

    @property
    def source(self) -> str:
        """Where it comes from, in words."""
        where = f"{self.place}: {self.path}" if self.path else self.place
        return f"{self.how} {where}" if self.how else where


def figures(plan: Plan, volumes: int) -> tuple[Figure, ...]:
    """Every number that an assessment of a plan writes.

    Parameters
    ----------
    volumes : int
        T, volumes of one person, which a loss for single volumes is multiplied by.
    """
    return (*_promise(plan), *_meaning(plan), *_person(plan, volumes), *_sizes(plan), *_cost(plan))


def _promise(plan: Plan) -> Iterator[Figure]:
    privacy = plan.study.privacy
    yield Figure("largest ε that is allowed", number(privacy.epsilon), STUDY, "privacy.epsilon")
    yield Figure("δ", power_of_ten(privacy.delta), STUDY, "privacy.delta")
    colluding = str(privacy.colluding_sites)
    yield Figure("hospitals that may collude", colluding, STUDY, "privacy.colluding_sites")
    yield Figure("hospitals that may drop out", str(privacy.dropouts), STUDY, "privacy.dropouts")
    yield Figure("ε against the coalition", number(plan.epsilon), PLAN, "coalition.epsilon")
    yield Figure("ε against outsiders", number(plan.outsider_epsilon), PLAN, "outsider.epsilon")


def _meaning(plan: Plan) -> Iterator[Figure]:
    yield Figure("rate of false alarms", percent(FALSE_ALARMS), "chosen for all studies", "")
    yield Figure("bets that a coin wins", percent(best_guess(0.0)), "by definition", "")
    for name, mu in (("coalition", plan.mu), ("outsider", plan.outsider_mu)):
        power, guess = percent(detection_power(mu)), percent(best_guess(mu))
        yield Figure(f"found by the best test, {name}", power, PLAN, f"{name}.mu", "power at μ of")
        yield Figure(f"bets won, {name}", guess, PLAN, f"{name}.mu", "best guess at μ of")


def _person(plan: Plan, volumes: int) -> Iterator[Figure]:
    if plan.study.privacy.unit == "subject":
        return
    mu = person_loss(plan.mu, volumes)
    how = "volumes of a participant times μ of"
    yield Figure("volumes of a participant", f"{volumes:,}", "--volumes", "")
    epsilon, power = number(epsilon_of(mu, plan.delta)), percent(detection_power(mu))
    yield Figure("ε of a participant", epsilon, PLAN, "coalition.mu", f"ε at {how}")
    yield Figure(
        "participants found by the best test", power, PLAN, "coalition.mu", f"power at {how}"
    )


def _sizes(plan: Plan) -> Iterator[Figure]:
    shape, unit = plan.shape, plan.shape.unit
    yield Figure("hospitals", str(len(plan.study.sites)), STUDY, "sites", "length of")
    yield Figure("fewest hospitals of a run", str(plan.study.fewest), STUDY, "quorum")
    for site, persons in zip(plan.study.sites, shape.subjects, strict=True):
        yield Figure(f"participants of {site}", f"{persons:,}", SIZES, site)
    yield Figure("participants in all", f"{sum(shape.subjects):,}", SIZES, "", "sum of")
    if unit == "timepoint":
        yield Figure(
            "volumes in all", f"{sum(shape.units):,}", "--volumes", "", "all participants'"
        )


def _cost(plan: Plan) -> Iterator[Figure]:
    yield Figure("numbers measured of a participant", f"{plan.shape.features:,}", PLAN, "features")
    yield Figure("rounds", f"{plan.rounds:,}", PLAN, "rounds")
    for index, stage in enumerate(Outlook(plan).stages):
        for what, text in assessed_stages(stage).items():
            yield Figure(f"{_WORDS[what]} of {stage.stage}", text, PLAN, f"stages.{index}.{what}")


def assessed_stages(stage: StageOutlook) -> dict[str, str]:
    """A stage's numbers in the impact assessment, by fields of ``consortium plan --json``."""
    return {
        "rounds": f"{stage.rounds:,}",
        "entries": f"{stage.entries:,}",
        "bound": number(stage.bound),
        "sigma_aggregate": number(stage.sigma_aggregate),
    }
