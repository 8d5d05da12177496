"""The command ``verify``: an output folder compared with the signatures of sites and centre."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from consortium import __version__
from consortium.base.one_thread import one_thread
from consortium.coordinator.evidence import STUDY_FILE, STUDY_FOLDER, digests_of, named_files
from consortium.coordinator.provenance import Provenance, as_contradiction, read_provenance
from consortium.coordinator.remake import Remake
from consortium.coordinator.run_folder import RECORD, read_run
from consortium.engine.closing import Closing, Published, decode_closing
from consortium.engine.kept_round import Kept
from consortium.engine.names import PUBLISHED, QUERY
from consortium.engine.own_platform import own_platform
from consortium.engine.transcript import TRANSCRIPT, Transcript, describe_round
from consortium.errors import (
    ConfigurationError,
    ConsortiumError,
    ContradictionError,
    ExchangeError,
)
from consortium.exchange import Exchange
from consortium.membership.signed_study import signature_path
from consortium.report.legend import read_legend
from consortium.secagg.messages import RELEASE, UNMASK
from consortium.study.spec import Study
from consortium.verification import record as names
from consortium.verification.agreement import RunAgreement, read_agreement
from consortium.verification.attestations import hear_attestations, read_closing
from consortium.verification.equivocation import check_equivocation
from consortium.verification.record import EvidenceRecord, evidence_path, round_file
from consortium.verification.replay import Apart, Replayed, other_queries, replay
from consortium.verification.rounds import Released, add_rounds_again, read_round, transcript_file
from consortium.verification.verdict import Verdict

_CENTRE = "Its signature and digest are the centre's: only the centre can have caused it."
_COPY = "The file is not the one that the centre published: whoever had this copy changed it."
_UNKNOWN = "A holder of this copy or the centre can have caused it."

_ANOTHER_BUILD = (
    f"was computed by another build of version {__version__}, as the centre states: only that "
    "build can check that maps, tables and pages follow from the releases."
)


@dataclass
class Checkup:
    """One check of a published output folder."""

    folder: Path
    """The output folder of a run."""
    sites: Path | None = None
    """YAML file of fingerprints, by the names of sites and 'centre', as they publish themselves."""
    exchange: Exchange | None = None
    """Place of the run's messages. If given, its sums are added again."""

    def __post_init__(self) -> None:
        self.verdict = Verdict()
        self._authentic: dict[str, bool] = {}

    def run(self) -> Verdict:
        """Check everything that can be checked; findings raise no error."""
        one_thread()  # as the centre did
        with self._noted():
            provenance = read_provenance(self.folder, self.sites, self.verdict)
            record = provenance.record
            self._files(record, provenance.context.study.sites)
            agreement = read_agreement(record, provenance.context)
            rounds = self._rounds(record, agreement)
            closing = read_closing(record, agreement, rounds)
            if closing.platform.get("build") != own_platform()["build"]:
                self.verdict.leave_open("result", _ANOTHER_BUILD)
            elif not self.verdict.contradicted:
                self._result(provenance, agreement, rounds, closing)
            check_equivocation(agreement, rounds, self.verdict)
            hear_attestations(record, agreement, rounds, self.verdict)
            if self.exchange is not None and not self.verdict.contradicted:
                add_rounds_again(self.exchange, agreement, rounds, self.verdict)
            self._unshown(rounds)
        return self.verdict

    # -- the published files --------------------------------------------------------------

    def _files(self, record: EvidenceRecord, sites: Sequence[str]) -> None:
        """Require that every file is the one that the centre published, and none was added.

        Later attestations of sites may be added: they have signatures of their own.
        """
        body = record.message(names.PUBLISHED, PUBLISHED)
        listed = as_contradiction(
            lambda: decode_closing(Published, body, "centre"), evidence_path(names.PUBLISHED)
        ).files
        found = digests_of(self.folder)
        late = {evidence_path(f"{names.ATTESTED}/{site}") for site in sites} - listed.keys()
        for name in sorted(late & found.keys()):
            self.verdict.add(name, "came after the result was published.")
        for name in sorted(listed.keys() | found.keys() - late):
            self._authentic[name] = name in listed and found.get(name) == listed[name]
            if self._authentic[name] or (name not in listed and _is_hidden(name)):
                continue  # files of a file manager are named among those without a source
            if name not in found:
                what = "is missing, though the centre published it."
            elif name in listed:
                what = "is not the file that the centre published."
            else:
                what = "is not among the files that the centre published."
            self.verdict.contradict(
                ContradictionError(name, what), "A holder of this copy caused it."
            )

    def _rounds(self, record: EvidenceRecord, agreement: RunAgreement) -> list[Released]:
        kept: list[Kept] = []
        with self._noted("transcript"):
            kept.extend(Transcript(self.folder / TRANSCRIPT).rounds())
        self.verdict.rounds = len(kept)
        rounds = []
        for each in kept:
            with self._noted():
                rounds.append(read_round(record, agreement, each))
        return rounds

    def _result(
        self,
        provenance: Provenance,
        agreement: RunAgreement,
        rounds: Sequence[Released],
        closing: Closing,
    ) -> None:
        """Compute the result again from the releases, and compare the files."""
        asked: set[str] = set()

        def fetch(digest: str, size: int) -> bytes:
            del size
            asked.add(evidence_path(f"{names.PUBLIC}/{digest}"))
            return provenance.record.file(f"{names.PUBLIC}/{digest}")

        with self._noted():
            again = replay(agreement, rounds)
            if again.result is None:
                raise ContradictionError(
                    evidence_path(names.CLOSED), "the run ends before its analysis."
                )
            queries = other_queries(again, rounds, fetch, self.verdict)
            made = self._compare_files(
                provenance=provenance,
                agreement=agreement,
                rounds=rounds,
                again=again,
                queries=queries,
                closing=closing,
            )
            self._unmade(made | asked | self._read_files(provenance.context.study, rounds))

    def _compare_files(
        self,
        provenance: Provenance,
        agreement: RunAgreement,
        rounds: Sequence[Released],
        again: Replayed,
        queries: Apart,
        closing: Closing,
    ) -> set[str]:
        opened = provenance.opened
        legend = as_contradiction(lambda: read_legend(opened), evidence_path(STUDY_FOLDER))
        where = computed_elsewhere(closing.platform)
        remake = Remake(
            folder=self.folder,
            opened=opened,
            agreement=agreement,
            legend=legend,
            rounds=rounds,
            again=again,
            elsewhere=where,
            verdict=self.verdict,
        )
        made, wrong = remake.check(queries)
        for error in wrong:
            self.verdict.contradict(error, self._blame(error.where))
        return made

    def _read_files(self, study: Study, rounds: Sequence[Released]) -> set[str]:
        """Return the files that are checked by signatures and digests."""
        own = [names.ANNOUNCED, names.STARTED, names.KEYS, names.PLAN, names.CLOSED]
        own += [f"{names.ATTESTED}/{site}" for site in study.sites]
        named = named_files(study, self.folder / evidence_path(STUDY_FOLDER))
        papers = (STUDY_FILE, signature_path(Path(STUDY_FILE)).name, *named)
        own += [f"{STUDY_FOLDER}/{name}" for name in papers]
        files = set(map(evidence_path, own))
        record = read_run(self.folder)
        if record is not None and (self.folder / RECORD).read_bytes() == record.data:
            files.add(RECORD)
        for done in rounds:
            kinds = [QUERY, RELEASE, *([UNMASK] if done.stage.mechanism.masked_entries else [])]
            files |= {evidence_path(round_file(done.number, kind)) for kind in kinds}
            files.add(transcript_file(done.number, "npy"))
            about = transcript_file(done.number, "json")
            if (self.folder / about).read_bytes() == describe_round(done.kept):
                files.add(about)
        return files

    def _unmade(self, known: set[str]) -> None:
        """Name the published files without a source."""
        for name in sorted(digests_of(self.folder).keys() - known):
            self.verdict.leave_open(
                name,
                "does not follow from the study and the releases: it depends on the word of the "
                "centre, or of a holder of this copy.",
            )

    # -- what stays open ------------------------------------------------------------------

    def _unshown(self, rounds: Sequence[Released]) -> None:
        kinds = {
            "hidden": [d.number for d in rounds if not (d.summed or d.each)],
            "summed": [d.number for d in rounds if d.summed and d.number not in self.verdict.shown],
        }
        said = {
            "hidden": "a sum can't be shown without single sites' vectors, which only the centre "
            "has: its agreement with the sites' contributions depends on the centre's "
            "word. Studies with privacy.boost: exact or verification.open: true can be "
            "shown",
            "summed": "too few sites attest that they added it again. Fetch the messages with "
            "--exchange",
        }
        for kind, numbers in kinds.items():
            if numbers:
                self.verdict.leave_open(f"rounds {_ranges(numbers)}", f"{said[kind]}.")

    @contextmanager
    def _noted(self, where: str = "") -> Iterator[None]:
        """Record a contradiction, with the parties that can have caused it."""
        try:
            yield
        except ContradictionError as error:
            self.verdict.contradict(error, self._blame(error.where))
        except ExchangeError as error:
            self.verdict.leave_open(where or "exchange", str(error))
        except ConfigurationError as error:  # the reader's own side
            where = where or str(self.folder)
            self.verdict.leave_open(where, str(error).removeprefix(f"{where} "))
        except ConsortiumError as error:
            self.verdict.contradict(ContradictionError(where or names.EVIDENCE, str(error)))

    def _blame(self, where: str) -> str:
        if where not in self._authentic:
            return _UNKNOWN
        return _CENTRE if self._authentic[where] else _COPY


def computed_elsewhere(platform: Mapping[str, str]) -> str:
    """Return the platform of a verified run's centre, if it differs from this machine's."""
    if dict(platform) == dict(own_platform()):
        return ""
    at = ", ".join(f"{name} {value}" for name, value in sorted(platform.items()) if value)
    return f"on this machine. Check it where it was computed ({at})"


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in Path(name).parts)


def _ranges(numbers: Sequence[int]) -> str:
    """Write numbers in ascending order, with ranges as a-b."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ", ".join("-".join(map(str, part)) for part in parts)
