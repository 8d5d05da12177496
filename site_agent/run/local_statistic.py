"""A site's own numbers for one query, held against the plan before anything is done with them."""

import numpy as np

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Array, Query
from consortium.errors import ConsortiumError, PrivacyError, ProtocolError
from consortium.privacy.clipping import vector_norm
from consortium.privacy.mechanism import Mechanism
from site_agent.loading.progress import Data


def local_statistic(algorithm: str, data: Data, query: Query, mechanism: Mechanism) -> Array:
    """The site's own numbers; its algorithm is trusted with the data, the query is not.

    Parameters
    ----------
    mechanism : Mechanism
        As planned, with the bound of what one person adds.

    Returns
    -------
    array of float64, shape (entries,)
        Within the bound's norm.

    Raises
    ------
    PrivacyError
        If it can't be computed for this query, or is not what was planned.
    """
    local = REGISTRY[algorithm].statistics[query.statistic]
    try:
        statistic = np.asarray(local(data, query, mechanism.bound), dtype=np.float64)
    except ConsortiumError as error:
        if isinstance(error, ProtocolError):
            raise PrivacyError(f"A query is refused: {error}") from error
        raise
    except Exception as error:
        raise PrivacyError(
            f"'{query.statistic}' can't be computed for the centre's query "
            f"({type(error).__name__}: {error}); tell the people of the study."
        ) from error
    norm = vector_norm(statistic)
    if statistic.size != mechanism.entries or not norm <= mechanism.bound.norm * (1 + 1e-6):
        raise PrivacyError(
            f"'{query.statistic}' has {statistic.size} numbers of norm {norm:g} where "
            f"{mechanism.entries} of at most {mechanism.bound.norm:g} are planned; "
            "tell the people of the study."
        )
    return statistic
