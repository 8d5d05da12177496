"""Every file that follows from what was released, made again and held against what was published.

What differs is judged by what rounding can make of it. What the centre alone tells, day, duration
and versions, is taken from the folder.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

from consortium.coordinator.evidence import digests_of
from consortium.coordinator.outputs import MachineFacts, Publisher
from consortium.coordinator.same_files import TURNED, is_numeric, relative_distance, texts_apart
from consortium.engine.names import QUERY
from consortium.errors import ConsortiumError, ContradictionError
from consortium.report.dataset import CRATE
from consortium.report.legend import Legend
from consortium.report.privacy_report import read_privacy_report
from consortium.space.study_space import Space
from consortium.study.spec import Study
from consortium.verification.agreement import RunAgreement
from consortium.verification.record import evidence_path, round_file
from consortium.verification.replay import (
    SLACK,
    TRIES,
    Apart,
    Replayed,
    Spread,
    query_distance,
    replay,
)
from consortium.verification.rounds import Released
from consortium.verification.verdict import Verdict

_DRAWN = re.compile(r"[A-Za-z0-9+/=]{200,}|<svg.*?</svg>", re.DOTALL)
_LASTED = re.compile(r'(<th scope="row">Time</th><td>[^<]*</td><td>)[\dhmins ]{1,20}(</td>)')
_HERE = "on this machine, which says the same of itself as the centre's"


@dataclass
class Remake:
    """A finished folder, to be made again."""

    folder: Path
    study: Study
    """As it was signed, with all its sites."""
    agreement: RunAgreement
    space: Space
    legend: Legend
    rounds: Sequence[Released]
    again: Replayed
    """The analysis, as it is here."""
    elsewhere: str
    """Where the centre computed, in words; empty if it says that it was a machine like this one."""
    verdict: Verdict
    """Is told what can't be decided here."""

    def check(self, queries: Apart) -> tuple[set[str], list[ContradictionError]]:
        """Compare everything; returns what was made again, and what contradicts.

        Parameters
        ----------
        queries : Apart
            Questions that differ, by their files.
        """
        with TemporaryDirectory() as name:
            made = Path(name) / "made"
            self._publish(made, self.again, pages=True)
            files = sorted(digests_of(made))
            wrong: list[ContradictionError] = []
            found = dict(queries)
            for file in files:
                if not (self.folder / file).is_file():
                    wrong.append(
                        _says(file, "is missing, though it follows from what was released")
                    )
                elif is_numeric(file) and file != CRATE:
                    parts = relative_distance(self.folder / file, made / file)
                    found[file] = {part: far for part, far in parts.items() if far > SLACK}
            found = {file: parts for file, parts in found.items() if parts}
            wrong += self._judge(found, made, Path(name)) if found else []
            for file in files:
                if (self.folder / file).is_file() and (file == CRATE or not is_numeric(file)):
                    wrong += self._told(file, made, bool(found))
        return set(files), wrong

    # -- numbers ----------------------------------------------------------------------------

    def _judge(self, found: Apart, made: Path, scratch: Path) -> Iterator[ContradictionError]:
        """Tell what rounding can make from what it can't."""
        spread = Spread(found)
        for seed in range(TRIES):
            left = [name for name in found if spread.beyond(name, (TURNED,))]
            if not left:
                break
            self._try(seed, spread, made, scratch / str(seed))
        for name, parts in found.items():
            beyond = spread.beyond(name, (TURNED,))
            if beyond:
                most = max(moved for _, moved in beyond.values())
                how = _how({part: far for part, (far, _) in beyond.items()})
                yield _says(
                    name,
                    f"does not follow from what was released: it differs in {how}, where rounding "
                    f"makes {most:.1g}",
                )
            else:
                where = self.elsewhere or _HERE
                self.verdict.leave_open(
                    name,
                    f"is not what comes out {where}: it differs in {_how(parts)}, by no more than "
                    "rounding can make.",
                )

    def _try(self, seed: int, spread: Spread, made: Path, folder: Path) -> None:
        try:
            other = replay(self.agreement, self.rounds, seed)
            if other.result is None:
                raise ContradictionError("", "the analysis asks for more")
            self._publish(folder, other, pages=False)
        except ConsortiumError:  # rounding decides whether there is a result at all
            for name in spread.found:
                spread.see(name, dict.fromkeys(spread.found[name], math.inf))
            return
        asked = zip(self.rounds, self.again.queries, other.queries, strict=True)
        for done, first, second in asked:
            name = evidence_path(round_file(done.number, QUERY))
            if name in spread.found:
                spread.see(name, dict.fromkeys(spread.found[name], query_distance(first, second)))
        for name in spread.found:
            if is_numeric(name):
                there = (folder / name).is_file()
                parts = (
                    relative_distance(folder / name, made / name)
                    if there
                    else {"the whole": math.inf}
                )
                spread.see(name, parts)

    # -- pages ------------------------------------------------------------------------------

    def _told(self, name: str, made: Path, differs: bool) -> Iterator[ContradictionError]:
        """Hold a page, or what machines read of the folder, against the one that is made again."""
        try:
            first, second = (self._text(each, name) for each in (self.folder, made))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            yield _says(name, "can't be read")
            return
        if texts_apart(*(_DRAWN.sub("", text) for text in (first, second))) > SLACK:
            if differs or self.elsewhere:
                why = "numbers that it tells of differ" if differs else "it was made elsewhere"
                self.verdict.leave_open(name, f"is not compared word by word, as {why}.")
            else:
                yield _says(name, "tells other things than what was released leads to")
        elif _DRAWN.findall(first) != _DRAWN.findall(second):
            self.verdict.leave_open(
                name,
                "has pictures that can't be drawn again here; look at "
                "the maps, which are compared.",
            )

    def _text(self, folder: Path, name: str) -> str:
        text = (folder / name).read_text(encoding="utf-8")
        if name == CRATE and folder != self.folder:  # a packed image has any size
            return json.dumps(_sized(json.loads(text), self.folder))
        if name == CRATE:
            return json.dumps(json.loads(text))
        return _LASTED.sub(r"\1\2", text)

    # -- both -------------------------------------------------------------------------------

    def _publish(self, folder: Path, done: Replayed, *, pages: bool) -> None:
        assert done.result is not None  # noqa: S101 - the caller has looked
        Publisher(
            folder,
            self.study,
            self.space,
            legend=self.legend,
            pages=pages,
            machine=self._known(),
            seconds=0.0,
        ).publish(self.agreement.plan, done.rounds, done.result)

    def _known(self) -> MachineFacts | None:
        try:
            report = read_privacy_report(self.folder / "privacy_report.json")
            crate = json.loads((self.folder / CRATE).read_text(encoding="utf-8"))
            (day,) = {each["datePublished"] for each in crate["@graph"] if each["@id"] == "./"}
            return MachineFacts(date.fromisoformat(day), report)
        except (ConsortiumError, OSError, ValueError, KeyError, TypeError):
            return None  # what can't be read is found when it is compared


def _says(name: str, what: str) -> ContradictionError:
    return ContradictionError(name, f"{what}.")


def _how(parts: Mapping[str, float]) -> str:
    """Say which parts differ, and how far."""
    every, sizes = list(parts), [far for far in parts.values() if math.isfinite(far)]
    names = ", ".join(every[:3]) + (f" and {len(every) - 3} more" if len(every) > 3 else "")
    return f"{names} (by up to {max(sizes):.1g} of the largest value)" if sizes else names


def _sized(crate: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The catalogue with the sizes of a folder's files."""
    for each in crate["@graph"]:
        path = folder / unquote(each["@id"])
        if "contentSize" in each and path.is_file():
            each["contentSize"] = str(path.stat().st_size)
    return crate
