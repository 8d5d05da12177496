"""A site's half of `summarize`: the mean embedding of its participants."""

from consortium.algorithms.base import Array, Query, SiteData
from consortium.algorithms.summarize.kernels.mean_embedding import fourier_features
from consortium.algorithms.summarize.plan import SummarizePlan
from consortium.privacy.bounds import Bound
from consortium.privacy.clipping import clip_vector


def mean_embedding(plan: SummarizePlan, data: SiteData, query: Query, bound: Bound) -> Array:
    """Return the mean over participants of Fourier features of norm one, times the bound."""
    del query
    embedding: Array = fourier_features(data.table(), plan.frequencies).mean(axis=1)
    return bound.norm * clip_vector(embedding, 1.0)
