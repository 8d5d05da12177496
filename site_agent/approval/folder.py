"""A site's folder as one value, and a study compared with it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from consortium.membership.keys import Identity, load_identity
from consortium.opened_study import OpenedStudy, open_signed
from consortium.privacy.bounds import Unit
from consortium.space.study_space import Space
from consortium.study.data_section import DataSection
from consortium.study.spec import Study
from site_agent.approval.approval import Papers, read_papers
from site_agent.config import SiteConfig
from site_agent.data.cap import Cap
from site_agent.data.people import left_out_here, site_tables
from site_agent.data.survey import SkippedPerson, in_turn, over_the_limit
from site_agent.engines.open import open_engine
from site_agent.enrolment.pinned_consortium import check_members
from site_agent.images.series import SiteDataset
from site_agent.ledger.ledger import Ledger, over_limit, spent_in
from site_agent.loading.feature_vectors import FeatureDataset
from site_agent.loading.open import open_dataset
from site_agent.policy.policy import Policy, SpentLoss


@dataclass(frozen=True)
class SiteFolder:
    """Configuration, policy, keys and ledger of a site's folder, read together."""

    path: Path
    config: SiteConfig
    identity: Identity

    @classmethod
    def open(cls, path: Path) -> SiteFolder:
        """Read settings and keys; raises ConfigurationError if either can't be read."""
        return cls(path, SiteConfig.load(path), load_identity(path))

    @cached_property
    def policy(self) -> Policy:
        """Limits of the site for every study. Raises ConfigurationError if they can't be read."""
        return Policy.load(self.path)

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger of privacy losses."""
        return Ledger(self.config.ledger)

    def papers(self, study: Path, roster: Path) -> Papers:
        """Read a study as it is shown before its approval. Raises errors as `read_papers`."""
        return read_papers(self.path, self.config.name, self.identity.public, study, roster)

    def series(self, data: DataSection, space: Space, unit: Unit) -> SiteDataset:
        """Return the site's image series, unread, without those that its own table excludes."""
        config = self.config
        return SiteDataset(
            source=config.dataset,
            data=data,
            space=space,
            unit=unit,
            cache=config.cache,
            without=left_out_here(config.left_out, site_tables(config)),
            tables=site_tables(config),
        )


@dataclass(frozen=True)
class StudyCase:
    """A study before its approval, compared with the site's folder."""

    site: SiteFolder
    papers: Papers

    @property
    def study(self) -> Study:
        """The study's request."""
        return self.papers.signed.study

    @cached_property
    def centres(self) -> Collection[str]:
        """Keys that the consortium's centre has or had. Raises errors as `check_members`."""
        return check_members(self.site.path, self.papers.members).centres

    @cached_property
    def opened(self) -> OpenedStudy:
        """The study with its files. Raises ConsortiumError if a public file can't be used."""
        return open_signed(self.papers.signed)

    @cached_property
    def data(self) -> SiteDataset | FeatureDataset:
        """The site's data as a run would use them, without participants whose budget is used up."""
        config = self.site.config
        tables = site_tables(config)
        return open_dataset(
            source=config.dataset,
            opened=self.opened,
            cache=config.cache,
            engine=open_engine(config),
            without=in_turn(left_out_here(config.left_out, tables), self._over_budget),
            tables=tables,
            cap=Cap.of(self.study, config.name, self.site.identity),
        )

    def spent(self, people: Sequence[str]) -> SpentLoss:
        """Return the ledger's loss of the most charged of the participants who would take part."""
        dataset = str(self.site.config.dataset.resolve())
        return spent_in(self.site.ledger, dataset, self.study, self.centres, people)

    def over_limit(self, people: Sequence[str]) -> list[str]:
        """Return the participants whose budget is used up, who are excluded from a run."""
        return over_limit(self.site.ledger, self.site.policy, self.study, self.centres, people)

    def _over_budget(self, people: Sequence[str]) -> Iterator[SkippedPerson]:
        return map(over_the_limit, self.over_limit(people))
