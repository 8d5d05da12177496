"""``python -m benchmarks.demo_profile [TREE]``: processor seconds of the demo, by kind of work.

All processes are sampled: the centre, four agents, Prefect's server. With another tree of the
project the demo runs in both, one after the other, and only the whole is compared.
"""

import os
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.sampled.sitecustomize import FOLDER
from benchmarks.timing import command, show

ROOT = Path(__file__).parents[1]


def demo(tree: Path, samples: Path | None = None) -> float:
    """Carry the demo out as a tree has it; processor seconds of all its processes."""
    paths = [str(tree)] if samples is None else [str(Path(__file__).parent / "sampled"), str(tree)]
    given = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": ""}
    if samples is not None:
        given[FOLDER] = str(samples)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "consortium", "demo", "--out", f"{out}/demo"]
        subprocess.run(
            command, check=True, cwd=tree, env=os.environ | given, stdout=subprocess.DEVNULL
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(*trees: str) -> None:
    """Print the table."""
    rows, found = [], Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        whole = demo(ROOT, Path(folder))
        for path in Path(folder).iterdir():
            for line in path.read_text().splitlines():
                seconds, _, kind = line.partition(" ")
                found[kind] += float(seconds)  # type: ignore[assignment]
    rows += [[kind, f"{seconds:.1f}"] for kind, seconds in found.most_common()]
    rows.append(["all processes, sampled", f"{whole:.1f}"])
    for tree in trees:
        for each in (ROOT, Path(tree).resolve()) * 2:
            rows.append([f"all processes, {each.name}", f"{demo(each):.1f}"])
    show("The demo", ["work", "processor s"], rows)


if __name__ == "__main__":
    command(main)
