"""Views of a study: every refusal names its field, and names and sizes follow from the file."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import StudyError
from consortium.study.reader import parse_study
from consortium.views import files_of
from consortium.views.eeg import EegView
from consortium.views.fmri import FmriView
from consortium.views.table import TableView

TABLE = {"name": "who", "source": "table", "columns": {"age": {"low": 0, "high": 100}}}
FMRI = {"name": "fmri", "source": "fmri"}
EEG = {"name": "erp", "source": "eeg", "channels": ["Cz", "Pz"], "events": ["target"]}
POWER = {
    "name": "power",
    "source": "eeg",
    "measure": "band-power",
    "channels": ["Cz"],
    "reference": "as-recorded",
    "bands": {"alpha": [8, 12]},
}


def study(*views: dict, algorithm: str = "average", **more):
    values = {
        "study": "vectors",
        "sites": ["north", "east", "south", "west"],
        "participants": dict.fromkeys(["north", "east", "south", "west"], 10),
        "features": list(views),
        "privacy": {"epsilon": 2, "delta": 1e-5, "colluding_sites": 1},
        "algorithm": algorithm,
    }
    return parse_study(yaml.safe_dump(values | more))


def test_good_views_are_read_with_their_defaults() -> None:
    table, fmri, erp, power = study(TABLE, FMRI, EEG, POWER).features
    assert isinstance(table, TableView)
    assert table.file == "participants.tsv"
    assert isinstance(fmri, FmriView)
    assert (fmri.measure, fmri.normalize) == ("amplitude", True)
    assert isinstance(erp, EegView)
    assert (erp.reference, erp.rate, len(erp.labels)) == ("average", 100.0, 2 * 71)
    assert erp.labels[0] == "Cz@-0.1"
    assert erp.labels[-1] == "Pz@0.6"
    assert power.labels == ("Cz@alpha",)


REFUSED = {
    "two views of one name": ((TABLE, FMRI | {"name": "who"}), "one name"),
    "an unknown source": (({"name": "x", "source": "meg"},), "source"),
    "an unknown field": ((FMRI | {"bnad": [0, 1]},), "bnad"),
    "no limits": ((TABLE | {"columns": {"age": {}}},), "either 'low' and 'high'"),
    "one limit": ((TABLE | {"columns": {"age": {"low": 0}}},), "either 'low' and 'high'"),
    "limits and levels": (
        (TABLE | {"columns": {"age": {"low": 0, "high": 1, "levels": ["a", "b"]}}},),
        "either",
    ),
    "limits the wrong way": ((TABLE | {"columns": {"age": {"low": 2, "high": 1}}},), "not below"),
    "a level twice": ((TABLE | {"columns": {"sex": {"levels": ["F", "F"]}}},), "each once"),
    "a range backwards": (
        (TABLE | {"columns": {"x[9-1]": {"low": 0, "high": 1}}},),
        "runs backwards",
    ),
    "too many columns": (
        (TABLE | {"columns": {"x[0-99999]": {"low": 0, "high": 1}}},),
        "more than 20000",
    ),
    "components without maps": ((FMRI | {"measure": "components"},), "components"),
    "maps without components": ((FMRI | {"components": "maps.nii.gz"},), "components"),
    "connectivity of voxels": ((FMRI | {"measure": "connectivity"},), "Name data.atlas, or"),
    "an image without name": ((FMRI | {"measure": "image"},), "image"),
    "an image's name with a folder": (
        (FMRI | {"measure": "image", "image": "../x"},),
        "image",
    ),
    "a channel twice": ((EEG | {"channels": ["Cz", "Cz"]},), "named twice"),
    "the average of one channel": ((EEG | {"channels": ["Cz"]},), "nothing would be left"),
    "no channels": ((EEG | {"channels": []},), "channels"),
    "too many entries": (
        (EEG | {"rate": 2000, "stop": 9, "channels": [f"E{n}" for n in range(99)]},),
        "more than 1000000 entries",
    ),
    "no events": ((EEG | {"events": []},), "name the events"),
    "no bands": ((POWER | {"bands": {}},), "at least one band"),
    "a narrow band": ((POWER | {"bands": {"slow": [8, 8.2]}},), "0.5 Hz wide"),
    "a band beyond the filter": ((POWER | {"bands": {"gamma": [20, 40]}},), "pass band"),
    "a filter backwards": ((EEG | {"filter": [30, 1]},), "lower frequency first"),
    "a rate that folds": ((EEG | {"rate": 70},), "avoid aliasing"),
    "time backwards": ((EEG | {"start": 0.7},), "before stop"),
    "a baseline without time": ((EEG | {"start": 0.0},), "baseline"),
    "a task with a path": ((EEG | {"task": "../x"},), "task"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_named(case: str) -> None:
    views, match = REFUSED[case]
    with pytest.raises(StudyError, match=match) as caught:
        study(*views)
    assert "\n" not in str(caught.value)


def test_views_fit_the_rest_of_the_study() -> None:
    with pytest.raises(StudyError, match="image series"):
        study(TABLE, algorithm="ica", analysis={"components": 2})
    with pytest.raises(StudyError, match="unit: subject"):
        study(
            TABLE,
            privacy={"unit": "timepoint", "epsilon": 2, "delta": 1e-5, "colluding_sites": 1},
            data={"detrend": "none", "standardize": "none"},
        )
    with pytest.raises(StudyError, match="every amplitude one"):
        study(FMRI, data={"standardize": "voxel"})
    assert study(FMRI, data={"standardize": "voxel", "atlas": "atlas.nii.gz"}).features
    assert study(FMRI | {"measure": "alff"}, data={"standardize": "voxel"}).features


def test_a_change_of_a_view_is_another_study() -> None:
    assert study(EEG).digest != study(EEG | {"reject": 100}).digest


def test_files_beside_the_study_are_named() -> None:
    maps = FMRI | {"name": "net", "measure": "components", "components": "maps.nii.gz"}
    assert files_of(study(TABLE, maps, EEG).features) == ("maps.nii.gz",)


def test_edges_are_named_by_their_pair_and_stay_as_they_are() -> None:
    edges = {"name": "edges", "source": "fmri", "measure": "connectivity"}
    (view,) = study(edges, data={"atlas": "atlas.nii.gz"}).features
    assert (view.center, view.normalize, view.is_image) == (False, False, False)
    assert view.size(70, 0) == 70 * 69 // 2
    assert view.names_of(3) == ("region1-region2", "region1-region3", "region2-region3")
    (maps,) = study(edges | {"components": "maps.nii.gz", "normalize": True}).features
    assert maps.size(70_000, 4) == 6
    assert (maps.names_of(1), maps.normalize) == (("network1-network2",), True)
    assert len(set(view.names_of(view.size(100, 0)))) == 4950
    for regions in (1, 2000):
        with pytest.raises(StudyError, match="another number of regions"):
            view.size(regions, 0)


@given(st.floats(-2, -0.01), st.floats(0.01, 2), st.integers(80, 1000), st.integers(1, 5))
def test_an_epoch_has_a_label_for_every_sample(
    start: float, stop: float, rate: int, channels: int
) -> None:
    names = [f"E{n}" for n in range(channels)]
    changes = {"start": start, "stop": stop, "rate": rate, "channels": names, "baseline": False}
    changes["reference"] = "as-recorded"
    view = EegView.model_validate(EEG | changes)
    assert len(view.labels) == channels * len(view.times)
    assert view.times[0] == pytest.approx(start, abs=0.5 / rate + 1e-9)
    assert view.times[-1] == pytest.approx(stop, abs=0.5 / rate + 1e-9)
