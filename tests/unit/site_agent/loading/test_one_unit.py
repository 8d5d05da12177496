"""One raw unit is replaced on disk, under every field of a study: nothing else changes."""

import os
import shutil
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import pytest

from consortium.errors import DataError, StudyError
from consortium.opened_study import open_study
from consortium.study.spec import Study
from site_agent.images.series import SiteDataset
from site_agent.loading.open import open_dataset
from site_agent.loading.progress import Data
from tests.support.data_fields import (
    COURSES,
    DATA,
    EDGES,
    EEG,
    FMRI,
    GAPPY,
    GAPPY_PLAN,
    MATRIX,
    ON_PARCELS,
    PARCEL_COURSES,
    PARCELS,
    TABLE,
    VIEWED,
    make_site,
    study_of,
    write_pair,
)
from tests.support.recordings import write_tape
from tests.support.surfaces import write_parcels, write_values
from tests.support.tiny_images import SHAPE, save
from tests.support.tiny_recordings import tiny_tape

MIXED = {
    "detrend": {"detrend": "constant"},
    "high_pass": {"high_pass": 0.01},
    "low_pass": {"low_pass": 0.1},
    "confounds": {"confounds": ["motion"]},
    "standardize": {"standardize": "voxel"},
}
"""Fields of ``data`` by which a volume depends on others, and what a study might say of them."""
PLAIN = {"detrend": "none", "standardize": "none"}
STUDIES = [
    *(([], each) for pair in DATA.values() for each in pair),
    ([], ON_PARCELS),
    *(([FMRI], each) for pair in DATA.values() for each in pair if not {"mask", "mesh"} & {*each}),
    ([FMRI | {"measure": "connectivity"}], DATA["atlas"][1]),
    ([FMRI | EDGES], DATA["confounds"][1]),
    *(([TABLE | each], {}) for each in (MATRIX, COURSES, PARCELS, PARCEL_COURSES)),
    *(([EEG], DATA[name][1]) for name in ("session", "run", "acquisition", "direction", "runs")),
    *(
        ([view | each], {})
        for view, fields in VIEWED.values()
        for pair in fields.values()
        for each in pair
    ),
]
"""Views and ``data`` of studies that between them say each field's two values."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_site(tmp_path_factory.mktemp("site"))


def copied(site: Path, target: Path) -> Path:
    shutil.copytree(site, target)
    return target


def linked(site: Path, target: Path) -> Path:
    """The site with a cache of its own and the very files, none of which may be written to."""
    shutil.copytree(site, target, copy_function=os.link)
    return target


def opened(site: Path, study: Study) -> Data:
    """The study's data of a site, loaded with a cache of its own."""
    found = open_dataset(site / "bids", open_study(study, site), site / "cache")
    for _ in found.load():
        pass
    return found


def blocks(data: Data) -> dict[str, list[np.ndarray]]:
    """Each person's blocks: of what is analysed, and of maps where a study has them."""
    kinds = ("features", "maps") if isinstance(data, SiteDataset) else ("features",)
    each = [[np.array(block) for block in data.blocks(kind)] for kind in kinds]
    return dict(zip(data.people, map(list, zip(*each, strict=True)), strict=True))


@pytest.mark.parametrize("field", MIXED)
def test_what_mixes_volumes_is_refused_where_a_volume_is_the_unit(field: str) -> None:
    with pytest.raises(StudyError, match=f"'data': {field} mix a participant's volumes"):
        study_of([], unit="timepoint", **PLAIN | MIXED[field])


def test_a_number_of_volumes_that_all_must_have_is_refused_where_a_volume_is_the_unit() -> None:
    with pytest.raises(StudyError, match=r"data\.volumes"):
        study_of([], unit="timepoint", **PLAIN, volumes=24)


def replace_volume(path: Path, value: float) -> None:
    """Replace a recording, or its left hemisphere, by one whose fourth volume is another."""
    scan, generator = nib.load(path), np.random.default_rng(1)
    if isinstance(scan, nib.GiftiImage):
        size = scan.darrays[3].data.shape
        scan.darrays[3].data = (value * generator.standard_normal(size)).astype(np.float32)
        path.unlink()
        nib.save(scan, path)
        return
    values = scan.get_fdata(dtype=np.float32)
    path.unlink()
    values[..., 3] = value * generator.standard_normal(values.shape[:3])
    nib.save(nib.Nifti1Image(values, scan.affine, scan.header), path)


@pytest.mark.parametrize(("field", "which"), [(f, w) for f in DATA for w in (0, 1)])
def test_one_volume_changes_its_own_column_only(
    site: Path, tmp_path: Path, field: str, which: int
) -> None:
    """Under every field's two values, but for those that are refused."""
    said = PLAIN | DATA[field][which]
    if field in {*MIXED, "volumes"} and which:
        return
    study = study_of([], unit="timepoint", **said)
    place = linked(site, tmp_path / "site")
    before = opened(place, study)
    first, shown = before.people[0], blocks(before)
    assert isinstance(before, SiteDataset)
    path = before.survey.subjects[0].runs[0].bold
    for volume in (1e6, np.nan, np.inf, 3e38, 0.0):
        replace_volume(path, volume)
        shutil.rmtree(place / "cache")
        after = blocks(opened(place, study))
        assert after.keys() == shown.keys()
        for label in shown:
            for old, new in zip(shown[label], after[label], strict=True):
                moved = np.flatnonzero((old != new).any(axis=0)).tolist()
                assert moved == ([3] if label == first else [])


def test_the_last_volume_that_is_not_zero_decides_for_itself_alone(
    site: Path, tmp_path: Path
) -> None:
    """And what is prepared for studies of volumes is in no cache of studies of persons."""
    place, views = copied(site, tmp_path / "site"), []
    for path in (place / "bids" / "sub-01").rglob("*_bold.nii.gz"):
        scan = nib.load(path)
        empty = np.zeros(scan.shape, dtype=np.float32)
        nib.save(nib.Nifti1Image(empty, scan.affine, scan.header), path)
    found = opened(place, study_of(views, unit="timepoint", **PLAIN))
    assert found.people == ("01", "02")
    assert not blocks(found)["01"][0].any()
    assert opened(place, study_of(views, **PLAIN)).people == ("02",)


def replace_person(bids: Path, change: str) -> None:
    """Give person 02 other files, damaged ones, or none."""
    home, generator = bids / "sub-02", np.random.default_rng(5)
    for number, path in enumerate(sorted(p for p in home.rglob("*") if p.is_file())):
        if change == "gone":
            path.unlink()
        elif change == "damaged":
            path.write_bytes(b"damaged")
        elif path.name.endswith("_bold.nii.gz"):
            scan = nib.load(path)
            shape = (*scan.shape[:3], scan.shape[3] + 7)
            values = 1e4 * generator.standard_normal(shape).astype(np.float32)
            nib.save(nib.Nifti1Image(values, scan.affine, scan.header), path)
            table = path.with_name(path.name.removesuffix(".nii.gz") + "_confounds.tsv")
            motion = generator.standard_normal(shape[3])
            table.write_text("\n".join(["motion", *map(str, motion)]) + "\n")
        elif path.name.endswith("_statmap.nii.gz"):
            save(path, generator.standard_normal(SHAPE).astype(np.float32))
        elif path.name.endswith(".ptseries.nii"):
            names = tuple(nib.load(path).header.get_axis(1).name)
            write_parcels(path, generator.standard_normal((31, len(names))), names)
        elif path.name.endswith(".pscalar.nii"):
            write_parcels(path, generator.uniform(0, 5, 2))
        elif path.suffix == ".gii":
            values = generator.standard_normal(len(nib.load(path).darrays[0].data))
            write_values(path, values)
        elif path.name.endswith("_relmat.tsv"):
            write_pair(path.parent, "sub-02", seed=50)
        elif path.suffix == ".json":
            path.write_text('{"RepetitionTime": 0.7}')
        elif path.name.endswith(".vhdr"):
            stem = path.name.removesuffix("_eeg.vhdr")
            write_tape(path.parent, stem, tiny_tape(90 + number, trials=20), ".vhdr")
    for table in bids.glob("*.tsv"):
        lines = table.read_text().splitlines()
        row = {"gone": [], "damaged": ["sub-02\tn/a"]}.get(change, ["sub-02\t1"])
        kept = [line for line in lines if not line.startswith("sub-02")]
        table.write_text("\n".join([*kept, *row]) + "\n")


@pytest.fixture(scope="module")
def whole(site: Path) -> list[dict[str, Any]]:
    """Blocks of all studies, before anything is replaced."""
    return [tried(site, views, data) for views, data in STUDIES]


@pytest.mark.parametrize("change", ["other", "damaged", "gone"])
def test_one_person_changes_no_other(
    site: Path, whole: list[dict[str, Any]], tmp_path: Path, change: str
) -> None:
    """Images, tables, metadata and recordings of one person; bit for bit, under every field."""
    place, seen = copied(site, tmp_path / "site"), 0
    replace_person(place / "bids", change)
    shutil.rmtree(place / "cache", ignore_errors=True)
    for (views, data), shown in zip(STUDIES, whole, strict=True):
        after = tried(place, views, data)
        assert "02" not in after or change == "other"
        assert ("01" in after) is ("01" in shown), f"{views} {data}"
        for old, new in zip(shown.get("01", []), after.get("01", []), strict=True):
            seen += 1
            np.testing.assert_array_equal(old, new, err_msg=f"{views} {data}")
        pairs = zip(shown.get("02", []), after.get("02", []), strict=False)
        same = [a for a, b in pairs if a.shape == b.shape and (a == b).all()]
        assert all(each.size == 2 for each in same), f"{views} {data}"  # normalized, only a sign
    assert seen >= len(STUDIES) - 4


def test_gaps_of_one_person_change_no_other(site: Path, tmp_path: Path) -> None:
    """Whatever one person lacks, the blocks of the others stay, and their gaps with them."""
    place, first = copied(site, tmp_path / "site"), "participant_id\tage\tiq\tmemory\tspeed"

    def found(row: str) -> dict[str, list[np.ndarray]]:
        table = f"{first}\nsub-01\t30\t100\tn/a\t3\nsub-02\t{row}\n"
        (place / "bids" / "participants.tsv").write_text(table)
        return blocks(opened(place, study_of(GAPPY, plan=GAPPY_PLAN)))

    whole = found("20\t1\t2\t3")
    assert len(whole) == 2
    for row, stays in (
        ("60\t9\tn/a\t8", True),
        ("20\tn/a\tn/a\t3", False),
        ("n/a\t1\t2\t3", False),
        ("n/a\tn/a\tn/a\tn/a", False),
    ):
        after = found(row)
        assert ("02" in after) is stays
        np.testing.assert_array_equal(after["01"], whole["01"])


def tried(site: Path, views: list[dict[str, Any]], data: dict[str, Any]) -> dict[str, Any]:
    """Each person's blocks; none if nobody takes part."""
    try:
        return blocks(opened(site, study_of(views, **data)))
    except DataError:
        return {}


# -- how many take part ---------------------------------------------------------------------

VILLAGE = TABLE | {"columns": {"village": {"levels": ["A", "B", "C"]}}}
IQ = {"age": {"low": 0, "high": 90}, "iq": {"low": 0, "high": 200}}
