"""Twice the nominal number of participants at the most, and nobody's presence decides who."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest
import yaml

from consortium.membership.keys import create_identity
from consortium.opened_study import OpenedStudy
from consortium.study.reader import parse_study
from consortium.study.spec import Study
from site_agent.data.cap import NO_CAP, Cap
from site_agent.data.survey import over_the_limit
from site_agent.ledger.ledger import Charge, Ledger, LedgerLimits
from site_agent.loading.open import open_dataset
from tests.support.tiny_views import view_space

MU, AFFORDED, STUDIES = 0.25, 4, 20
PEOPLE = [f"{number:02d}" for number in range(1, 31)]
NEIGHBOURS = [
    (PEOPLE, [*PEOPLE, "99"]),
    (PEOPLE[:1], ["01", "99"]),
    ([], ["99"]),
    (PEOPLE, [*PEOPLE[1:], "99"]),
]


def test_a_hash_is_the_same_in_any_company_and_spelling() -> None:
    cap = Cap(key=b"secret")
    (alone,) = cap.hashes(["sub-007"])
    assert alone in cap.hashes(["1", "7", "9"])
    assert alone not in Cap(key=b"other").hashes(["7"])
    assert cap.hashes([]).dtype == np.uint64
    assert len({*cap.hashes(PEOPLE).tolist()}) == len(PEOPLE)


def test_no_more_than_the_cap_are_taken_in_their_order() -> None:
    assert NO_CAP.taken(PEOPLE) == list(range(30))
    taken = Cap(10, b"secret").taken(PEOPLE)
    assert len(taken) == 10
    assert taken == sorted(taken) != list(range(10))


@pytest.mark.parametrize("most", [1, 2, 10, 29, 30, 31])
def test_a_neighbour_exchanges_at_most_one(most: int) -> None:
    for number in range(50):
        cap = Cap(most, number.to_bytes(2, "big"))
        for before, after in NEIGHBOURS:
            here, there = ({each[i] for i in cap.taken(each)} for each in (before, after))
            assert len(here - there) <= 1
            assert len(there - here) <= 1


def test_a_site_has_another_order_in_every_study(tmp_path: Path) -> None:
    identity = create_identity(tmp_path, bytes(64))
    first, second = (Cap.of(study_of(name, 5), "north", identity) for name in ("a", "b"))
    assert first.most == second.most == 10
    assert first.key != second.key
    assert Cap.of(study_of("a", 5), "north", identity) == first


def study_of(name: str, nominal: int) -> Study:
    values = {
        "study": name,
        "sites": ["north"],
        "participants": {"north": nominal},
        "data": {"standardize": "none", "scale": 0.001},
        "features": [
            {"name": "t", "source": "table", "columns": {name: {"low": 0, "high": 1}}},
        ],
        "privacy": {"epsilon": 1, "delta": 1e-5, "scheme": "local", "colluding_sites": 0},
        "algorithm": "average",
    }
    return parse_study(yaml.safe_dump(values))


class World:
    """A site that takes part in one study after the other."""

    def __init__(self, folder: Path, people: Sequence[str]) -> None:
        self.folder, self.people = folder, people
        self.ledger = Ledger(folder / "ledger.sqlite")
        self.identity = create_identity(folder, bytes(64))

    def take_part(self, name: str) -> set[str]:
        """Participants in a study, all of whose rows with a value qualify."""
        bids, draw = self.folder / "bids", {p: Random(f"{name} {p}").random() for p in PEOPLE}
        bids.mkdir(exist_ok=True)
        cells = (f"sub-{p}\t{0.5 if draw.get(p, 0) < 0.7 else 'n/a'}" for p in self.people)
        (bids / "participants.tsv").write_text("\n".join([f"participant_id\t{name}", *cells]))
        study = study_of(name, 5)
        cap = Cap.of(study, "north", self.identity)
        data = open_dataset(
            bids, OpenedStudy(study, view_space(study)), self.folder / "cache", cap=cap
        )
        run = Charge(
            *("/data", name, f"{name}-0001", 0, "", "", "subject", MU),
            *("5a" * 32, "ce" * 32, "", 0.0),
        )
        limits = LedgerLimits({"subject": MU * AFFORDED**0.5})
        _, left_out = self.ledger.hold(run, data.people, limits, "now")
        data.leave_out(map(over_the_limit, left_out))
        known = dict(zip(cap.hashes(self.people).tolist(), self.people, strict=True))
        assert len(data.lengths) == len(data.person_hashes) <= 10
        return {known[each] for each in data.person_hashes.tolist()}


@pytest.mark.parametrize(("before", "after"), NEIGHBOURS[:3])
def test_two_worlds_agree_but_in_the_studies_that_the_newcomer_paid_for(
    tmp_path: Path, before: Sequence[str], after: Sequence[str]
) -> None:
    """Limits are spent, the cap holds, and the newcomer qualifies in every study."""
    worlds = []
    for name, people in (("before", before), ("after", after)):
        (tmp_path / name).mkdir()
        worlds.append(World(tmp_path / name, people))
    different, full = 0, 0
    for number in range(STUDIES):
        here, there = (world.take_part(f"s{number}") for world in worlds)
        assert len(here - there) <= 1
        assert there - here <= {"99"}
        different += here != there
        full += len(here) == 10
    assert different <= AFFORDED  # what the ledger charged
    assert full > 0 or len(before) < 10
