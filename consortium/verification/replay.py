"""Replay of the analysis from its releases: the queries and the result must be the same.

The effect of rounding on a result is measured by computing it again from perturbed releases.
Another number of threads, another BLAS or processor rounds differently. The results of
factorizations and sums of size n are exact for an input that is perturbed by about n·u of its norm,
u being half of the machine's epsilon (Higham 2002, chapters 3, 10 and 19). So the analysis is
repeated with a perturbation of this size in the releases. If it is well conditioned, its result
does not change. If it is not, or depends on a decision, the result changes as much as it may on
another machine.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from consortium.algorithms.base import Array, Query, Result
from consortium.engine.names import QUERY
from consortium.engine.queries import decode_query, encode_query
from consortium.engine.session import Round, Session
from consortium.errors import ConsortiumError, ContradictionError
from consortium.verification.agreement import RunAgreement
from consortium.verification.record import evidence_path, round_file
from consortium.verification.rounds import Released
from consortium.verification.verdict import Verdict

SLACK = 1e-6
"""Difference of equal results in files of single precision, relative to the largest value."""
Apart = Mapping[str, Mapping[str, float]]
"""Differences of each file's parts from the expected values."""
TRIES = 16
TAILS = 10.0
"""Safety factor, because a number of trials does not show the largest possible difference."""


def perturb_release(values: Array, size: int, generator: np.random.Generator) -> Array:
    """Return released numbers perturbed by the rounding of an analysis of ``size`` features."""
    step = generator.standard_normal(np.shape(values))
    scale = size * np.finfo(np.float64).eps * float(np.linalg.norm(values))
    return np.asarray(values + step * (scale / max(float(np.linalg.norm(step)), 1.0)))


@dataclass
class Spread:
    """Differences of a replayed file's parts from the published ones, and those by rounding."""

    found: Apart
    """Differing parts of each file that differs, by name."""
    moved: dict[str, dict[str, float]] = field(default_factory=dict)

    def see(self, name: str, apart: Mapping[str, float]) -> None:
        """Count what one more try made of a file."""
        known = self.moved.setdefault(name, {})
        whole = max((far for part, far in apart.items() if part not in self.found[name]), default=0)
        for part in self.found[name]:
            far = apart.get(part, np.inf if np.isinf(whole) else 0.0)
            known[part] = max(known.get(part, 0.0), far)

    def beyond(self, name: str, ever: Sequence[str] = ()) -> dict[str, tuple[float, float]]:
        """Return parts that rounding doesn't explain, with their differences and its own."""
        moved = self.moved.get(name, {})
        moves = {part: (far, moved.get(part, 0.0)) for part, far in self.found[name].items()}
        return {
            part: (far, most)
            for part, (far, most) in moves.items()
            if part not in ever and far > max(SLACK, TAILS * most)
        }


@dataclass(frozen=True)
class Replayed:
    """An analysis that was fed its releases."""

    queries: tuple[Query, ...]
    """Its queries."""
    rounds: tuple[Round, ...]
    result: Result | None
    """None if the analysis asks for more rounds."""


def replay(
    agreement: RunAgreement, rounds: Sequence[Released], seed: int | None = None
) -> Replayed:
    """Compute the queries and the result again from a run's releases.

    Raises ContradictionError if there are more rounds than the analysis asks for, or a release
    breaks the promise.

    Parameters
    ----------
    seed : int, optional
        Of a step of the size of rounding in every release. Without it there is none.
    """
    session = Session(agreement.plan)
    queries = []
    generator = None if seed is None else np.random.default_rng(seed)
    for done in rounds:
        where = evidence_path(round_file(done.number, QUERY))
        if session.pending is None:
            raise ContradictionError(where, "the analysis was finished before this round.")
        queries.append(session.pending)
        values = done.stage.mechanism.lattice.decode(done.kept.ring)
        if generator is not None:
            values = perturb_release(values, agreement.plan.shape.features, generator)
        try:
            session.accept(values, done.kept.survivors)
        except ConsortiumError as error:
            raise ContradictionError(where, str(error)) from error
    return Replayed(tuple(queries), tuple(session.rounds), session.result)


def other_queries(
    again: Replayed,
    rounds: Sequence[Released],
    fetch: Callable[[str, int], bytes],
    verdict: Verdict,
) -> Apart:
    """Return the differences of queries from those of the replay, by file, and report rounding.

    Raises ContradictionError if a question can't be read.

    Parameters
    ----------
    fetch : callable
        Returns a public array, given its digest and size.
    verdict : Verdict
        Receives small deviations.
    """
    found: dict[str, dict[str, float]] = {}
    for due, done in zip(again.queries, rounds, strict=True):
        where = evidence_path(round_file(done.number, QUERY))
        try:
            # Also where it is the same: the arrays that it names are looked at.
            off = query_distance(due, decode_query(done.query, fetch))
        except ContradictionError:
            raise
        except ConsortiumError as error:
            raise ContradictionError(where, str(error)) from error
        if off > SLACK:
            found[where] = {QUERY: off}
        elif encode_query(due)[0] != done.query:
            verdict.add(where, f"deviates by {off:.1g} of the norm from what this machine asks.")
    return found


def query_distance(due: Query, asked: Query) -> float:
    """Return the largest relative difference of two queries' arguments, or infinity."""
    same = (due.stage, due.statistic) == (asked.stage, asked.statistic)
    if not same or due.arguments.keys() != asked.arguments.keys():
        return np.inf
    return max((_apart(due.arguments[n], asked.arguments[n]) for n in due.arguments), default=0.0)


def _apart(one: object, other: object) -> float:
    if isinstance(one, str) or isinstance(other, str):
        return 0.0 if one == other else np.inf
    first = np.asarray(one, dtype=np.float64)
    second = np.asarray(other, dtype=np.float64)
    return _relative(first, second)


def _relative(first: np.ndarray, second: np.ndarray) -> float:
    """Return the norm of a difference over the larger norm; infinite for other shapes."""
    if first.shape != second.shape:
        return np.inf
    size = max(float(np.linalg.norm(first)), float(np.linalg.norm(second)))
    gap = float(np.linalg.norm(first - second))
    off = gap / size if size else 0.0
    return off if np.isfinite(off) else np.inf
