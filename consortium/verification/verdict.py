"""The verdict of a check of a published result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from consortium.errors import ContradictionError

Weight = Literal["contradiction", "open", "note"]
SHOWN = 0
CONTRADICTED = 1
OPEN = 2
"""Exit codes."""


@dataclass(frozen=True)
class VerdictLine:
    """One finding of a check of a published result."""

    weight: Weight
    """Something can't be true; something is not shown; something worth knowing."""
    where: str
    """File in the output folder, or name on the exchange."""
    sentence: str
    """Its description."""
    blame: str = ""
    """Parties that can have caused it."""


@dataclass
class Verdict:
    """All that was found of one result."""

    run: str = ""
    rounds: int = 0
    shown: set[int] = field(default_factory=set)
    """Rounds whose released numbers are the sum of the signed contributions."""
    findings: list[VerdictLine] = field(default_factory=list)

    def contradict(self, error: ContradictionError, blame: str = "") -> None:
        """Add a contradiction."""
        self.findings.append(VerdictLine("contradiction", error.where, error.sentence, blame))

    def leave_open(self, where: str, sentence: str) -> None:
        """Add a statement that is not shown."""
        self.findings.append(VerdictLine("open", where, sentence))

    def add(self, where: str, sentence: str) -> None:
        """Add a remark."""
        self.findings.append(VerdictLine("note", where, sentence))

    @property
    def contradicted(self) -> bool:
        """Whether something can't be true."""
        return any(finding.weight == "contradiction" for finding in self.findings)

    @property
    def code(self) -> int:
        """Exit code: 0 if every round is shown, 1 after a contradiction, otherwise 2."""
        if self.contradicted:
            return CONTRADICTED
        whole = self.rounds > 0 and self.shown == set(range(1, self.rounds + 1))
        left = any(finding.weight == "open" for finding in self.findings)
        return SHOWN if whole and not left else OPEN

    def numbers(self) -> Mapping[str, object]:
        """Return the verdict for a script."""
        return {
            "code": self.code,
            "run": self.run,
            "rounds": self.rounds,
            "shown": sorted(self.shown),
            "findings": [vars(finding) for finding in self.findings],
        }

    def lines(self) -> Sequence[str]:
        """Return the verdict as lines of text."""
        said = {"contradiction": "CONTRADICTION", "open": "NOT SHOWN", "note": "note"}
        found = [
            f"{said[f.weight]}: {f.where}: {f.sentence}" + (f" {f.blame}" if f.blame else "")
            for f in self.findings
        ]
        return [*found, _conclusion(self)]


def _conclusion(verdict: Verdict) -> str:
    if verdict.code == CONTRADICTED:
        return "Don't use this result: it contradicts the signatures."
    if verdict.code == SHOWN:
        many = verdict.rounds
        rounds = "the only round" if many == 1 else f"each of the {many} rounds"
        return (
            f"Shown: {rounds} of {verdict.run} is the sum of what its sites signed, and the "
            "published files follow from it."
        )
    return (
        f"Nothing contradicts; {len(verdict.shown)} of {verdict.rounds} rounds are shown to be "
        "the sum of the signed contributions."
    )
