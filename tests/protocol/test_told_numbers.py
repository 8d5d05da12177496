"""Set-ups that a centre lets die once it has heard how many take part: what they tell, and cost."""

import shutil
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.engine.queries import decode_note
from consortium.errors import ConsortiumError, SiteError
from site_agent.layout import LEDGER
from site_agent.ledger.ledger import Ledger
from tests.support.forgery import settle
from tests.support.local_consortium import STUDY, LocalConsortium

ANY_LENGTH = STUDY.replace(", volumes: 24", "")
DECLINED = "north takes no further part (declined)"
REFUSED = "north takes no further part (privacy)"


@pytest.fixture
def place(tmp_path: Path) -> DemoFolders:
    """Everybody said yes to one run."""
    return settle(tmp_path / "place", text=ANY_LENGTH)


def hear(place: DemoFolders) -> tuple[int, int] | str:
    """Begin a run and give it up: north's numbers, or how it refuses."""
    local = LocalConsortium(place)
    centre = local.centre()
    gather = centre._gather

    def heard(*args: object) -> None:
        gather(*args)  # type: ignore[arg-type]
        raise SiteError("heard enough")

    centre._gather = heard  # type: ignore[method-assign]
    with pytest.raises(ConsortiumError) as ended:
        centre.open()
    centre.abort(ended.value)
    local.pump()
    for agent in local.agents.values():
        agent.site.ledger.close()
    if "heard enough" not in str(ended.value):
        return str(ended.value).partition(":")[0]
    note = decode_note(centre._hub.setup.notes["north"], "north")
    return note.subjects, note.samples


def lengthen(place: DemoFolders) -> None:
    """North's persons are scanned again."""
    for path in place.dataset("north").rglob("*_bold.nii.gz"):
        scan = nib.load(path)
        values = np.tile(scan.get_fdata(dtype=np.float32), 2)
        nib.save(nib.Nifti1Image(values, scan.affine, scan.header), path)


def bring(place: DemoFolders, first: int, last: int) -> None:
    """New patients come to north."""
    home = sorted(place.dataset("north").glob("sub-*"))[0]
    for number in range(first, last):
        new = home.with_name(f"sub-new{number}")
        shutil.copytree(home, new)
        for path in [path for path in new.rglob("*") if path.is_file()]:
            path.rename(path.with_name(path.name.replace(home.name, new.name)))


def lines(place: DemoFolders) -> int:
    book = Ledger(place.site("north") / LEDGER)
    try:
        return len(book.entries())
    finally:
        book.close()


def test_one_yes_tells_one_number_of_volumes(place: DemoFolders) -> None:
    assert hear(place) == (3, 72)
    assert hear(place) == (3, 72)
    lengthen(place)
    assert hear(place) == DECLINED
    assert hear(place) == REFUSED  # whatever the data are: they are not looked at any more


def test_a_refusal_of_a_second_number_uses_a_run_up_like_any_other(place: DemoFolders) -> None:
    """Else the centre asks every day, for nothing, whether the tenth newcomer has come."""
    assert hear(place) == (3, 72)
    bring(place, 0, 9)
    assert hear(place) == (3, 72)
    bring(place, 9, 10)
    assert hear(place) == DECLINED
    before = lines(place)
    assert [hear(place), hear(place)] == [REFUSED, REFUSED]
    assert lines(place) == before
