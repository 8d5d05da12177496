"""A series from disk to masked float32, beside nilearn and beside unpacking alone."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable
from pathlib import Path

import nibabel as nib
import numpy as np

from benchmarks.timing import best, processor, show
from consortium.report.grid import Grid
from site_agent.preprocess import read_series

SHAPE, VOLUMES = (64, 64, 36), 500
AFFINE = np.diag([3.0, 3, 3, 1])
_PART = 1 << 20


def loading() -> None:
    """One series of 295 MB, gzipped and plain."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        grid = made_up(folder)
        rows = [
            row
            for ending in (".nii.gz", ".nii")
            for row in compare(folder / f"scan{ending}", folder / "mask.nii.gz", grid)
        ]
    title = f"{SHAPE} x {VOLUMES} float32 to masked float32, {grid.features} voxels"
    show(title, ["file", "by", "s", "processor s", "s / ours", "processor / ours"], rows)


def compare(path: Path, mask: Path, grid: Grid) -> list[list[str]]:
    """Rows of one file."""
    from nilearn.maskers import NiftiMasker

    peer = NiftiMasker(mask_img=mask, dtype="float32", standardize=None)
    ways: dict[str, Callable[[], object]] = {
        "ours": lambda: read_series(path, 0.0, grid),
        "nilearn NiftiMasker": lambda: peer.fit_transform(path),
    }
    if path.suffix == ".gz":
        ways |= unpackers(path)
    same = np.allclose(ways["ours"](), ways["nilearn NiftiMasker"](), rtol=1e-6)
    seconds = {name: (best(way, 3), processor(way)) for name, way in ways.items()}
    first = [f"ours ({'the same' if same else 'OTHER'} numbers)", *list(seconds)[1:]]
    ours = seconds["ours"]
    return [
        [
            "".join(path.suffixes),
            name,
            *(f"{each:.2f}" for each in times),
            *(f"{each / own:.2f}" for each, own in zip(times, ours, strict=True)),
        ]
        for name, times in zip(first, seconds.values(), strict=True)
    ]


def unpackers(path: Path) -> dict[str, Callable[[], object]]:
    """Unpacking to nowhere, by zlib and, where it is installed, by ISA-L."""
    found = {"gunzip alone, zlib": lambda: drain(gzip.open, path)}
    try:
        from isal import igzip
    except ImportError:
        return found
    return found | {"gunzip alone, ISA-L": lambda: drain(igzip.open, path)}


def drain(opener: Callable[..., object], path: Path) -> None:
    with opener(path, "rb") as file:
        while file.read(_PART):
            pass


def made_up(folder: Path) -> Grid:
    """Write a smooth brain of noise that compresses about as a scan does."""
    generator = np.random.default_rng(0)
    places = np.indices(SHAPE) - (np.array(SHAPE) / 2 - 0.5)[:, None, None, None]
    mask = ((places / (np.array(SHAPE)[:, None, None, None] * 0.42)) ** 2).sum(axis=0) < 1
    series = np.zeros((*SHAPE, VOLUMES), dtype=np.float32, order="F")
    for volume in range(VOLUMES):
        noise = np.rint(generator.normal(1000, 12, int(mask.sum())))
        series[mask, volume] = noise
    nib.save(nib.Nifti1Image(series, AFFINE), folder / "scan.nii")
    nib.save(nib.Nifti1Image(series, AFFINE), folder / "scan.nii.gz")
    nib.save(nib.Nifti1Image(mask.astype(np.uint8), AFFINE), folder / "mask.nii.gz")
    return Grid(mask, AFFINE)
