"""Two studies that differ in one field, with one cache: each gets what a fresh cache gives."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from consortium.errors import ConsortiumError
from consortium.opened_study import open_study
from consortium.study.data_section import DataSection
from consortium.views import VIEWS
from site_agent.loading.open import open_dataset
from tests.support.data_fields import DATA, EEG, FMRI, VIEWED, make_site, study_of, tell_time

NOT_AT_SITES = {"maps_smoothing", "surfaces"}
"""What is done to maps after their release, and what they are smoothed and drawn by."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_site(tmp_path_factory.mktemp("site"))


def outcome(site: Path, cache: Path, views: list[dict[str, Any]], **data: Any) -> list[Any]:
    """All that a study sees of the site: persons, blocks and maps, or why there are none."""
    study = study_of(views, **data)
    found = open_dataset(site / "bids", open_study(study, site), cache)
    try:
        seen: list[Any] = [*found.load(), found.people, found.lengths]
        kinds = ("features",) if views else ("features", "maps")
        blocks = [np.array(block) for kind in kinds for block in found.blocks(kind)]
        return [*seen, *((each.shape, each.dtype, each.tobytes()) for each in blocks)]
    except ConsortiumError as error:
        return [str(error)]


def differ(
    site: Path, folder: Path, one: list[Any], data: Any, other: list[Any], changed: Any
) -> bool:
    """Whether two studies see different things; each sees what it sees with a cache of its own."""
    shared, fresh = site / "shared", folder / "fresh"  # all studies of a worker share one
    once = outcome(site, shared, one, **data)
    again = outcome(site, shared, other, **changed)
    assert len(once) > 1
    assert again == outcome(site, fresh, other, **changed)
    assert once == outcome(site, shared, one, **data)
    return once != again


@pytest.mark.parametrize("field", DATA)
def test_studies_whose_data_differ_in_one_field(site: Path, tmp_path: Path, field: str) -> None:
    data, changed = DATA[field]
    alone = {"mask", "mesh"} & {*data}  # of a view no recording has that place
    kinds = {"series": []} if alone else {"series": [], "fmri": [FMRI], "eeg": [EEG]}
    seen = [
        differ(site, tmp_path / kind, views, data, views, changed) for kind, views in kinds.items()
    ]
    assert any(seen) is (field not in NOT_AT_SITES)


@pytest.mark.parametrize(
    ("source", "field"), [(source, field) for source in VIEWED for field in VIEWED[source][1]]
)
def test_studies_whose_views_differ_in_one_field(
    site: Path, tmp_path: Path, source: str, field: str
) -> None:
    view, fields = VIEWED[source]
    one, other = fields[field]
    seen = differ(site, tmp_path, [view | one], {}, [view | other], {})
    assert seen is (field not in NOT_AT_SITES)


def test_every_field_has_its_two_studies() -> None:
    """Gaps are an exception, as tables, single images and surfaces are in no cache."""
    assert set(DATA) == set(DataSection.model_fields)
    for source, kind in VIEWS.items():
        assert set(VIEWED[source][1]) == set(kind.model_fields) - {
            *("name", "source", "gaps", "zero_is_missing")
        }


def test_metadata_that_are_corrected_are_read_again(site: Path, tmp_path: Path) -> None:
    bids = tmp_path / "bids"
    shutil.copytree(site / "bids", bids)
    shutil.copy(site / "mask.nii.gz", tmp_path)
    filtered: dict[str, Any] = {"high_pass": 0.05, "task": "u"}
    first = outcome(tmp_path, tmp_path / "shared", [], **filtered)
    for bold in bids.glob("sub-*/func/*_task-u_*_bold.nii.gz"):
        tell_time(bold, 1.0)
    second = outcome(tmp_path, tmp_path / "shared", [], **filtered)
    assert len(first) == len(second) > 1
    assert first != second
