"""Real tables whose participants have one of several levels, as sites that a study reads."""

from pathlib import Path
from typing import Any

import numpy as np

from consortium.opened_study import open_study
from consortium.study.spec import Study
from site_agent.loading.feature_vectors import FeatureDataset
from tests.support.cases import SITES

NOISE, AGE = 0.2, 0.15
"""Residual deviation, and effect of the standardized age on the score."""


class People:
    """Participants of four hospitals: site, level (drawn), age between -1 and 1, and a score.

    ``effects`` are the levels' effects on the score; every second level is a little older.
    """

    def __init__(self, many: int, persons: int, seed: int, *, effects: float = 0.2) -> None:
        generator = np.random.default_rng(seed)
        self.levels = [f"l{number}" for number in range(many)]
        self.site = np.arange(persons) % len(SITES)
        self.level = generator.integers(many, size=persons)
        self.age = np.clip(generator.uniform(-1, 0.8, persons) + 0.2 * (self.level % 2), -1, 1)
        self.effects = effects * np.linspace(-1, 1, many)
        noise = NOISE * generator.standard_normal(persons)
        score = AGE * self.age + self.effects[self.level] + 0.05 * self.site + noise
        self.score = np.clip(score, -1, 1)
        self.other = np.clip(0.5 * self.age + generator.uniform(-0.5, 0.5, persons), -1, 1)

    @property
    def dummies(self) -> np.ndarray:
        """Return one column for each level, participants x levels."""
        return np.eye(len(self.levels))[self.level]

    @property
    def constants(self) -> np.ndarray:
        """Return one column for each site, participants x sites."""
        return np.eye(len(SITES))[self.site]

    def views(self) -> dict[str, dict[str, Any]]:
        """Return a view for each column, by name."""
        limits = {"low": -1, "high": 1}
        columns: dict[str, dict[str, Any]] = {"level": {"levels": self.levels}}
        columns |= {name: dict(limits) for name in ("age", "score", "other")}
        return {
            name: {"name": name, "source": "table", "columns": {name: column}}
            for name, column in columns.items()
        }

    def study(self, algorithm: str, views: list[dict[str, Any]], analysis: Any, **privacy: Any):
        """Return a study of some of the views."""
        promise = {"epsilon": 8.0, "delta": 1e-5, "colluding_sites": 1}
        return Study.model_validate(
            {
                "study": "levels",
                "sites": list(SITES),
                "privacy": {**promise, **privacy},
                "algorithm": algorithm,
                "analysis": analysis,
                "features": views,
            }
        )

    def sites(self, folder: Path, study: Study) -> list[FeatureDataset]:
        """Write the hospitals' data sets, and read them."""
        opened, found = open_study(study, folder), []
        for number, name in enumerate(SITES):
            home = folder / name
            home.mkdir(parents=True, exist_ok=True)
            rows = ["participant_id\tlevel\tage\tscore\tother"]
            for k in np.flatnonzero(self.site == number):
                numbers = (self.age[k], self.score[k], self.other[k])
                told = "\t".join(repr(float(x)) for x in numbers)
                rows.append(f"sub-{k:05d}\t{self.levels[self.level[k]]}\t{told}")
            (home / "participants.tsv").write_text("\n".join(rows) + "\n")
            found.append(FeatureDataset(home, opened, folder / "cache"))
        return found
