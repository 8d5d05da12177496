"""Which sites' persons are like those of one, and a made-up summary of them.

Source: Sarpatwar et al. (2019), Differentially private distributed data summarization under
covariate shift. Their first hash, random Fourier features, makes of every site one vector, the
mean embedding; in place of the second (MWEM) it is released once with Gaussian noise. Squared
distances of mean embeddings (MMD²), the mixture of sites that is nearest to the target, and points
that summarize it are then worked out at no further cost. The points are made up: a site's own
persons, which the published auction hands over, have no price in a privacy budget.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from consortium.algorithms.base import Case, Local, Query, Run
from consortium.algorithms.summarize.forecast import WITHHELD, expect
from consortium.algorithms.summarize.parameters import SummarizeParameters
from consortium.algorithms.summarize.plan import SummarizePlan
from consortium.algorithms.summarize.result import read_embeddings, summarize_result
from consortium.algorithms.summarize.site import mean_embedding

_VIEWS = (("x", 4), ("y", 1))  # of the examples


class Summarize(SummarizePlan):
    """One release of 2 F numbers of each site."""

    name = "summarize"
    title = "summary under covariate shift"
    takes = "features"
    needs_means = True
    Parameters = SummarizeParameters
    statistics: ClassVar[Mapping[str, Local]] = {"mean_embedding": mean_embedding}
    cases: ClassVar[Sequence[Case]] = (
        Case({"frequencies": 6, "points": 2}, views=_VIEWS),
        Case({"frequencies": 5, "points": 1, "target": "north", "width": 0.7}, views=_VIEWS),
    )

    expect = expect

    def withheld(self) -> str:
        """Why nothing is foretold of the mixture."""
        return WITHHELD

    def run(self) -> Run:
        """Ask once, and compare."""
        release = yield Query("summarize", "mean_embedding")
        return summarize_result(self, read_embeddings(self, release))
