"""The public record of a run on disk, from which it resumes.

Each round is an array and a JSON file that is written after it. A round without its JSON file did
not happen. The array has the release as integers of the ring, which sites signed and which can be
added again. Floating-point numbers would lose bits beyond 2^53.
"""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError

import numpy as np

from consortium.base.atomic import DAMAGED, write_bytes
from consortium.engine.kept_round import Kept
from consortium.errors import OutputError
from consortium.secagg.keystream import RINGS

TRANSCRIPT = "transcript"


@dataclass(eq=False)
class Transcript:
    """Released rounds of a run in a folder, from which it resumes."""

    folder: Path
    """Made with the first round."""

    def append(self, done: Kept) -> None:
        """Store a finished round."""
        buffer = io.BytesIO()
        np.save(buffer, done.ring, allow_pickle=False)
        name = f"round-{done.number:05d}"
        write_bytes(self.folder / f"{name}.npy", buffer.getvalue())
        write_bytes(self.folder / f"{name}.json", describe_round(done))

    def rounds(self) -> Iterator[Kept]:
        """Yield the stored rounds in order; raises OutputError if a file is damaged."""
        number = 1
        while (path := self.folder / f"round-{number:05d}.json").exists():
            try:
                record = json.loads(path.read_text(encoding="utf-8"))
                # Mapped first: a header that states more values than the file has uses no memory.
                stored = np.load(path.with_suffix(".npy"), mmap_mode="r", allow_pickle=False)
                ring = np.array(stored)
                survivors = tuple(int(s) for s in record["survivors"])
                if record["round"] != number or ring.dtype not in RINGS.values() or ring.ndim != 1:
                    raise ValueError(number)
                query = bytes.fromhex(record["query"])
                stage = record["stage"]
                statistic = record["statistic"]
                done = Kept(
                    number=number,
                    stage=stage,
                    statistic=statistic,
                    survivors=survivors,
                    ring=ring,
                    query=query,
                )
            except (*DAMAGED, EOFError, SyntaxError, TokenError) as error:  # NumPy's, of a header
                raise OutputError(
                    f"{path} is damaged. Restore it from a backup or start in a new folder."
                ) from error
            yield done
            number += 1


def describe_round(done: Kept) -> bytes:
    """Return the record of a round that is stored next to its numbers."""
    record = {
        "round": done.number,
        "stage": done.stage,
        "statistic": done.statistic,
        "survivors": list(done.survivors),
        "query": done.query.hex(),
    }
    return json.dumps(record, indent=1).encode()
