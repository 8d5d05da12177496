"""A study with everything that its file and the files next to it state, read once.

Whoever runs, checks or simulates a study reads it here, and hands on one value: the study, the
space of its numbers, its folder and the keys under which it was signed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from consortium.engine.run_context import RunContext
from consortium.membership.signed_study import SignedStudy
from consortium.space.study_space import Space, study_space
from consortium.study.spec import Study


@dataclass(frozen=True, eq=False)
class OpenedStudy:
    """A study with the space of its numbers, and the keys under which it was signed."""

    study: Study
    space: Space
    """Grid or mesh, atlas, views, templates and open cohort, from the files that the study
    names."""
    folder: Path = Path()
    """Folder of the study file and of all files that it names."""
    keys: Mapping[str, bytes] = field(default_factory=dict)
    """Ed25519 public keys of the centre and every site; empty if no signature was read."""
    file: str = ""
    """SHA-256 of the signed study file, in hexadecimal; empty if no signature was read."""

    def context(self, run: str) -> RunContext:
        """Return the setting of a run of this study, which must be signed."""
        return RunContext(
            run=run,
            study=self.study,
            keys=self.keys,
            grid=self.space.digest,
            extent=self.space.extent,
            file=self.file,
        )


def open_study(study: Study, folder: Path) -> OpenedStudy:
    """Open a study with the files that it names, without a signature.

    Raises DataError if one is outside ``folder``, is missing or can't be used.
    """
    return OpenedStudy(study, study_space(study, folder), folder)


def open_signed(signed: SignedStudy) -> OpenedStudy:
    """Open a signed study with the files that it names. Raises DataError as `open_study`."""
    space = study_space(signed.study, signed.folder)
    return OpenedStudy(signed.study, space, signed.folder, signed.keys, signed.file)
