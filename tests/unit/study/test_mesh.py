"""What a study on a mesh may say, and what of voxels it may not."""

import pytest

from consortium.errors import StudyError
from consortium.study.reader import parse_study
from consortium.study.spec import Study
from tests.support.cases import make_study

PAIR = ["L.surf.gii", "R.surf.gii"]


def study(**changed: object) -> Study:
    plain = make_study("group_ica", {"anyway": True}).model_dump(mode="json")
    return Study.model_validate({**plain, "data": {"mesh": "fsaverage5"}, **changed})


def test_the_space_is_the_meshs_and_its_files_are_signed() -> None:
    assert study().data.space == "fsaverage"
    data = {"mesh": "fsLR-32k", "surfaces": PAIR, "cortex": ["L.wall.gii", "R.wall.gii"]}
    named = study(data=data)
    assert named.data.space == "fsLR"
    assert named.map_files == (*PAIR, "L.wall.gii", "R.wall.gii")
    assert parse_study(named.model_dump_json()) == named


def test_both_hemispheres_of_templates_are_signed() -> None:
    analysis = {"templates": "maps_hemi-L_components.func.gii", "anyway": True}
    named = study(algorithm="template_networks", analysis=analysis)
    assert named.map_files == tuple(f"maps_hemi-{side}_components.func.gii" for side in "LR")


VIEW = {"name": "x", "source": "surface", "mesh": "fsaverage5", "values": "thickness"}
REFUSED = {
    "atlas": ({"data": {"mesh": "fsaverage5", "atlas": "a.nii"}}, "is a file of labels of CIFTI"),
    "smoothing": ({"data": {"mesh": "fsaverage5", "smoothing": 6}}, "smoothing: it is for voxels"),
    "resolution": (
        {"data": {"mesh": "fsaverage5", "resolution": 3}},
        "resolution: it is for voxels",
    ),
    "space": ({"data": {"mesh": "fsaverage5", "space": "fsLR"}}, "Leave space out"),
    "surfaces": ({"data": {"mesh": "fsLR-32k"}}, "surfaces: those of fsLR-32k are in no package"),
    "no mesh": ({"data": {"surfaces": PAIR}}, "surfaces and cortex are of a mesh. Name it"),
    "views": (
        {"algorithm": "pca", "analysis": {"components": 2}, "features": [VIEW]},
        "is for series",
    ),
    "report": ({"report": {"atlas": "a.nii"}}, "its atlas and networks have voxels"),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_is_said_of_voxels_is_refused(name: str) -> None:
    changed, why = REFUSED[name]
    with pytest.raises((StudyError, ValueError), match=why):
        study(**changed)
