"""The folders of a demo."""

from dataclasses import dataclass, replace
from pathlib import Path

from consortium.coordinator.run import RunFiles

EXCHANGE = "exchange"


@dataclass(frozen=True)
class DemoFolders:
    """The demo's folders."""

    root: Path

    @property
    def files(self) -> RunFiles:
        """The centre's files."""
        root = self.root
        return RunFiles(
            root / "study.yaml",
            root / "roster.yaml",
            root / EXCHANGE,
            root / "centre",
            root / "output",
        )

    def study(self, name: str) -> RunFiles:
        """The centre's files of one study of several."""
        folder = self.root / name
        return replace(self.files, study=folder / "study.yaml", out=folder / "output")

    def site(self, name: str) -> Path:
        """A hospital's own folder."""
        return self.root / "hospitals" / name / "agent"

    def dataset(self, name: str) -> Path:
        """A hospital's BIDS data set."""
        return self.root / "hospitals" / name / "bids"

    @property
    def truth(self) -> Path:
        """What the made-up scans were made of."""
        return self.root / "hospitals" / "truth"
