"""What a site puts on the exchange doesn't depend on how many participants it has."""

import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from consortium.algorithms import REGISTRY
from consortium.errors import ConsortiumError
from consortium.simulation.dataset import start_derivatives
from tests.support.cases import SITES, study_of
from tests.support.local_consortium import LocalConsortium, build

NOMINAL, HOME = 10, "north"
SEEN = {
    name: case
    for name, algorithm in sorted(REGISTRY.items())
    for case in reversed(algorithm.cases)
    if case.views and case.unit == "subject" and not case.mesh and case.rows == 1
}
"""The first example of each analysis that is for tables."""


def table_of(views, persons, generator):
    """The text of a table of participants with a column for each entry."""
    names = [f"{name}{k + 1}" for name, size in views for k in range(size)]
    lines = ["\t".join(("participant_id", *names))]
    for number in range(persons):
        cells = [
            str(generator.choice(["no", "yes"]))
            if name.startswith("group")
            else f"{generator.uniform(-1, 1):.3f}"
            for name in names
        ]
        lines.append("\t".join((f"sub-{number:03d}", *cells)))
    return "\n".join(lines) + "\n"


def sent_by_one_of(root: Path, name: str, persons: int) -> tuple[dict[str, int], str]:
    """Sizes by name of all that one site puts on the exchange in a run, and how the run ends."""
    case = SEEN[name]
    values = study_of(name, case, epsilon=90.0).model_dump(mode="json", exclude_none=True)
    values |= {"participants": dict.fromkeys(SITES, NOMINAL), "timing": {"join": 4, "answer": 4}}

    def make(folder: Path, _subjects: int) -> None:
        generator = np.random.default_rng(1)
        for site in SITES:
            many = persons if site == HOME else NOMINAL
            labels = [f"{number:03d}" for number in range(many)]
            start_derivatives(folder / site / "bids", "simulated tables", labels)
            text = table_of(case.views, many, generator)
            (folder / site / "bids" / "participants.tsv").write_text(text)

    place = build(root, text=yaml.safe_dump(values), make=make, most=100.0)
    local = LocalConsortium(place)
    centre, end = local.centre(), "complete"
    try:
        centre.open()
        assert centre.session is not None
        while centre.session.pending is not None:
            centre.step()
        centre.finish()
    except ConsortiumError as error:
        end = type(error).__name__
    exchange = root / "exchange"
    files = (path for path in exchange.rglob("*") if path.is_file() and HOME in path.parts)
    return {str(path.relative_to(exchange)): path.stat().st_size for path in files}, end


def rounds_in(sent: dict[str, int]) -> int:
    """The number of rounds that were answered."""
    return len([name for name in sent if "/contribution/" in name])


def until(sent: dict[str, int], last: int) -> dict[str, int]:
    """The messages of set-up and of so many rounds, without what follows the last of them."""
    found = {name: re.fullmatch(r"runs/[^/]+/(\d+)/.*", name) for name in sent}
    ends = ("ledgers/", "/attestation/")
    return {
        name: size
        for name, size in sent.items()
        if not any(end in name for end in ends)
        and (found[name] is None or int(found[name][1]) <= last)
    }


@pytest.mark.parametrize("name", SEEN)
def test_names_sizes_and_ends_are_alike_with_nobody_and_with_many(name, tmp_path):
    """Releases may end an analysis a round earlier, so that rounds of both runs are compared."""
    counts = (0, 1, 300) if name == "average" else (0, 30)
    runs = [sent_by_one_of(tmp_path / str(persons), name, persons) for persons in counts]
    assert {end for _, end in runs} == {"complete"}
    rounds = [rounds_in(sent) for sent, _ in runs]
    seen = [sent for sent, _ in runs]
    if len(set(rounds)) > 1:
        seen = [until(sent, min(rounds)) for sent in seen]
    assert len(seen[0]) > 4
    assert all(each == seen[0] for each in seen)
