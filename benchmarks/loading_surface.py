"""Time to load a dense CIFTI series to float32 on the cortex; the peer is nibabel's reading."""

import tempfile
from pathlib import Path

import nibabel as nib
import numpy as np

from benchmarks.table import Row, alternate
from consortium.space.mesh import SIDES, Hemisphere, Mesh
from site_agent.data.survey import RecordingRun
from site_agent.images.surfaces import read_surface_series

VERTICES, CORTEX, VOXELS, VOLUMES = 32_492, (29_696, 29_716), 31_870, 300
"""Of fMRIPrep's 91,282 grayordinates."""


def loading_surface() -> list[Row]:
    """Return the rows of the one table: one series of 110 MB."""
    with tempfile.TemporaryDirectory() as name:
        path, mesh = Path(name) / "x_bold.dtseries.nii", made_up_mesh()
        write_series(path, mesh)
        return compare(path, mesh)


def compare(path: Path, mesh: Mesh) -> list[Row]:
    """Return one file's rows: nibabel's array in float32, as stored, and as nibabel returns it."""
    ours = lambda: read_surface_series(RecordingRun(path), mesh)  # noqa: E731
    # nibabel maps such a file into memory: without the copy nothing would be read.
    narrow = lambda: np.array(nib.load(path).get_fdata(dtype=np.float32))  # noqa: E731
    wide = lambda: nib.load(path).get_fdata()  # noqa: E731
    if not np.array_equal(ours(), narrow()[:, : mesh.features]):
        raise AssertionError(path)
    times = alternate(ours, narrow, wide, repeats=5)
    work = f"load {path.stat().st_size / 1e6:.0f} MB of .dtseries.nii"
    return [
        Row(work, times[0], "nibabel, float32", times[1], "≤ 1.3"),
        Row(work, times[0], "nibabel, float64", times[2], "≤ 1.3"),
    ]


def made_up_mesh() -> Mesh:
    """Return hemispheres with as many vertices as those of fsLR 32k; positions do not matter."""
    left, right = (
        Hemisphere(side, np.zeros((VERTICES, 3)), np.zeros((0, 3), int), np.arange(VERTICES) < own)
        for side, own in zip(SIDES, CORTEX, strict=True)
    )
    return Mesh("fsLR-32k", left, right)


def write_series(path: Path, mesh: Mesh) -> None:
    """Write noise at all grayordinates, also below the cortex."""
    names = ("CortexLeft", "CortexRight")
    models = [
        nib.cifti2.BrainModelAxis.from_surface(np.flatnonzero(side.cortex), VERTICES, name)
        for side, name in zip(mesh.sides, names, strict=True)
    ]
    below = np.arange(91 * 109 * 91).reshape(91, 109, 91) < VOXELS
    models.append(nib.cifti2.BrainModelAxis.from_mask(below, "BrainStem", np.diag([2.0, 2, 2, 1])))
    axis = models[0] + models[1] + models[2]
    values = np.random.default_rng(0).standard_normal((VOLUMES, len(axis)), dtype=np.float32)
    nib.save(nib.Cifti2Image(values, (nib.cifti2.SeriesAxis(0, 2, VOLUMES), axis)), path)
