"""A series from disk to masked float32, beside nilearn and beside unpacking alone."""

import gzip
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np

from benchmarks.peers import installed
from benchmarks.table import Row, alternate
from consortium.space.grid import Grid
from site_agent.images.preprocess import read_series

SHAPE, VOLUMES = (64, 64, 36), 500
AFFINE = np.diag([3.0, 3, 3, 1])
_PART = 1 << 20
_UNPACKER = f"gunzip alone by {'ISA-L' if installed('isal') else 'zlib'}"


def loading() -> list[Row]:
    """Rows of the one table: one series of 295 MB, gzipped and plain."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        grid = made_up(folder)
        return [
            row
            for ending in (".nii.gz", ".nii")
            for row in compare(folder / f"scan{ending}", folder / "mask.nii.gz", grid)
        ]


def compare(path: Path, mask: Path, grid: Grid) -> list[Row]:
    """Rows of one file."""
    from nilearn.maskers import NiftiMasker

    peer = NiftiMasker(mask_img=mask, dtype="float32", standardize=None)
    ours: Callable[[], np.ndarray] = lambda: read_series(path, 0.0, grid)  # noqa: E731
    if not np.allclose(ours(), peer.fit_transform(path), rtol=1e-6):
        raise AssertionError(path)
    acts = [ours, lambda: peer.fit_transform(path)]
    if path.suffix == ".gz":
        acts.append(lambda: drain(_unpacker(), path))
    # The time that goes by: a thread that unpacks ahead is there to save it.
    mine, masker, *bare = alternate(*acts, repeats=4, clock=time.perf_counter)
    work = f"load {np.prod(SHAPE) * VOLUMES * 4 / 1e6:.0f} MB of {''.join(path.suffixes)}"
    rows = [Row(work, mine, "nilearn NiftiMasker", masker, "≥ 2", "ms gone by", inverse=True)]
    return rows + [Row(work, mine, _UNPACKER, each, "≤ 1.2", "ms gone by") for each in bare]


def _unpacker() -> Callable[..., Any]:
    try:
        from isal import igzip
    except ImportError:
        return gzip.open
    return igzip.open


def drain(opener: Callable[..., Any], path: Path) -> None:
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
