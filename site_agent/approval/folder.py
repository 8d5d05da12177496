"""A site's folder as one value: its settings and keys, and its data as a study takes them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from consortium.membership.keys import Identity, load_identity
from consortium.privacy.bounds import Unit
from consortium.space.study_space import Space
from consortium.study.data_section import DataSection
from site_agent.approval.approval import Papers, read_papers
from site_agent.config import SiteConfig
from site_agent.data.people import left_out_here
from site_agent.images.series import SiteDataset
from site_agent.ledger.ledger import Ledger
from site_agent.policy.policy import Policy


@dataclass(frozen=True)
class SiteFolder:
    """What stands in a site's folder."""

    path: Path
    config: SiteConfig
    identity: Identity

    @classmethod
    def open(cls, path: Path) -> SiteFolder:
        """Read settings and keys.

        Raises
        ------
        ConfigurationError
            If either can't be read.
        """
        return cls(path, SiteConfig.load(path), load_identity(path))

    @cached_property
    def policy(self) -> Policy:
        """What the site lets any study ask; raises ConfigurationError if it can't be read."""
        return Policy.load(self.path)

    @cached_property
    def ledger(self) -> Ledger:
        """What was spent."""
        return Ledger(self.config.ledger)

    def papers(self, study: Path, roster: Path) -> Papers:
        """Read a study as it is shown before a yes; raises as `read_papers`."""
        return read_papers(self.path, self.config.name, self.identity.public, study, roster)

    def series(self, data: DataSection, space: Space, unit: Unit) -> SiteDataset:
        """The site's image series without those that its own table leaves out; nothing is read."""
        config = self.config
        return SiteDataset(
            *(config.dataset, data, space, unit, config.cache),
            without=left_out_here(config.left_out),
            aliases=config.aliases,
        )
