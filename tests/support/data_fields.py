"""For each field of ``data`` and of every view two studies that differ in it, and a site."""

import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from consortium.simulation.dataset import write_indented
from consortium.study.reader import parse_study
from consortium.study.spec import Study
from consortium.views.meshes import MESHES
from tests.support.recordings import write_tape
from tests.support.surfaces import (
    write_dlabel,
    write_func_pair,
    write_parcels,
    write_sphere,
    write_wall,
)
from tests.support.surfaces import write_pair as write_hemispheres
from tests.support.tiny_images import AFFINE, SHAPE, save, tiny_grid, tiny_series
from tests.support.tiny_recordings import CHANNELS, tiny_tape

SPACE = "space-MNI152NLin2009cAsym_desc-preproc"
RUNS = ("ses-a_task-t_acq-x_dir-ap_run-1", "ses-b_task-t_acq-y_dir-pa_run-2", "task-u")
VERSION = f"{RUNS[0]}_space-MNI152NLin2009cAsym_res-2_desc-smoothed"
IMAGES = (
    *(f"{run}_{SPACE}" for run in RUNS),
    f"task-t_{SPACE}_echo-1",
    "task-t_space-other",
    f"task-whole_{SPACE}",
    VERSION,
)
WHOLE_BRAIN = np.diag([50.0, 50.0, 50.0, 1.0])
WHOLE_BRAIN[:3, 3] = -125, -140, -90
EEG = {
    "name": "eeg",
    "source": "eeg",
    "task": "t",
    "channels": list(CHANNELS[:3]),
    "events": ["target"],
    "minimum_epochs": 2,
}
POWER = {"measure": "band-power", "bands": {"alpha": [8, 12]}}
FMRI = {"name": "fmri", "source": "fmri"}
EDGES = {"measure": "connectivity", "components": "maps.nii.gz"}
PAIR: dict[str, Any] = {"columns": {"a-b": {"low": -1, "high": 1}}}
MATRIX = PAIR | {"file": "sub-*/func/sub-*_task-t_relmat.tsv"}
COURSES = PAIR | {"file": "sub-*/func/sub-*_task-t_timeseries.tsv"}
PARCEL_COURSES = {
    "file": "sub-*/func/sub-*_task-t_timeseries.ptseries.nii",
    "columns": {"L_V1-R_V1": {"low": -1, "high": 1}},
}
SURFACE = {"name": "cortex", "source": "surface", "mesh": "fsaverage5", "values": "thickness"}
SPHERE = {"surfaces": ["L.surf.gii", "R.surf.gii"]}
FINE = {"mesh": "fsaverage6", "surfaces": ["L6.surf.gii", "R6.surf.gii"]}
ON_MESH = {"mesh": "fsaverage5"}
ON_PARCELS = ON_MESH | {"task": "parcels", "atlas": "labels.dlabel.nii"}
PARCELS = {
    "file": "sub-*/anat/sub-*_thickness.pscalar.nii",
    "columns": {"*": {"low": 0, "high": 5}},
    "regions": ["L_V1", "R_V1"],
}
TABLE = {"name": "who", "source": "table", "columns": {"age": {"low": 0, "high": 90}}}

DATA: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "task": ({}, {"task": "u"}),
    "persons": ({}, {"persons": {"age": {"high": 40}}}),
    "missing": (
        {"persons": {"age": {"low": 0}}},
        {"persons": {"age": {"low": 0}}, "missing": [50]},
    ),
    "session": ({"session": "a"}, {"session": "b"}),
    "run": ({"run": 1}, {"run": 2}),
    "acquisition": ({"acquisition": "x"}, {"acquisition": "y"}),
    "direction": ({"direction": "ap"}, {"direction": "pa"}),
    "echo": ({}, {"echo": 1}),
    "description": ({}, {"description": "smoothed"}),
    "entities": ({}, {"entities": {"res": "2"}}),
    "runs": ({"runs": "all"}, {"runs": "first"}),
    "space": ({}, {"space": "other"}),
    "mesh": (ON_MESH, FINE),
    "surfaces": (ON_MESH, ON_MESH | SPHERE),
    "cortex": (ON_MESH, ON_MESH | {"cortex": ["L.wall.gii", "R.wall.gii"]}),
    "resolution": (
        {"task": "whole", "mask": "template", "resolution": 24},
        {"task": "whole", "mask": "template", "resolution": 20},
    ),
    "mask": ({}, {"mask": "mask2.nii.gz"}),
    "atlas": ({}, {"atlas": "atlas.nii.gz"}),
    "maps_resolution": (
        {"task": "whole", "mask": "template", "resolution": 24, "maps_resolution": 18},
        {"task": "whole", "mask": "template", "resolution": 24, "maps_resolution": 16},
    ),
    "maps_smoothing": ({}, {"maps_smoothing": 8}),
    "smoothing": ({"smoothing": 0}, {"smoothing": 6}),
    "detrend": ({}, {"detrend": "quadratic"}),
    "high_pass": ({}, {"high_pass": 0.05}),
    "low_pass": ({}, {"low_pass": 0.1}),
    "confounds": ({}, {"confounds": ["motion"]}),
    "standardize": ({}, {"standardize": "none"}),
    "scale": ({"standardize": "none"}, {"standardize": "none", "scale": 0.01}),
    "minimum_volumes": ({}, {"minimum_volumes": 40}),
    "volumes": ({}, {"volumes": 30}),
}
"""By field of ``data``: what two studies say of it."""
VIEWED: dict[str, tuple[dict[str, Any], dict[str, tuple[dict[str, Any], dict[str, Any]]]]] = {
    "table": (
        TABLE,
        {
            "file": ({}, {"file": "others.tsv"}),
            "columns": ({}, {"columns": {"age": {"low": 0, "high": 80}}}),
            "regions": (
                {"columns": {"*": {"low": 0, "high": 90}}, "regions": ["age"]},
                {"columns": {"*": {"low": 0, "high": 90}}, "regions": ["iq"]},
            ),
        },
    ),
    "fmri": (
        FMRI,
        {
            "measure": ({}, EDGES),
            "band": ({"measure": "alff"}, {"measure": "alff", "band": [0.05, 0.1]}),
            "components": ({}, {"measure": "components", "components": "maps.nii.gz"}),
            "image": ({}, {"measure": "image", "image": "statmap"}),
            "center": ({}, {"center": False}),
            "normalize": ({}, {"normalize": False}),
        },
    ),
    "surface": (
        SURFACE,
        {
            "mesh": ({}, FINE),
            "values": ({}, {"values": "sulc"}),
            "surfaces": ({}, SPHERE),
            "cortex": ({}, {"cortex": ["L.wall.gii", "R.wall.gii"]}),
            "center": ({}, {"center": True}),
            "normalize": ({}, {"normalize": True}),
        },
    ),
    "eeg": (
        EEG,
        {
            "task": ({}, {"task": "u"}),
            "measure": ({}, POWER),
            "channels": ({}, {"channels": [CHANNELS[3], *CHANNELS[1:3]]}),
            "reference": ({}, {"reference": "as-recorded"}),
            "rate": ({}, {"rate": 125}),
            "filter": ({}, {"filter": [1, 20]}),
            "events": ({}, {"events": ["standard"]}),
            "start": ({}, {"start": -0.2}),
            "stop": ({}, {"stop": 0.5}),
            "baseline": ({}, {"baseline": False}),
            "reject": ({}, {"reject": 30}),
            "minimum_epochs": ({}, {"minimum_epochs": 13}),
            "bands": (POWER, POWER | {"bands": {"theta": [4, 8]}}),
            "scale": ({"normalize": False}, {"normalize": False, "scale": 5}),
            "center": ({}, {"center": True}),
            "normalize": ({}, {"normalize": False}),
        },
    ),
}
"""For each kind of view, its common fields, and by field the values of two studies."""


def tell_time(bold: Path, seconds: float) -> None:
    """Write an image's repetition time next to it."""
    write_indented(
        bold.with_name(bold.name.replace(".nii.gz", ".json")), {"RepetitionTime": seconds}
    )


def write_pair(folder: Path, stem: str, seed: int) -> None:
    """Write a participant's matrix between two regions, and their time series."""
    courses = np.random.default_rng(seed).standard_normal((9, 2))
    for name, rows in (("relmat", np.corrcoef(courses.T)), ("timeseries", courses)):
        lines = ["a\tb", *("\t".join(f"{x:.6f}" for x in row) for row in rows)]
        (folder / f"{stem}_task-t_{name}.tsv").write_text("\n".join(lines) + "\n")


def _on_mesh(space: str, seed: int) -> list[NDArray[np.float32]]:
    """Return series on both hemispheres, T x N each."""
    size = (2, 12, MESHES[space].vertices)
    return list(np.random.default_rng(seed).standard_normal(size, dtype=np.float32))


def make_site(root: Path) -> Path:
    """Write two participants with two recordings of every kind, and the study's public files.

    They are copies of those that this process has made once.
    """
    return Path(shutil.copytree(_made_site().name, root, dirs_exist_ok=True))


@cache
def _made_site() -> TemporaryDirectory[str]:
    folder = TemporaryDirectory()
    root = Path(folder.name)
    bids = root / "bids"
    for person, label in enumerate(("01", "02")):
        stem = f"sub-{label}"
        for number, name in enumerate(IMAGES):
            affine = WHOLE_BRAIN if "whole" in name else AFFINE
            series = tiny_series(10 * person + number, volumes=15 + 5 * person + number)
            bold = save(bids / stem / "func" / f"{stem}_{name}_bold.nii.gz", series, affine)
            tell_time(bold, 2.0)
            table = bold.with_name(bold.name.removesuffix(".nii.gz") + "_confounds.tsv")
            motion = np.random.default_rng(number).standard_normal(series.shape[3])
            table.write_text("\n".join(["motion", *(f"{x:.6f}" for x in motion)]) + "\n")
        save(bids / stem / "func" / f"{stem}_statmap.nii.gz", tiny_series(person)[..., 0])
        write_pair(bids / stem / "func", stem, seed=person)
        write_parcels(bids / stem / "anat" / f"{stem}_thickness.pscalar.nii", [2 + person, 3])
        courses = np.random.default_rng(person).standard_normal((9, 2))
        write_parcels(bids / stem / "func" / f"{stem}_task-t_timeseries.ptseries.nii", courses)
        write_parcels(
            bids / stem / "func" / f"{stem}_task-parcels_timeseries.ptseries.nii",
            np.random.default_rng(person).standard_normal((30, 3)),
            ("a", "b", "c"),
        )
        for number, space in enumerate(("fsaverage5", "fsaverage6")):
            seed = 10 * number + person
            write_hemispheres(bids / stem / "anat", stem, space, "thickness", seed=seed)
            write_func_pair(bids / stem / "func", f"{stem}_task-t", space, _on_mesh(space, seed))
        write_hemispheres(bids / stem / "anat", stem, "fsaverage5", "sulc", seed=20 + person)
        for number, name in enumerate(RUNS):
            tape = tiny_tape(20 + 10 * person + number, trials=12)
            write_tape(bids / stem / "eeg", f"{stem}_{name}", tape, ".vhdr")
    ages = "participant_id\tage\tiq\nsub-01\t30\t100\nsub-02\t50\tn/a\n"
    (bids / "participants.tsv").write_text(ages)
    (bids / "others.tsv").write_text(ages.replace("30", "40"))
    mask = tiny_grid().mask.astype(np.float32)
    save(root / "mask.nii.gz", mask)
    mask[2, 2, 1] = 0
    save(root / "mask2.nii.gz", mask)
    keys = [1 + np.arange(MESHES["fsaverage5"].vertices) % 3] * 2
    write_dlabel(root / "labels.dlabel.nii", keys, {1: "a", 2: "b", 3: "c"})
    atlas = np.ones(SHAPE, dtype=np.float32)
    atlas[3:] = 2
    save(root / "atlas.nii.gz", atlas)
    save(root / "maps.nii.gz", tiny_series(7)[..., :2])
    for side in ("L", "R"):
        write_sphere(root / f"{side}.surf.gii", "fsaverage5")
        write_sphere(root / f"{side}6.surf.gii", "fsaverage6")
        write_wall(root / f"{side}.wall.gii", "fsaverage5")
    return folder


GAPPY: list[dict[str, Any]] = [
    {"name": "who", "source": "table", "columns": {"age": {"low": 0, "high": 90}}},
    {
        "name": "outcomes",
        "source": "table",
        "columns": {name: {"low": 0, "high": 200} for name in ("iq", "memory", "speed")},
        "gaps": 0.4,
    },
]
"""Views of a regression whose outcomes may be missing."""
GAPPY_PLAN = {
    "algorithm": "glm",
    "analysis": {"outcomes": "outcomes", "formula": "age", "contrasts": {"older": "age"}},
}


def study_of(
    views: list[dict[str, Any]],
    unit: str = "subject",
    plan: dict[str, Any] | None = None,
    **data: Any,
) -> Study:
    """Return a study of that site, of components unless the plan states other views."""
    inside = {} if "mesh" in data else {"mask": "mask.nii.gz"}
    return parse_study(
        yaml.safe_dump(
            {
                "study": "one",
                "sites": ["north", "east", "south", "west"],
                "participants": dict.fromkeys(["north", "east", "south", "west"], 10),
                "data": {"task": "t", "minimum_volumes": 10} | inside | data,
                **({"features": views} if views else {}),
                "privacy": {"epsilon": 8, "delta": 1e-5, "colluding_sites": 1, "unit": unit},
                **(plan or {"algorithm": "pca", "analysis": {"components": 2}}),
            }
        )
    )
