"""Queries and data of such scales that squares over- or underflow, to get past the clipping."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Array, Local, Query
from consortium.errors import RangeError, SoftwareError
from consortium.privacy.bounds import Bound, Unit
from consortium.privacy.lattice import Lattice
from consortium.simulation.array_data import ArrayData
from tests.attacks.attack_kinds import Stage, attack
from tests.support.cases import shape_of

_GUARD = "consortium.privacy.clipping:_extreme"
_PERSONS = 10


def _unguarded(_real: object) -> object:
    """All squares pass for ordinary ones."""
    return lambda bound, *squares: np.zeros(0, dtype=np.intp)


def _answer(name: str, query: Query, person: Array, bound: Bound) -> Array:
    """What a site of one person and nine of zeros answers."""
    people = [person[:, None], *np.zeros((_PERSONS - 1, len(person), 1))]
    views, said = _STUDIES[name]
    site, analysis = ArrayData(people, views=views), REGISTRY[name]
    plan = analysis(analysis.Parameters(**said), shape_of([site]))
    with np.errstate(all="ignore"):
        return plan.statistics[query.statistic](plan, site, query, bound)


_WORDS = ("one", "two", "three")
_STUDIES: Mapping[str, tuple[tuple[tuple[str, int], ...], Mapping[str, Any]]] = {
    "tensor": (
        tuple((word, 3) for word in _WORDS),
        {"components": 2, "model": "topics", "words": _WORDS},
    ),
    "network": ((("x", 1), ("y", 1)), {"target": "y", "hidden": (1,), "held_out": 0.0}),
}


def _whitened(rows: tuple[float, float, float]) -> Query:
    """Has a person's three words whitened with rows of these scales."""
    return Query("third", "topic_third", {"whitening": np.array(rows)[:, None]})


_SAYS = np.eye(3).ravel()  # the first word is the first of three, and so on
_BOUND = Bound(1.0)


@attack(
    "hub",
    guard=_GUARD,
    without="one participant moves the site's mean by ten times the charged sensitivity",
    stops="",
    instead=_unguarded,
)
def whitening_whose_rows_hide_each_others_scale(stage: Stage) -> bool:
    """Whitens three words by 1e-170, 1e100 and 2e71; the square of one is zero."""
    moved = _answer("tensor", _whitened((1e-170, 1e100, 2e71)), _SAYS, _BOUND)
    return float(np.linalg.norm(moved)) > _BOUND.sensitivity(_PERSONS) * (1 + 1e-6)


def _refused(values: Array, bound: Bound, stage: Stage) -> bool:
    try:
        Lattice(2.0**-20, 64).encode(values, bound.norm)
    except RangeError as error:
        stage.said.append(str(error))
        return True
    return False


@attack(
    "hub",
    guard=_GUARD,
    without="an answer or a refusal reveals whether a participant is at the site, without a charge",
    stops="",
    instead=_unguarded,
)
def whitening_that_makes_one_person_a_refusal(stage: Stage) -> bool:
    """Chooses scales at which a site refuses to answer if one participant is among its own."""
    query = _whitened((1e-170, 1e100, 2e90))
    found = [_answer("tensor", query, person, _BOUND) for person in (_SAYS, np.zeros(9))]
    return len({_refused(values, _BOUND, stage) for values in found}) == 2


@attack(
    "hub",
    guard=_GUARD,
    without="one participant moves a gradient under a small bound far beyond the sensitivity",
    stops="",
    instead=_unguarded,
)
def network_sure_of_itself(stage: Stage) -> bool:
    """Asks for gradients at a weight of 1e153, at which the prediction's error is 1e-165."""
    hidden, last = [0.0, 1e153], [-380.0, 0.0]  # bias and weight of either layer
    query = Query("network", "network_gradient", {"parameters": np.array([*hidden, *last])})
    bound = Bound(1e-13)
    person, nobody = (
        _answer("network", query, each, bound)
        for each in (np.array([1.0, -1.0]), np.array([0.0, -1.0]))
    )
    return float(np.linalg.norm(person - nobody)) > bound.sensitivity(_PERSONS) * (1 + 1e-6)


@attack(
    "file giver",
    guard=_GUARD,
    without="a site's refusal reveals that a participant's scan is among its own",
    stops="",
    instead=_unguarded,
)
def scan_whose_numbers_are_none(stage: Stage) -> bool:
    """Gives a scan with an infinite volume, which must not decide whether the site answers."""
    scan = np.ones((3, 4))
    damaged = scan.copy()
    damaged[:, 1] = np.inf
    units: tuple[Unit, ...] = ("subject", "timepoint")
    for name, statistic in (("average", "mean_volume"), ("pca", "second_moment")):
        local = REGISTRY[name].statistics[statistic]
        for unit in units:
            sites = (ArrayData([scan, other], unit) for other in (scan, damaged))
            query = Query("stage", statistic)
            if len({_refuses(local, site, query, stage) for site in sites}) == 2:
                return True
    return False


def _refuses(local: Local, site: ArrayData, query: Query, stage: Stage) -> bool:
    """Whether a site would answer nothing: to its own sum, or to what encodes it."""
    try:
        with np.errstate(all="ignore"):
            values = local(None, site, query, _BOUND)
    except SoftwareError as error:
        stage.said.append(str(error))
        return True
    return _refused(values, _BOUND, stage)


def _in_one_product(_real: object) -> object:
    """All subjects' columns stand side by side, of which a library sums the first otherwise."""

    def product(matrix: Array, people: Array) -> Array:
        columns = people.transpose(1, 0, 2).reshape(len(matrix), -1)
        terms = matrix[:, :, None] * columns
        whole, others = (np.zeros_like(columns) for _ in range(2))
        for term in range(len(matrix)):
            whole += terms[:, term]
        for term in (*range(0, len(matrix), 2), *range(1, len(matrix), 2)):
            others += terms[:, term]
        whole[:, _FIRST:] = others[:, _FIRST:]
        return whole.reshape(len(matrix), -1, people.shape[2]).transpose(1, 0, 2)

    return product


_FIRST = 320
"""Columns of a product that a BLAS was seen to round in another way than those behind them."""


@attack(
    "hub",
    guard="consortium.algorithms.ica.kernels.infomax:unmix_alone",
    without="a scan that is one volume shorter changes other participants' contributions",
    stops="",
    instead=_in_one_product,
)
def unmixing_that_is_nothing_but_rounding(stage: Stage) -> bool:
    """Asks for a component whose terms cancel: the place of a column then decides it."""
    draws, size, volumes, persons = np.random.default_rng(0), 10, 100, 60
    scans = [draws.standard_normal((12, volumes)).astype(np.float32) for _ in range(persons)]
    shorter = [*scans[:30], scans[30][:, 1:], *scans[31:]]
    site, other = ArrayData(scans), ArrayData(shorter)
    plan = REGISTRY["ica"](REGISTRY["ica"].Parameters(components=size), shape_of([site]))
    (stage_of,) = (each for each in plan.releases if each.stage == "ica")
    unmixing = np.zeros((size, size))
    unmixing[0, :3], unmixing[1, 0] = (2.0**70, 2.0**40, -(2.0**70)), 2.0**50
    whitening = np.repeat(draws.standard_normal((12, 1)), size, axis=1)
    query = Query("ica", "rotation", {"unmixing": unmixing, "whitening": whitening})
    with np.errstate(all="ignore"):
        one, two = (
            plan.statistics["rotation"](plan, each, query, stage_of.bound) for each in (site, other)
        )
    allowed = stage_of.bound.sensitivity(persons) * (1 + 1e-6)
    return float(np.linalg.norm(one - two)) > allowed
