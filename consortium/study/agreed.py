"""A plan as whole numbers: what two parties must have in common before the first round.

Every party works out its own plan. Floating-point numbers may differ in their last digits from
one processor to another; sizes, grids and noise, in whole steps of the grid, may not, or some
site's noise would be another than everybody believes. Of numbers that a plan searches, draws or
solves for about six digits are compared: by them a party is found out whose libraries find others.
"""

import math
from typing import Any

import msgspec
import numpy as np

from consortium.base.array import Array
from consortium.secagg.crypto import digest
from consortium.study.plan import Plan, Stage

_LABEL = "consortium plan 5"


def plan_integers(plan: Plan) -> dict[str, Any]:
    """All that decides a run's noise and sums, as integers and names."""
    privacy, masking = plan.study.privacy, plan.masking
    return {
        "units": list(plan.shape.units),
        "colluding": privacy.colluding_sites,
        "dropouts": privacy.dropouts,
        "hidden": masking.hidden,
        "holders": masking.holders,
        "threshold": masking.threshold,
        "stages": [_stage(stage) for stage in plan.stages],
        "computed": {name: _digits(value) for name, value in plan.analysis.computed.items()},
    }


def _digits(value: Array | float) -> tuple[str, str]:
    """Six digits of the sum of all magnitudes, and of a part of it that arrays hardly share."""
    numbers = np.ravel(value)
    whole = float(np.abs(numbers).sum())
    part = float(numbers @ np.cos(np.arange(numbers.size))) / whole if whole else 0.0
    return f"{whole:.5e}", f"{round(part, 5) + 0.0:.5f}"


def _stage(stage: Stage) -> dict[str, Any]:
    mechanism = stage.mechanism
    return {
        "stage": stage.name,
        "statistic": stage.release.statistic,
        "rounds": stage.release.rounds,
        "scheme": mechanism.scheme,
        "each": mechanism.each,
        "entries": mechanism.entries,
        "bits": mechanism.lattice.bits,
        "log2_step": round(math.log2(mechanism.lattice.step)),
        "dropped": mechanism.lattice.dropped,
        "correlated": list(mechanism.correlated),
        "local": list(mechanism.local),
    }


def plan_digest(plan: Plan) -> bytes:
    """32 bytes that are the same for two plans if, and only if, `plan_integers` are."""
    content = msgspec.json.encode(plan_integers(plan), order="sorted")
    return digest(_LABEL, plan.study.digest, content)
