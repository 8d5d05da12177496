"""A site's participants as feature vectors: the views of a study, matched by participant."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import Extent, Resolution
from consortium.base.cached_property import cached_property
from consortium.errors import DataError
from consortium.kernels.tiles import product_of_columns
from consortium.opened_study import OpenedStudy
from consortium.privacy.bounds import Unit
from consortium.space.study_space import AnyViewSpace, ViewSpace
from consortium.study.spec import Study
from consortium.views.eeg import EegView
from consortium.views.fmri import FmriView
from consortium.views.surface import SurfaceView
from consortium.views.table import TableView
from site_agent.data.cap import NO_CAP, Cap
from site_agent.data.people import chosen_by, everybody_in, participants_path, rows_that_fit
from site_agent.data.survey import (
    NobodyError,
    SkippedPerson,
    Survey,
    Without,
    excludes_nobody,
    in_turn,
    twin_folders,
)
from site_agent.data.tsv import is_nobodys, person_of, read_table
from site_agent.data.wording import PLAIN_TABLES, SiteTables, Wording
from site_agent.engines.base import Engine, Threads
from site_agent.images.coverage import Coverage, count_coverage
from site_agent.labels import Spellings
from site_agent.loading.units import (
    families_of,
    group_rows,
    read_each_session,
    rows_by_person,
    single_session_vectors,
    stack_rows,
    unit_sentences,
)

Vectors = Mapping[str, NDArray[np.float64]]
Found = tuple[Vectors, list[SkippedPerson]]


def _by_session(study: Study) -> bool:
    """Return whether each session of a participant is a row of its own."""
    units = study.analysis.grouped
    return units is not None and units.sessions


class ReadFrom(NamedTuple):
    """Sources and settings for reading the views of a study."""

    source: Path
    """The site's data set."""
    opened: OpenedStudy
    cache: Path
    """The site's folder for computed values."""
    engine: Engine
    tables: SiteTables
    """The site's own names and values."""


def _read_columns(asked: ReadFrom, view: ViewSpace[TableView]) -> Found:
    study = asked.opened.study
    wording = Wording(study.data.missing, asked.tables)
    vectors, lacking = read_table(asked.source, view.view, wording, by_session=_by_session(study))
    complete = {person_of(row) for row in vectors}
    skipped = {person_of(row): replace(s, label=person_of(row)) for row, s in lacking.items()}
    return vectors, [each for person, each in skipped.items() if person not in complete]


def _read_images(asked: ReadFrom, view: ViewSpace[FmriView]) -> Found:
    from site_agent.images.measures import measure_images  # image libraries

    return measure_images(
        asked.source,
        study=asked.opened.study,
        space=asked.opened.space,
        view=view,
        cache=asked.cache,
        engine=asked.engine,
        tables=asked.tables,
    )


def _read_recordings(asked: ReadFrom, view: ViewSpace[EegView]) -> Found:
    from site_agent.eeg.vectors import read_recordings  # MNE

    data = asked.opened.study.data
    return read_recordings(asked.source, view.view, data, asked.cache, asked.engine)


def _read_surfaces(asked: ReadFrom, view: ViewSpace[SurfaceView]) -> Found:
    from site_agent.images.surfaces import read_surfaces  # image libraries

    study = asked.opened.study
    return read_surfaces(asked.source, study.data, view, study.gaps_of(view.view))


READERS: Mapping[str, Callable[[ReadFrom, Any], Found]] = {
    "table": _read_columns,
    "fmri": _read_images,
    "surface": _read_surfaces,
    "eeg": _read_recordings,
}
"""Functions that read each kind of view, by the view's ``source``.

They return a vector for each participant who has one, by label without ``sub-``, and all other
participants with the reason.
"""


class _Read(NamedTuple):
    """A view as it was read: vectors by row, which is a participant or a participant's session."""

    name: str
    found: Vectors
    lacking: Mapping[str, SkippedPerson]
    persons: frozenset[str]

    def of(self, row: str) -> NDArray[np.float64]:
        """Return the vector of a row, or of its participant."""
        return self.found[row if row in self.found else person_of(row)]


class _Matched(NamedTuple):
    """The units of a data set, matched over all views."""

    survey: Survey
    units: Mapping[str, Sequence[str]]
    """Rows of every unit that qualifies, by the unit's name."""
    taken: Sequence[str]
    """Names of the units that the cap includes, in the order of the units."""
    table: NDArray[np.float64]
    """D x M_s, one column for each included unit."""


def _without_person(skipped: SkippedPerson) -> str:
    """Return a reason in words that fit all participants with the same reason."""
    return skipped.detail.replace(f"sub-{skipped.label}", "a participant").rstrip(".")


class FeatureDataset:
    """A site's feature vectors; fits `consortium.algorithms.base.SiteData`.

    Nothing is read when it is made; the first use reads all views.

    Parameters
    ----------
    source : Path
        A BIDS data set.
    opened : OpenedStudy
    cache : Path
        The site's folder for preprocessed images.
    engine : Engine
        Engine on which images are prepared.
    without : callable
        Returns the excluded participants among the study's, and why.
    tables : SiteTables
        Settings of the site's own tables.
    cap : Cap
        Maximum number of units of privacy.
    """

    unit: Unit = "subject"

    def __init__(
        self,
        source: Path,
        opened: OpenedStudy,
        cache: Path,
        engine: Engine | None = None,
        without: Without = excludes_nobody,
        tables: SiteTables = PLAIN_TABLES,
        cap: Cap = NO_CAP,
    ) -> None:
        self.source = source
        self.opened = opened
        self.study = opened.study
        self.space = opened.space
        self.cache = cache
        self.engine = engine or Threads()
        chosen = chosen_by(source, self.study.data, tables, by_session=_by_session(self.study))
        self.without = in_turn(chosen, without)
        self.tables = tables
        self.cap = cap
        self._left_out: dict[str, SkippedPerson] = {}
        self._empty = ""  # reasons why a view has no vector of any participant
        self._views: dict[str, _Read] = {}

    @property
    def extent(self) -> Extent:
        """Numbers of features, and the views."""
        return self.space.extent

    @property
    def features(self) -> int:
        """D, entries of all views together."""
        return self.space.features

    @property
    def voxels(self) -> int:
        """Rows of a block, as maps at another resolution do not exist."""
        return self.features

    @property
    def lengths(self) -> tuple[int, ...]:
        """One vector for every unit that takes part: participants, or families."""
        return (1,) * len(self._matched.taken)

    @property
    def people(self) -> tuple[str, ...]:
        """Labels of all who qualify, who are charged also if the cap excludes their unit."""
        return tuple(sorted({person_of(row) for rows in self._members for row in rows}))

    def leave_out(self, skipped: Iterable[SkippedPerson]) -> None:
        """Exclude some of those who qualify, each participant of a unit separately."""
        self._left_out |= {each.label: each for each in skipped}
        self.__dict__.pop("_matched", None)

    @property
    def person_hashes(self) -> NDArray[np.uint64]:
        """Keyed hash of each unit that takes part, in the order of `lengths`."""
        return self.cap.hashes(self._matched.taken)

    @property
    def units(self) -> int:
        """Units of privacy: participants, or families."""
        return len(self.lengths)

    @property
    def notes(self) -> tuple[str, ...]:
        """Number of participants and of units, if a unit may have several rows."""
        units = self.study.analysis.grouped
        if units is None:
            return ()
        unused = sum(max(len(rows) - units.most_rows, 0) for rows in self._members)
        return tuple(unit_sentences(units, self._members, len(self.people), unused))

    @property
    def survey(self) -> Survey:
        """Units that qualify, and the excluded participants with the missing view.

        Raises DataError if the data set or a table is missing.
        """
        return self._matched.survey

    @property
    def nobody(self) -> str:
        """Reason why no participant qualifies, for the site's own staff."""
        if self._empty:
            return self._empty
        counts = []
        for view in (self._read(view) for view in self.space.views):
            lacks = Counter(_without_person(each) for each in view.lacking.values())
            (why, _), *_ = lacks.most_common(1) or [("", 0)]
            counts.append(f"{len(view.found)} have '{view.name}'{f' ({why})' if why else ''}")
        return self.survey.nobody(
            f"No participant in {self.source} has all views of the study: {', '.join(counts)}. "
            "Correct the tables, or ask the coordinator to correct the study."
        )

    def load(self) -> Iterator[str]:
        """Read all views, and yield the progress, in words.

        Raises DataError as `survey`.
        """
        if not self.source.is_dir():
            raise DataError(
                f"{self.source} must be a folder, the site's BIDS data set, and is not. Correct "
                "'dataset' in site.yaml."
            )
        names = [view.name for view in self.space.views]
        for view in self.space.views:
            yield f"view '{view.name}', {names.index(view.name) + 1} of {len(names)}"
            self._read(view)
        yield f"{len(self.survey.lengths)} participants"

    def new_faults(self) -> Iterator[str]:
        """Yield nothing: no file is read again once the vectors are loaded."""
        yield from ()

    def table(self) -> NDArray[np.float64]:
        """Return the read-only d x M_s block, one column per participant, ordered by label.

        The rows of a unit with several rows are stacked.
        """
        return self._matched.table

    def blocks(self, resolution: Resolution = "features") -> Iterator[NDArray[np.float64]]:
        """Yield one D x 1 array per participant, as maps at another resolution do not exist."""
        del resolution
        for column in self.table().T:
            yield column[:, None]

    def reduced(self, basis: NDArray[Any]) -> NDArray[Any]:
        """Return ``basis.T @ X`` for a D x R basis, shape (R, M_s)."""
        return product_of_columns(np.asarray(basis).T, self.table())

    @cached_property
    def _matched(self) -> _Matched:
        if not self.source.is_dir():
            raise DataError(
                f"{self.source} must be a folder, the site's BIDS data set, and is not. Correct "
                "'dataset' in site.yaml."
            )
        views = [self._read(view) for view in self.space.views]
        known = {p for view in views for p in (*view.persons, *view.lacking)}
        everybody = sorted(known | self._labels.all())
        out = twin_folders(self._labels)
        out |= {each.label: each for each in self.without(everybody)} | self._left_out
        rows = self._chosen(rows_by_person([view.found for view in views]))
        families, troubled = self._families(rows)
        out |= {each.label: each for each in troubled if each.label not in out}
        stay = [p for p in everybody if p not in out]
        complete = [p for p in stay if p in rows]
        lacking = sorted(set(stay).difference(complete))
        units = group_rows({p: rows[p] for p in complete}, families)
        names = list(units)
        taken = [names[place] for place in self.cap.taken(names)]
        table = self._table([units[name] for name in taken], views)
        table.flags.writeable = False
        left_out = *(self._lack(p, views) for p in lacking), *out.values()
        return _Matched(Survey((), (1,) * len(units), left_out), units, taken, table)

    @cached_property
    def _labels(self) -> Spellings:
        """The spelling of every participant's label: that of the folder, or of the first table."""
        return everybody_in(self.source, self.tables)

    def _chosen(self, rows: dict[str, list[str]]) -> dict[str, list[str]]:
        """Return the rows by participant; some sessions may not fit the study's rules."""
        rules = self.study.data.persons
        if not rules or not _by_session(self.study):
            return rows
        wording = Wording(self.study.data.missing, self.tables)
        table = participants_path(self.source, self.tables)
        fits = rows_that_fit(table, rules, wording, rows, by_session=True)
        kept = {
            person: [row for row in own if fits.get(row, fits.get(person, False))]
            for person, own in rows.items()
        }
        return {person: own for person, own in kept.items() if own}

    @property
    def _members(self) -> Sequence[Sequence[str]]:
        """Rows of every unit that qualifies."""
        return tuple(self._matched.units.values())

    def _families(
        self, persons: Collection[str]
    ) -> tuple[Mapping[str, str], Sequence[SkippedPerson]]:
        """Return the unit of each participant, and those whose unit can't be read."""
        units = self.study.analysis.grouped
        if units is None:
            return {person: person for person in persons}, ()
        wording = Wording(self.study.data.missing, self.tables)
        return families_of(self.source, units, wording, persons)

    def _table(
        self, members: Sequence[Sequence[str]], views: Sequence[_Read]
    ) -> NDArray[np.float64]:
        if not members:
            return np.zeros((self.features, 0))

        gaps = [self.study.gaps_of(view.view) for view in self.space.views]

        def vector(row: str) -> NDArray[np.float64]:
            parts = ((view.of(row), gap) for view, gap in zip(views, gaps, strict=True))
            return np.concatenate(
                [own if gap else np.where(np.isnan(own), 0.0, own) for own, gap in parts]
            )

        units = self.study.analysis.grouped
        if units is None:
            return np.array([vector(person) for (person,) in members]).T
        return stack_rows(members, units.most_rows, vector)

    @property
    def coverage(self) -> tuple[Coverage, ...]:
        """Missing values of the views of images and surfaces."""
        rows = [row for unit in self._members for row in unit]
        return tuple(
            count_coverage(
                view.name,
                (self._read(view).of(row) for row in rows),
                kept=self.study.gaps_of(view.view) > 0,
            )
            for view in self.space.views
            if view.view.is_image or view.mesh is not None
        )

    def _lack(self, person: str, views: Sequence[_Read]) -> SkippedPerson:
        """Return why a participant is excluded.

        A participant without a view is excluded anyway, so nothing else of theirs needs fixing. A
        row of unclear participant may be any participant's.
        """
        skipped = []
        for view in views:
            if person in view.lacking:
                skipped.append(view.lacking[person])
            elif person not in view.persons:
                detail = f"{self.source}: sub-{person} has no data for view '{view.name}'."
                skipped.append(SkippedPerson(person, "no-view", detail))
        if not skipped:
            detail = f"{self.source}: sub-{person} has no session that fits and has all views."
            skipped = [SkippedPerson(person, "no-view", detail)]
        return min(skipped, key=lambda each: (each.reason == "unusable") != is_nobodys(person))

    def _read(self, view: AnyViewSpace) -> _Read:
        """Read a view, once."""
        if view.name not in self._views:
            reader = READERS[view.view.source]

            def read(study: Study) -> Found:
                opened = replace(self.opened, study=study)
                own = self.cache, self.engine, self.tables
                return reader(ReadFrom(self.source, opened, *own), view)

            try:
                if _by_session(self.study) and not view.view.single_columns:
                    found, lacking = read_each_session(self.source, self.study, read)
                else:
                    found, lacking = read(self.study)
            except NobodyError as error:
                self._empty = self._empty or str(error)
                found = {}
                lacking = []
            if not _by_session(self.study):
                found, several = single_session_vectors(found)
                lacking = [*lacking, *several]
            found, several = self._spelled(view.name, found)
            lacks = {s.label: s for s in (*map(self._spelled_lack, lacking), *several)}
            bad = {each.label for each in lacks.values() if each.reason == "unusable"}
            if bad:
                found = {row: own for row, own in found.items() if person_of(row) not in bad}
            persons = frozenset(map(person_of, found))
            self._views[view.name] = _Read(view.name, found, lacks, persons)
        return self._views[view.name]

    def _spelled(self, view: str, found: Vectors) -> Found:
        """Return a view's vectors by the data set's spelling of their rows, and rows with two."""
        spelled: dict[str, NDArray[np.float64]] = {}
        twice: set[str] = set()
        for row, vector in found.items():
            own = self._labels.row(row)
            twice |= {person_of(own)} if own in spelled else set()
            spelled[own] = vector
        detail = (
            f"{self.source}: view '{view}' must have one vector for each participant, and sub-{{}} "
            "has two under different spellings. Rename or remove one."
        )
        return spelled, [SkippedPerson(x, "unusable", detail.format(x)) for x in sorted(twice)]

    def _spelled_lack(self, skipped: SkippedPerson) -> SkippedPerson:
        return replace(skipped, label=self._labels.spelled(skipped.label))
