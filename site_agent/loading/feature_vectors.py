"""A site's persons as feature vectors: the views of a study, matched by person."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import Extent, Resolution
from consortium.base.cached_property import cached_property
from consortium.errors import DataError
from consortium.privacy.bounds import Unit
from consortium.space.study_space import AnyViewSpace, Space, ViewSpace
from consortium.study.spec import Study
from consortium.views.eeg import EegView
from consortium.views.fmri import FmriView
from consortium.views.surface import SurfaceView
from consortium.views.table import TableView
from site_agent.data.people import chosen_by, everybody_in, participants_path, rows_that_fit
from site_agent.data.survey import (
    CHOICES,
    SkippedPerson,
    Survey,
    Without,
    excludes_nobody,
    in_turn,
    whole_of,
)
from site_agent.data.tsv import person_of, read_table
from site_agent.data.wording import PLAIN_TABLES, SiteTables, Wording
from site_agent.engines.base import Engine, Threads
from site_agent.images.coverage import Coverage, count_coverage
from site_agent.labels import Spellings, short_hash
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
    """Whether each session of a participant is a row of its own."""
    units = study.analysis.grouped
    return units is not None and units.sessions


class ReadFrom(NamedTuple):
    """What the views of a study are read from, and with."""

    source: Path
    """The site's data set."""
    study: Study
    space: Space
    cache: Path
    """The site's folder for what was worked out."""
    engine: Engine
    tables: SiteTables
    """The site's own words."""


def _read_columns(opened: ReadFrom, view: ViewSpace[TableView]) -> Found:
    study, wording = opened.study, Wording(opened.study.data.missing, opened.tables)
    vectors, lacking = read_table(opened.source, view.view, wording, by_session=_by_session(study))
    there = {person_of(row) for row in vectors}
    skipped = {person_of(row): replace(s, label=person_of(row)) for row, s in lacking.items()}
    return vectors, [each for person, each in skipped.items() if person not in there]


def _read_images(opened: ReadFrom, view: ViewSpace[FmriView]) -> Found:
    from site_agent.images.measures import measure_images  # image libraries

    source, study, space, cache, engine, tables = opened
    return measure_images(source, study, space, view, cache, engine, tables)


def _read_recordings(opened: ReadFrom, view: ViewSpace[EegView]) -> Found:
    from site_agent.eeg.vectors import read_recordings  # MNE

    source, study, _, cache, engine, *_ = opened
    return read_recordings(source, view.view, study.data, cache, engine)


def _read_surfaces(opened: ReadFrom, view: ViewSpace[SurfaceView]) -> Found:
    from site_agent.images.surfaces import read_surfaces  # image libraries

    gaps = opened.study.gaps_of(view.view)
    return read_surfaces(opened.source, opened.study.data, view, gaps)


READERS: Mapping[str, Callable[[ReadFrom, Any], Found]] = {
    "table": _read_columns,
    "fmri": _read_images,
    "surface": _read_surfaces,
    "eeg": _read_recordings,
}
"""How a site reads each kind of view, by the view's ``source``.

Returned is a vector for each person who has one, by label without ``sub-``, and everybody else with
the reason.
"""


class _Read(NamedTuple):
    """A view as it was read: vectors by row, which is a person or a person's session."""

    name: str
    found: Vectors
    lacking: Mapping[str, SkippedPerson]
    persons: frozenset[str]

    def of(self, row: str) -> NDArray[np.float64]:
        """The vector of a row, or of its person."""
        return self.found[row if row in self.found else person_of(row)]

    def has(self, person: str) -> bool:
        """Whether a person has the view, or would have but for a choice of the study."""
        return person in self.persons or (
            person in self.lacking and self.lacking[person].reason in CHOICES
        )


def _without_person(skipped: SkippedPerson) -> str:
    """What somebody lacks, in the words that fit everybody who lacks the same."""
    return skipped.detail.replace(f"sub-{skipped.label}", "a participant").rstrip(".")


class FeatureDataset:
    """A site's feature vectors; fits `consortium.algorithms.base.SiteData`.

    Nothing is read when it is made; the first use reads all views.

    Parameters
    ----------
    source : Path
        A BIDS data set.
    space : Space
        The study's.
    cache : Path
        The site's folder for preprocessed images.
    engine : Engine
        What images are prepared on.
    without : callable
        Which of those whom the study takes are left out, and why.
    late : callable
        The same, asked last, about one of each unit that would take part; a unit is left out whole.
    tables : SiteTables
        Settings of the site's own tables.
    """

    unit: Unit = "subject"

    def __init__(
        self,
        source: Path,
        study: Study,
        space: Space,
        cache: Path,
        engine: Engine | None = None,
        without: Without = excludes_nobody,
        late: Without = excludes_nobody,
        tables: SiteTables = PLAIN_TABLES,
    ) -> None:
        self.source = source
        self.study = study
        self.space = space
        self.cache = cache
        self.engine = engine or Threads()
        chosen = chosen_by(source, study.data, tables, by_session=_by_session(study))
        self.without, self.late = in_turn(chosen, without), late
        self.tables = tables
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
        """Rows of a block, as there are no maps at another resolution."""
        return self.features

    @property
    def lengths(self) -> tuple[int, ...]:
        """One vector for every unit: a person who has all views, or several who belong together.

        Raises DataError if nobody has.
        """
        return self.sound.lengths

    @property
    def people(self) -> tuple[str, ...]:
        """Labels of who takes part; raises as `lengths`."""
        _ = self.sound
        return self._matched[2]

    @property
    def representatives(self) -> tuple[str, ...]:
        """A label for each unit, whose number is told; raises as `lengths`."""
        _ = self.sound
        return tuple(person_of(rows[0]) for rows in self._members)

    @property
    def person_hashes(self) -> NDArray[np.uint64]:
        """One number per unit, which follows from the label alone."""
        return np.array([short_hash(label) for label in self.representatives], dtype=np.uint64)

    @property
    def units(self) -> int:
        """Units of privacy: persons, or families."""
        return len(self.lengths)

    @property
    def notes(self) -> tuple[str, ...]:
        """How many participants are in how many units, where a unit may have several rows."""
        units = self.study.analysis.grouped
        if units is None:
            return ()
        unused = sum(max(len(rows) - units.most_rows, 0) for rows in self._members)
        return tuple(unit_sentences(units, self._members, len(self.people), unused))

    @cached_property
    def survey(self) -> Survey:
        """Who has all views, and who is left out for want of which.

        Raises DataError if the data set or a table isn't there.
        """
        return self._matched[0]

    @cached_property
    def sound(self) -> Survey:
        """The survey, if the study can be run on it; raises DataError as `lengths`."""
        return self.survey.sound(self._nobody)

    @property
    def _nobody(self) -> str:
        """Why nobody takes part: how many have each view, and what those without it lack most."""
        counts = []
        for view in (self._read(view) for view in self.space.views):
            lacks = Counter(_without_person(each) for each in view.lacking.values())
            (why, _), *_ = lacks.most_common(1) or [("", 0)]
            counts.append(f"{len(view.found)} have '{view.name}'{f' ({why})' if why else ''}")
        return (
            f"No participant in {self.source} has all views of the study: {', '.join(counts)}; "
            "correct the tables, or ask the coordinator to correct the study."
        )

    def load(self) -> Iterator[str]:
        """Read all views; yields how far that has come, in words.

        Raises DataError as `lengths`.
        """
        if not self.source.is_dir():
            raise DataError(f"{self.source} is not a folder; give the site's BIDS data set.")
        names = [view.name for view in self.space.views]
        for view in self.space.views:
            yield f"view '{view.name}', {names.index(view.name) + 1} of {len(names)}"
            self._read(view)
        yield f"{len(self.survey.lengths)} participants"

    def table(self) -> NDArray[np.float64]:
        """D x M_s, one column per person in the order of their labels; not to be written to.

        Of units with several rows these stand under each other.
        """
        _ = self.sound  # raises if the study can't be run
        return self._matched[1]

    def blocks(self, resolution: Resolution = "features") -> Iterator[NDArray[np.float64]]:
        """Yield one D x 1 array per person, as there are no maps at another resolution."""
        del resolution
        for column in self.table().T:
            yield column[:, None]

    def reduced(self, basis: NDArray[Any]) -> NDArray[Any]:
        """Return ``basis.T @ X`` for a D x R basis, shape (R, M_s)."""
        return np.asarray(basis).T @ self.table()

    @cached_property
    def _matched(
        self,
    ) -> tuple[Survey, NDArray[np.float64], tuple[str, ...], Sequence[Sequence[str]]]:
        if not self.source.is_dir():
            raise DataError(f"{self.source} is not a folder; give the site's BIDS data set.")
        views = [self._read(view) for view in self.space.views]
        known = {p for view in views for p in (*view.persons, *view.lacking)}
        everybody = sorted(known | self._labels.all())
        out = {each.label: each for each in self.without(everybody)}
        stay = [p for p in everybody if p not in out]
        rows = self._chosen(rows_by_person([view.found for view in views]))
        families, troubled = self._families(rows)
        out |= {each.label: each for each in troubled if each.label not in out}
        stay = [p for p in stay if p not in out]
        complete = [p for p in stay if p in rows]
        lacking = sorted(set(stay).difference(complete))
        units = group_rows({p: rows[p] for p in complete}, families)
        late = {each.label: each for each in self.late([person_of(unit[0]) for unit in units])}
        newcomers = (
            replace(late[person_of(unit[0])], label=person)
            for unit in units
            if person_of(unit[0]) in late
            for person in sorted(set(map(person_of, unit)))
        )
        members = [unit for unit in units if person_of(unit[0]) not in late]
        there = sorted({person_of(row) for unit in members for row in unit})
        table = self._table(members, views)
        table.flags.writeable = False
        left_out = *(self._lack(p, views) for p in lacking), *out.values(), *newcomers
        having = (p for p in everybody if all(view.has(p) for view in views))
        whole = whole_of(having, left_out)
        alone = group_rows({p: [p] for p in whole}, self._families(whole)[0])
        one_of_each = tuple(unit[0] for unit in alone)
        survey = Survey((), (1,) * len(members), left_out, one_of_each)
        return survey, table, tuple(there), members

    @cached_property
    def _labels(self) -> Spellings:
        """The spelling of every participant's label: that of the folder, or of the first table."""
        return everybody_in(self.source, self.tables)

    def _chosen(self, rows: dict[str, list[str]]) -> dict[str, list[str]]:
        """Rows by person, of which some sessions may not fit the study's rules."""
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
        """Rows of every unit."""
        return self._matched[3]

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
        """Missing values of the views of images and surfaces; raises as `lengths`."""
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
        """Why a person is left out.

        Who lacks a view is left out anyway, so that nothing else of theirs need be mended.
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
        return min(skipped, key=lambda each: each.reason == "unusable")

    def _read(self, view: AnyViewSpace) -> _Read:
        """Read a view, once."""
        if view.name not in self._views:
            reader = READERS[view.view.source]

            def read(study: Study) -> Found:
                own = self.cache, self.engine, self.tables
                return reader(ReadFrom(self.source, study, self.space, *own), view)

            if _by_session(self.study) and not view.view.single_columns:
                found, lacking = read_each_session(self.source, self.study, read)
            else:
                found, lacking = read(self.study)
            if not _by_session(self.study):
                found, several = single_session_vectors(found)
                lacking = [*lacking, *several]
            found = self._spelled(view.name, found)
            persons = frozenset(map(person_of, found))
            lacks = {s.label: s for s in map(self._spelled_lack, lacking)}
            self._views[view.name] = _Read(view.name, found, lacks, persons)
        return self._views[view.name]

    def _spelled(self, view: str, found: Vectors) -> Vectors:
        """Return a view's vectors by the data set's spelling of their rows.

        Raises DataError if two rows are one participant's.
        """
        spelled: dict[str, NDArray[np.float64]] = {}
        for row, vector in found.items():
            own = self._labels.row(row)
            if own in spelled:
                raise DataError(
                    f"{self.source}: view '{view}' must have one vector for each participant, and "
                    f"sub-{own} has two under different spellings. Rename or remove one."
                )
            spelled[own] = vector
        return spelled

    def _spelled_lack(self, skipped: SkippedPerson) -> SkippedPerson:
        return replace(skipped, label=self._labels.spelled(skipped.label))
