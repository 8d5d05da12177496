"""A plan of one site carried out here, with the noise, and by the steps, of a study.

There is nobody to hide from but those who see the result, so that nothing is masked; all else is
what a site and a centre do with the scheme ``local``.
"""

import secrets
from collections.abc import Callable

import numpy as np

from consortium.algorithms.base import SiteData
from consortium.engine.session import Session
from consortium.errors import PrivacyError
from consortium.privacy.noise import GaussianSampler
from consortium.study.plan import Plan

Keys = Callable[[], bytes]
"""Returns 32 bytes for one round's noise."""


def system_keys() -> bytes:
    """A key of the operating system's randomness, used once and kept nowhere."""
    return secrets.token_bytes(32)


def seeded_keys(seed: int) -> Keys:
    """Keys that anybody can make again: they protect no participant.

    Parameters
    ----------
    seed : int
    """
    generator = np.random.default_rng(seed)
    return lambda: generator.bytes(32)


def carry_out(plan: Plan, data: SiteData, keys: Keys) -> Session:
    """Ask and answer every round; what is returned holds no more than was released.

    Parameters
    ----------
    plan : Plan
        Of one site, with the scheme ``local``.
    data : SiteData
    keys : callable
        Returns a fresh key for each round.

    Raises
    ------
    PrivacyError
        If the plan is of another kind.
    """
    privacy = plan.study.privacy
    if len(plan.study.sites) != 1 or privacy.scheme != "local":
        raise PrivacyError(
            f"A plan of {len(plan.study.sites)} sites with scheme {privacy.scheme} can't be "
            "carried out in one place; plan one site with scheme local."
        )
    local = plan.analysis.statistics
    session = Session(plan)
    while session.pending is not None:
        query, mechanism = session.question, session.stage.mechanism
        statistic = local[query.statistic](data, query, mechanism.bound)
        share = mechanism.protect(0, statistic, GaussianSampler(keys()))
        session.accept(mechanism.release(share.masked, [share.opened]), [0])
    return session
