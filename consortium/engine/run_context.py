"""The setting of a run, which is the same for the centre and every site."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from consortium import __version__
from consortium.algorithms.base import Extent
from consortium.errors import ProtocolError
from consortium.secagg import CENTRE, Participants
from consortium.study.masking import plan_masking
from consortium.study.spec import Study


@dataclass(frozen=True)
class RunContext:
    """The setting of a run: study, plan, names and keys that all parties share."""

    run: str
    """Name of the run on the exchange."""
    study: Study
    keys: Mapping[str, bytes]
    """Ed25519 public keys of the centre and every site."""
    grid: str
    """Digest of the study's mask, atlas and space."""
    extent: Extent
    """Numbers of features and voxels."""
    file: str = ""
    """SHA-256 of the study file that was signed, in hexadecimal."""

    @cached_property
    def roster(self) -> Participants:
        """The parties and the minimum number of survivors."""
        minimum = len(self.study.sites) - self.study.privacy.dropouts
        masking = plan_masking(self.study)
        return Participants(
            self.study.sites, self.keys, masking.threshold, minimum, masking.holders
        )

    @property
    def announcement(self) -> bytes:
        """The study and the roster, as one JSON text."""
        content = {
            "study": self.study.model_dump(mode="json"),
            "file": self.file,
            "keys": {name: key.hex() for name, key in sorted(self.keys.items())},
            "grid": self.grid,
            "version": __version__,
        }
        return json.dumps(content, sort_keys=True).encode()

    def started_with(self, sites: tuple[str, ...]) -> RunContext:
        """Return the setting of the run with the sites that joined.

        Raises StudyError if the study can't be carried out with these sites.
        """
        study = self.study.started_with(sites)
        keys = {name: self.keys[name] for name in (*sites, CENTRE)}
        return replace(self, study=study, keys=keys)


def start_notice(sites: tuple[str, ...]) -> bytes:
    """Return the centre's list of the sites with which a run starts, as JSON."""
    return json.dumps({"sites": sites}).encode()


def read_start(body: bytes) -> tuple[str, ...]:
    """Read a `start_notice`; raises ProtocolError if it is none."""
    try:
        sites = json.loads(body)["sites"]
        if not (isinstance(sites, list) and all(isinstance(site, str) for site in sites)):
            raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ProtocolError(
            "The centre's start message can't be read. Update the centre."
        ) from error
    return tuple(sites)
