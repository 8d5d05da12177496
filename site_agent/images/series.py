"""A site's participants as the cached blocks that algorithms request.

The blocks of some participants are a value, for any process of the site that computes with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consortium.algorithms.base import Extent, Resolution, units_of
from consortium.algorithms.over_persons import CHUNK, Part, chunks
from consortium.base.cached_property import cached_property
from consortium.errors import DataError, EngineError
from consortium.kernels.tiles import reduced_block
from consortium.privacy.bounds import Unit
from consortium.space.atlas import Target
from consortium.space.study_space import Space
from consortium.study.data_section import DataSection
from site_agent.data.bids import find_subjects
from site_agent.data.cache import BlockCache, block_key
from site_agent.data.cap import NO_CAP, Cap
from site_agent.data.people import chosen_by
from site_agent.data.survey import (
    NobodyError,
    RecordingRun,
    SkippedPerson,
    Subject,
    Survey,
    Without,
    excludes_nobody,
    in_turn,
    twin_folders,
)
from site_agent.data.wording import PLAIN_TABLES, SiteTables
from site_agent.engines.base import Engine, Threads
from site_agent.images.coverage import Coverage, absent_in_series, count_coverage
from site_agent.images.preprocess import (
    TooFewLeftError,
    preprocess_person,
    scratch_space,
    to_prepare,
    to_sum,
)
from site_agent.images.recordings import volumes_of
from site_agent.labels import Spellings

Block = NDArray[np.float32]


class SiteDataset:
    """A site's image series as blocks; fits `consortium.algorithms.base.SiteData`.

    Nothing is read when it is made. Counting reads headers; a block is preprocessed when it is
    first asked for, and comes from the cache later.

    Parameters
    ----------
    source : Path or sequence of Path
        A BIDS data set, or NIfTI files; on a mesh CIFTI or GIFTI ones.
    data : DataSection
        The study's.
    space : Space
        The study's.
    unit : {'subject', 'timepoint'}
        The study's unit of privacy.
    cache : Path
        The site's folder for preprocessed blocks.
    engine : Engine
        Engine on which blocks are prepared and summed.
    without : callable
        Returns the excluded participants among the study's, and why.
    tables : SiteTables
        Settings of the site's own tables.
    cap : Cap
        Maximum number of participants.
    """

    def __init__(
        self,
        source: Path | Sequence[Path],
        data: DataSection,
        space: Space,
        unit: Unit,
        cache: Path,
        engine: Engine | None = None,
        without: Without = excludes_nobody,
        tables: SiteTables = PLAIN_TABLES,
        cap: Cap = NO_CAP,
    ) -> None:
        self.source = source
        self.data = data
        self.space = space
        self.unit = unit
        self.cache = BlockCache(cache)
        self.engine = engine or Threads()
        self.without = in_turn(chosen_by(source, data, tables), without)
        self.tables = tables
        self.cap = cap
        self.empty = ""
        """Reason why the data set has no participant with the study's files; empty if it has
        one."""
        self._damaged: dict[str, SkippedPerson] = {}  # reasons why preparing failed
        self._loaded: dict[tuple[str, tuple[str, ...]], str] = {}  # keys by label and target
        self._reported: set[str] = set()  # participants whose files changed after loading
        self._last: tuple[NDArray[Any], Block] | None = None

    @property
    def features(self) -> int:
        """D, voxels of the study's mask, vertices of its mesh, or regions of its atlas."""
        return self.space.features

    @property
    def extent(self) -> Extent:
        """Numbers of features and voxels."""
        return self.space.extent

    @property
    def voxels(self) -> int:
        """V, voxels of the study's full-resolution maps."""
        return self.space.voxels

    @property
    def lengths(self) -> tuple[int, ...]:
        """Volumes of each participant who takes part, only from headers."""
        return self._used.lengths

    @property
    def people(self) -> tuple[str, ...]:
        """Labels of all who qualify. They are charged whether or not the cap includes them."""
        return tuple(subject.label for subject in self.survey.subjects)

    @property
    def person_hashes(self) -> NDArray[np.uint64]:
        """Keyed hash of each participant who takes part, in the order of `lengths`."""
        return self.cap.hashes(subject.label for subject in self._used.subjects)

    @property
    def units(self) -> int:
        """Units of privacy."""
        return units_of(self.unit, self.lengths)

    @cached_property
    def survey(self) -> Survey:
        """Participants who qualify by the headers of their images, and why each other one does not.

        Raises DataError if the data set is missing.
        """
        try:
            everybody, lacking = find_subjects(self.source, self.data)
        except NobodyError as error:
            self.empty = str(error)
            return Survey((), (), ())
        labels = [*(s.label for s in everybody), *(s.label for s in lacking)]
        out = {s.label: s for s in lacking}
        out |= twin_folders(Spellings(labels, exact=self.tables.exact_labels))
        out |= {s.label: s for s in self.without(sorted(labels))}
        stay: list[tuple[Subject, int]] = []
        for subject in everybody:
            outcome = out.get(subject.label) or self._measure(subject)
            if isinstance(outcome, SkippedPerson):
                out[subject.label] = outcome
            else:
                stay.append((subject, outcome))
        return Survey(
            tuple(subject for subject, _ in stay),
            tuple(length for _, length in stay),
            tuple(out.values()),
        )

    @cached_property
    def _used(self) -> Survey:
        """The survey of the participants whom the cap includes."""
        survey = self.survey
        taken = self.cap.taken([subject.label for subject in survey.subjects])
        subjects = survey.subjects
        lengths = survey.lengths
        return Survey(
            tuple(subjects[i] for i in taken), tuple(lengths[i] for i in taken), survey.skipped
        )

    def leave_out(self, skipped: Iterable[SkippedPerson]) -> None:
        """Exclude some of those who qualify."""
        self.__dict__["survey"] = self.survey.without(skipped)
        self.__dict__.pop("_used", None)

    @property
    def nobody(self) -> str:
        """Reason why no participant qualifies, for the site's own staff."""
        return self.empty or self.survey.nobody(
            f"All {len(self.survey.skipped)} subjects are left out, as they are not chosen, lack "
            "images, have no budget left, or have fewer volumes than minimum_volumes "
            f"({self.data.minimum_volumes}). Look at the data set, or ask the coordinator to "
            "correct the study."
        )

    def blocks(self, resolution: Resolution = "features") -> Iterator[Block]:
        """Yield one array per subject, in the order of their labels.

        They are D x T_m of the analysed values, or V x T_m of the voxels of full-resolution maps.

        Only the last yielded block is kept here. Raises DataError if an image or
        table can't be used. The message names the file.
        """
        yield from self._people(resolution).blocks()

    def partial_sums(
        self,
        part: Part,
        shape: tuple[int, ...],
        resolution: Resolution,
        companions: Sequence[Any] | None,
    ) -> Iterator[NDArray[Any]]:
        """Yield the sums of fixed chunks of participants, in order, computed on the engine.

        Raises DataError as `blocks`. Raises EngineError if the engine can't be used.
        """
        people = self._people(resolution)
        work = (
            (people[chunk], None if companions is None else companions[chunk])
            for chunk in chunks(len(self.lengths))
        )
        features = people.target.features
        each = to_sum(features, self.lengths, shape)
        return self.engine.map(partial(sum_chunk, part), work, each)

    def person(self, number: int) -> PersonBlocks:
        """Return one participant who qualifies, whose block is prepared when it is asked for."""
        return self._prepared(number, self.space.target)

    def table(self) -> NDArray[Any]:
        """Raise DataError, because a study of series has no feature vectors."""
        raise DataError("The study has image series and no feature vectors. Name its features.")

    def coverage(self, *, kept: bool) -> tuple[Coverage, ...]:
        """Return the missing voxels of the participants; raises DataError as `blocks`.

        Parameters
        ----------
        kept : bool
            Whether the analysis leaves missing voxels out of its sums.
        """
        return (count_coverage("", map(absent_in_series, self.blocks()), kept=kept),)

    def load(self) -> Iterator[str]:
        """Load all participants' blocks into the cache, and yield the progress, in words.

        Participants with damaged files, such as a value that is not finite, are excluded.
        Raises DataError as `survey`.
        """
        yield "headers"
        subjects = self.survey.subjects
        ahead = self.engine.map(load_blocks, map(self._one, range(len(subjects))), self.largest)
        yield f"1 of {len(subjects)}"
        for done, (subject, outcome) in enumerate(zip(subjects, ahead, strict=True), start=1):
            if isinstance(outcome, SkippedPerson):
                self._damaged[subject.label] = outcome
            else:
                self._loaded |= {(subject.label, target): key for target, key in outcome}
            yield f"{min(done + 1, len(subjects))} of {len(subjects)}"
        if self._damaged:
            for counted in ("survey", "_used"):
                self.__dict__.pop(counted, None)

    @property
    def largest(self) -> int:
        """Maximum bytes of memory for preparing the participant with most volumes."""
        targets = {self.space.target, self.space.maps_target}
        return max(to_prepare(each, max(self.survey.lengths, default=0)) for each in targets)

    def prepare(self, number: int) -> None:
        """Load one subject's blocks into the cache; raises DataError as `blocks`."""
        cache_blocks(self._one(number))

    def reduced(self, basis: NDArray[Any]) -> Block:
        """Return ``basis.T @ X`` for all subjects side by side; the last one is kept.

        Parameters
        ----------
        basis : array, shape (D, R)

        Returns
        -------
        array, shape (R, N_s), float32
            Not to be written to.
        """
        if self._last is None or not np.array_equal(basis, self._last[0]):
            self._last = None
            self._last = np.array(basis), self._reduce(np.asarray(basis, dtype=np.float32))
        return self._last[1]

    def _reduce(self, basis: Block) -> Block:
        size = (basis.shape[1], sum(self.lengths))
        start = 0
        reduced = scratch_space(size, self.engine.memory, self.cache.folder)
        people = self._people("features")
        chunk_of = basis.shape[1], CHUNK * max(self.lengths)
        each = to_sum(self.features, self.lengths, chunk_of)
        work = (people[chunk] for chunk in chunks(len(self.lengths)))
        for found in self.engine.map(partial(reduced_by, basis), work, each):
            stop = start + found.shape[1]
            reduced[:, start:stop] = found
            start = stop
        if start != reduced.shape[1]:
            raise EngineError(
                "The workers of site.yaml's engine returned too few volumes. "
                "Nothing is charged. Check the workers."
            )
        reduced.flags.writeable = False
        return reduced

    def new_faults(self) -> Iterator[str]:
        """Yield a sentence for each participant whose files changed since loading, once."""
        kinds: tuple[Resolution, ...] = ("features", "maps") if self.space.fine else ("features",)
        for kind in kinds:
            for label, sentence in self._people(kind).changed():
                if label not in self._reported:
                    self._reported.add(label)
                    yield sentence

    def _people(self, resolution: Resolution) -> PersonBlocks:
        used = self._used
        target = self.space.maps_target if resolution == "maps" else self.space.target
        found = [self._loaded.get((each.label, tuple(target.digests))) for each in used.subjects]
        keys = tuple(key for key in found if key is not None)
        return PersonBlocks(
            subjects=used.subjects,
            lengths=used.lengths,
            data=self.data,
            target=target,
            cache=self.cache,
            unit=self.unit,
            keys=keys if len(keys) == len(found) else (),
        )

    def _one(self, number: int) -> tuple[PersonBlocks, ...]:
        """Return all that is prepared of one participant who qualifies."""
        fine = () if self.space.fine is None else (self.space.maps_target,)
        return tuple(self._prepared(number, target) for target in (self.space.target, *fine))

    def _prepared(self, number: int, target: Target) -> PersonBlocks:
        subject = self.survey.subjects[number]
        length = self.survey.lengths[number]
        return PersonBlocks(
            subjects=(subject,),
            lengths=(length,),
            data=self.data,
            target=target,
            cache=self.cache,
            unit=self.unit,
        )

    def _volumes(self, run: RecordingRun) -> int:
        return volumes_of(run, self.space.target, unoriented=self.tables.accept_unoriented)

    def _measure(self, subject: Subject) -> int | SkippedPerson:
        """Count a subject's volumes, or say why they can't be used."""
        if subject.label in self._damaged:
            return self._damaged[subject.label]
        try:
            length = sum(self._volumes(run) for run in subject.runs)
        except DataError as error:
            return SkippedPerson(subject.label, "unusable", str(error))
        first = subject.runs[0].bold
        data = self.data
        by_person = self.unit == "subject"  # otherwise one volume would decide about the others
        if by_person and data.volumes is not None and length != data.volumes:
            detail = f"{first} has {length} volumes, the study asks for {data.volumes}; left out."
            return SkippedPerson(subject.label, "does-not-fit", detail)
        if by_person and length < data.minimum_volumes:
            detail = f"{first} has {length} volumes of at least {data.minimum_volumes}; left out."
            return SkippedPerson(subject.label, "too-few-volumes", detail)
        if data.confounds and any(run.confounds is None for run in subject.runs):
            detail = (
                f"{first} has a run without confounds table. Add *_desc-confounds_timeseries.tsv."
            )
            return SkippedPerson(subject.label, "unusable", detail)
        return length


@dataclass(frozen=True)
class PersonBlocks:
    """References to the blocks of some participants. A worker reads the blocks from them."""

    subjects: Sequence[Subject]
    lengths: Sequence[int]
    """Volumes of each block."""
    data: DataSection
    """The study's."""
    target: Target
    """Target on which volumes are sampled."""
    cache: BlockCache
    """The site's; a worker reads and writes the same folder."""
    unit: Unit = "subject"
    """The study's unit of privacy."""
    keys: tuple[str, ...] = ()
    """Names of the blocks in the cache if all were loaded, otherwise none."""

    def __getitem__(self, some: slice) -> PersonBlocks:
        """Return a few of them."""
        return replace(
            self, subjects=self.subjects[some], lengths=self.lengths[some], keys=self.keys[some]
        )

    def current_key(self, number: int) -> str:
        """Return the name of a block as its files are now; raises DataError if one is missing."""
        return block_key(self.subjects[number], self.data, self.target, self.unit)

    def blocks(self) -> Iterator[Block]:
        """Yield one after the other, prepared first if it is not in the cache.

        Loaded blocks stay as they were loaded, whatever happens to their files. Raises DataError if
        an image or table can't be used and the blocks were not loaded. The message names the file.
        """
        for number in range(len(self.subjects)):
            yield self._loaded(number) if self.keys else self._get(number, self.current_key(number))

    def _get(self, number: int, key: str) -> Block:
        make = partial(preprocess_person, self.subjects[number], self.data, self.target, self.unit)
        return self.cache.get(key, self._shape(number), make)

    def _shape(self, number: int) -> tuple[int, int]:
        return self.target.features, self.lengths[number]

    def _loaded(self, number: int) -> Block:
        """Return a block that was loaded, or zeros if neither cache nor unchanged files have it.

        So no participant's files can end a run that has begun.
        """
        key = self.keys[number]
        stored = self.cache.find(key, self._shape(number))
        if stored is not None:
            return stored
        with suppress(DataError):
            if self.current_key(number) == key:
                return self._get(number, key)
        return np.zeros(self._shape(number), dtype=np.float32, order="F")

    def changed(self) -> Iterator[tuple[str, str]]:
        """Yield label and sentence for each participant whose files changed since loading."""
        for number, key in enumerate(self.keys):
            with suppress(DataError):
                if self.current_key(number) == key:
                    continue
            subject = self.subjects[number]
            is_kept = self.cache.find(key, self._shape(number)) is not None
            use = "the data as they were loaded" if is_kept else "zeros instead"
            sentence = (
                f"{subject.runs[0].bold} or another file of its participant was changed or "
                f"removed while a run uses it; the run continues with {use}. Restore the file."
            )
            yield subject.label, sentence


def cache_blocks(kinds: Sequence[PersonBlocks]) -> None:
    """Load participants' blocks into the cache of preprocessed data."""
    for people in kinds:
        for _ in people.blocks():
            pass


def load_blocks(
    kinds: Sequence[PersonBlocks],
) -> SkippedPerson | list[tuple[tuple[str, ...], str]]:
    """Load a participant's blocks into the cache.

    Returns
    -------
    list or SkippedPerson
        For each block the digests of its target and its key, or why the participant is left out.
    """
    try:
        keys = [(tuple(each.target.digests), each.current_key(0)) for each in kinds]
        cache_blocks(kinds)
    except DataError as error:
        return left_out_for(kinds[0].subjects[0], error)
    return keys


def left_out_for(subject: Subject, error: DataError) -> SkippedPerson:
    """Return a participant whose files raised an error as excluded."""
    short = isinstance(error, TooFewLeftError)
    return SkippedPerson(subject.label, "too-few-volumes" if short else "unusable", str(error))


def sum_chunk(part: Part, chunk: tuple[PersonBlocks, Sequence[Any] | None]) -> NDArray[Any]:
    """Compute the part of one chunk of participants in a sum over image series."""
    people, companions = chunk
    blocks = people.blocks()
    return part(blocks if companions is None else zip(blocks, companions, strict=True))


def reduced_by(basis: Block, people: PersonBlocks) -> Block:
    """Return ``basis.T @ X`` of some participants, concatenated: shape (R, sum of lengths)."""
    return np.hstack([reduced_block(basis, block, people.unit) for block in people.blocks()])
