"""``python -m benchmarks.held_out STUDIES [SEED]``: AUC of `regression` on held-out participants.

There are four sites, and one may collude. The truth is the AUC of each study's own predictions in
40,000 new participants of the same sites. *Bias* is the mean difference of the reported AUC from
the truth, and *noise* the root mean square difference from the AUC of the study's held-out
participants without bins or noise. *Found* is the fraction of studies whose AUC is found to exceed
0.5 and the AUC of the sites. The first table has the whole ε for the AUC, and the second one splits
it: 30 % of μ² are for the AUC.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from scipy.stats import rankdata

from benchmarks.honesty.running import TableSite, carry_out
from benchmarks.studies import DELTA, PLAIN
from benchmarks.timing import command, heading, line
from consortium.algorithms.base import Array, Extent, Result
from consortium.algorithms.findings import Finding
from consortium.algorithms.regression.kernels.calibration import calibration_line
from consortium.algorithms.regression.site import held_out_persons
from consortium.errors import StudyError
from consortium.privacy.clipping import clip_columns
from consortium.privacy.gdp import epsilon_of, mu_of
from consortium.study.plan import Plan, make_plan
from consortium.study.spec import Study

SITES = 4
COLUMNS = 4
_NEW = 10_000
"""New participants of each site."""
_SPREAD = 0.3
Draw = Callable[[int, int, np.random.Generator], tuple[Array, Array]]


@dataclass(frozen=True)
class Kind:
    """Participants of a site: entries between -1 and 1, and labels of -1 and 1."""

    name: str
    draw: Draw
    """From the site's number, the number of participants and a generator."""
    prevalence: float = 0.5
    levels: int = 0
    """Columns of two levels, which are the first ones."""
    bound: float = 1.0
    stated: float = 1.0
    """Nominal number of participants over the true one."""


def gaussian(shift: float, prevalence: float) -> Draw:
    """Return normal columns, two with means that differ by ``shift`` deviations between labels."""

    def draw(site: int, many: int, rng: np.random.Generator) -> tuple[Array, Array]:
        labels = np.where(rng.random(many) < prevalence, 1.0, -1.0)
        x = rng.standard_normal((COLUMNS, many)) + 0.3 * site
        x[:2] += shift / 2**0.5 * (labels + 1) / 2
        return (_SPREAD * x).clip(-1, 1), labels

    return draw


def skewed(site: int, many: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw lognormal columns. One explains the label."""
    del site
    x = np.exp(0.7 * rng.standard_normal((COLUMNS, many)))
    labels = np.where(rng.random(many) < expit(1.5 * (x[0] - 1.3)), 1.0, -1.0)
    return (x / 4 - 1).clip(-1, 1), labels


def two_levels(site: int, many: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw two columns of two levels that explain much, and others that explain little."""
    del site
    x = _SPREAD * rng.standard_normal((COLUMNS, many))
    x[:2] = np.where(rng.random((2, many)) < np.array([[0.5], [0.3]]), 1.0, -1.0)
    score = x[0] + 0.8 * x[1] + x[2]
    labels = np.where(rng.random(many) < expit(score), 1.0, -1.0)
    return x.clip(-1, 1), labels


def sites_differ(site: int, many: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw random labels with another fraction of positives at each site."""
    labels = np.where(rng.random(many) < (0.1, 0.3, 0.5, 0.7)[site], 1.0, -1.0)
    return (_SPREAD * rng.standard_normal((COLUMNS, many))).clip(-1, 1), labels


def without_positives(site: int, many: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw normal columns, and no positive at the first site."""
    return gaussian(1.2, 0.5 if site else 0.0)(site, many, rng)


def constant(site: int, many: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw columns without variation, and random labels."""
    del site
    labels = np.where(rng.random(many) < 0.5, 1.0, -1.0)
    return np.full((COLUMNS, many), 0.2), labels


NORMAL = Kind("normal", gaussian(1.2, 0.5))
KINDS = (
    NORMAL,
    Kind("random labels", gaussian(0.0, 0.5)),
    Kind("random labels, sites differ", sites_differ, 0.4),
    Kind("one in ten positive", gaussian(1.2, 0.1), 0.1),
    Kind("one in a hundred positive", gaussian(1.2, 0.01), 0.01),
    Kind("a site without positives", without_positives, 0.375),
    Kind("skewed columns", skewed, bound=2.0),
    Kind("two columns of two levels", two_levels, levels=2, bound=2.0),
    Kind("classes far apart", gaussian(6.0, 0.5)),
    Kind("constant columns", constant),
    Kind("stated numbers 30 % too small", gaussian(1.2, 0.5), stated=0.7),
    Kind("stated numbers 30 % too large", gaussian(1.2, 0.5), stated=1.3),
)


def plan_of(kind: Kind, participants: int, epsilon: float, judging: float, *, anyway: bool) -> Plan:
    """Plan a study; raises StudyError if the AUC is expected to be too noisy."""
    entries = {f"x{k}": {"low": -1, "high": 1} for k in range(kind.levels, COLUMNS)}
    levels = {f"x{k}": {"levels": ["no", "yes"]} for k in range(kind.levels)}
    columns: dict[str, object] = {**levels, **entries}
    label = {"name": "dx", "source": "table", "columns": {"dx": {"levels": ["no", "yes"]}}}
    made = Study.model_validate(
        {
            "study": "benchmark",
            "sites": [f"site{n + 1}" for n in range(SITES)],
            "data": dict(PLAIN),
            "features": [{"name": "x", "source": "table", "columns": columns}, label],
            "privacy": {
                "epsilon": epsilon,
                "delta": DELTA,
                "colluding_sites": 1,
                "boost": "exact",
            },
            "algorithm": "regression",
            "analysis": {
                "target": "dx",
                "model": "logistic",
                "bound": kind.bound,
                "held_out": 0.5,
                "judging": judging,
                "prevalence": kind.prevalence,
                "anyway": anyway,
            },
        }
    )
    sizes = [round(kind.stated * participants / SITES)] * SITES
    extent = Extent(COLUMNS + 1, views=(("x", COLUMNS), ("dx", 1)))
    plan = make_plan(made, extent.shape(sizes, sizes, "subject"))
    plan.analysis.planned()
    return plan


def auc(scores: Array, labels: Array) -> float:
    """Return the AUC, in which ties count half."""
    ones = labels > 0
    many = int(ones.sum())
    others = len(ones) - many
    if not many or not others:
        return float("nan")
    ranks = rankdata(scores)
    return float((ranks[ones].sum() - many * (many + 1) / 2) / (many * others))


@dataclass(frozen=True)
class Judged:
    """One study compared with the truth."""

    truth: float
    value: float
    """NaN if withheld, as the next ones."""
    own: float
    """AUC of its held-out participants."""
    covered: float
    found: bool
    slope: float
    """Calibration slope minus the true one."""
    slope_covered: float


def run_study(kind: Kind, plan: Plan, participants: int, seed: int) -> Judged:
    """Run a study, and compare the AUC and the calibration slope with the truth."""
    rng = np.random.default_rng((seed, participants, *map(ord, kind.name)))
    views = (("x", COLUMNS), ("dx", 1))
    sites = []
    drawn = []
    for number in range(SITES):
        x, labels = kind.draw(number, participants // SITES, rng)
        hashes = rng.integers(2**63, size=len(labels)).astype(np.uint64)
        sites.append(TableSite(np.vstack([x, labels]).astype(np.float32), views, hashes))
        drawn.append((x, labels, held_out_persons(hashes, 0.5)))
    result = carry_out(plan, sites, rng)
    own = [(x[:, held], labels[held]) for x, labels, held in drawn]
    new = [kind.draw(number, _NEW, rng) for number in range(SITES)]
    scores, labels = scored(result, new, kind.bound)
    found = result.tables["auc"].rows[0][1]
    slope = result.tables["calibration"].rows[1][1]
    assert isinstance(found, Finding)
    assert isinstance(slope, Finding)
    truth = auc(scores, labels)
    ones = (labels > 0).astype(np.float64)
    line_of_all = calibration_line(ones, 1 - ones, scores, 0.0, slope=True)
    real = float("nan") if line_of_all is None else float(line_of_all.values[1])
    return Judged(
        truth,
        found.value,
        auc(*scored(result, own, kind.bound)),
        _contains(found, truth),
        found.state == "found",
        slope.value - real,
        _contains(slope, real),
    )


def scored(
    result: Result, people: Sequence[tuple[Array, Array]], bound: float
) -> tuple[Array, Array]:
    """Return the scores of participants of each site, and their labels."""
    weights = result.arrays["predictor"][:COLUMNS, 0]
    constants = result.arrays["predictor_constants"]
    scores = [weights @ clip_columns(x, bound) + constants[k] for k, (x, _) in enumerate(people)]
    return np.concatenate(scores), np.concatenate([labels for _, labels in people])


def _contains(found: Finding, truth: float) -> float:
    if not found.reported or np.isnan(truth):
        return float("nan")
    return float(found.low - 1e-9 <= truth <= found.high + 1e-9)


def judged(
    kind: Kind,
    participants: int,
    epsilon: float,
    judging: float,
    seeds: Sequence[int],
    *,
    anyway: bool,
) -> tuple[str, ...]:
    """Return the cells of a row."""
    try:
        plan = plan_of(kind, participants, epsilon, judging, anyway=anyway)
    except StudyError as error:
        return ("refused: " + str(error).split("got ")[1].split(".  ")[0].split(" (")[0],)
    runs = [run_study(kind, plan, participants, seed) for seed in seeds]
    values = {name: np.array([getattr(each, name) for each in runs]) for name in runs[0].__dict__}
    reported = ~np.isnan(values["value"])
    errors = values["value"] - values["truth"]
    noise = values["value"] - values["own"]
    forecasts = plan.analysis.expect()[-2:]
    if not reported.any():
        return (f"{np.mean(values['truth']):.3f}", *("–",) * 7, "100 %")
    return (
        f"{np.mean(values['truth']):.3f}",
        f"{np.nanmean(errors):+.4f} ± {np.nanstd(errors) / reported.sum() ** 0.5:.4f}",
        f"{np.sqrt(np.nanmean(noise**2)):.4f}",
        f"{forecasts[0].value:.4f}",
        f"{forecasts[1].value:.4f}",
        f"{np.nanmean(values['covered']):.3f}",
        f"{np.mean(values['found']):.2f}",
        f"{_mean(values['slope_covered'])}",
        f"{100 * np.mean(~reported):.0f} %",
    )


def _mean(values: Array) -> str:
    return "–" if np.isnan(values).all() else f"{np.nanmean(values):.3f}"


_NAMES = (
    "AUC | bias | noise | forecast noise | chance | coverage | found | coverage of the slope | "
    "withheld"
)


def alone_table(seeds: Sequence[int]) -> None:
    """Print errors where the AUC has the loss of the whole ε, for a study of half the loss."""
    heading(f"held out | ε of the AUC | {_NAMES}")
    for held, epsilon in ((1000, 2.0), (1000, 1.0), (2000, 2.0), (500, 2.0), (250, 1.0)):
        whole = epsilon_of(mu_of(epsilon, DELTA) * 2**0.5, DELTA)
        cells = judged(NORMAL, 2 * held, whole, 0.5, seeds, anyway=False)
        line(f"{held:,}", f"{epsilon:g}", *cells)


def kinds_table(seeds: Sequence[int]) -> None:
    """Print errors for kinds of participants; studies that would be refused are run."""
    heading(f"participants | ε | of which held out | {_NAMES}")
    for kind in KINDS:
        for epsilon, participants in ((2.0, 2000), (8.0, 2000), (8.0, 600)):
            cells = judged(kind, participants, epsilon, 0.3, seeds, anyway=True)
            line(kind.name, f"{epsilon:g}", f"{participants // 2:,}", *cells)


def main(studies: int = 40, seed: int = 0) -> None:
    """Print the tables."""
    seeds = range(seed, seed + studies)
    alone_table(seeds)
    kinds_table(seeds)


if __name__ == "__main__":
    command(main)
