"""Time to load a series from disk to masked float32; peers are nilearn and plain unpacking."""

import gzip
import math
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np

from benchmarks.peers import installed
from benchmarks.table import Row
from consortium.space.grid import Grid, template_grid
from consortium.space.sampling import lies_in
from site_agent.images.preprocess import read_series

SHAPE, VOLUMES = (64, 64, 36), 500
AFFINE = np.diag([3.0, 3, 3, 1])
_FINE_VOLUMES = 60
_FMRIPREP = (97, 115, 97)
_PART = 1 << 20
_UNPACKER = f"only gunzip by {'ISA-L' if installed('isal') else 'zlib'}"


def loading() -> list[Row]:
    """Return the rows of the one table: one series as float32 and as int16, gzipped and plain."""
    rows = []
    for kind in (np.float32, np.int16):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            grid = made_up(folder, kind)
            for ending in (".nii.gz", ".nii"):
                rows += compare(folder / f"scan{ending}", folder / "mask.nii.gz", grid)
    return rows


def resampling() -> list[Row]:
    """Return rows of scans of 2 mm as fMRIPrep leaves them, in studies of 4 mm and of 2 mm."""
    return [_resampled(np.int16, 4.0), _resampled(np.float32, 2.0)]


def _resampled(kind: type[np.generic], edge: float) -> Row:
    grid = template_grid(edge)
    affine = np.diag([2.0, 2, 2, 1])
    affine[:3, 3] = (-96, -132, -78)
    generator = np.random.default_rng(0)
    series = generator.normal(100, 30, (*_FMRIPREP, _FINE_VOLUMES)).astype(kind)
    inside = lies_in(template_grid(2.0), affine, _FMRIPREP)
    series[inside] = generator.normal(1000, 100, (int(inside.sum()), _FINE_VOLUMES))
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "scan.nii.gz"
        nib.save(nib.Nifti1Image(series, affine), path)
        acts = [lambda: read_series(path, None, grid), lambda: drain(_unpacker(), path)]
        ((ours, bare), _) = turns(acts)
    work = f"a gzipped scan of 2 mm, {_FINE_VOLUMES} volumes of {np.dtype(kind)}, to {edge:g} mm"
    return Row(work, ours, _UNPACKER, bare, "≤ 2")


def compare(path: Path, mask: Path, grid: Grid) -> list[Row]:
    """Return the rows of one file."""
    from nilearn.maskers import NiftiMasker

    peer = NiftiMasker(mask_img=mask, dtype="float32", standardize=None)
    ours: Callable[[], np.ndarray] = lambda: read_series(path, 0.0, grid)  # noqa: E731
    if not np.allclose(ours(), peer.fit_transform(path), rtol=1e-6):
        raise AssertionError(path)
    acts = [ours, lambda: peer.fit_transform(path)]
    if path.suffix == ".gz":
        acts.append(lambda: drain(_unpacker(), path))
    image, held = nib.load(path), path.stat().st_size
    size = math.prod(image.shape) * image.get_data_dtype().itemsize
    work = f"load {size / 1e6:.0f} MB of {image.get_data_dtype()} in {''.join(path.suffixes)}"
    work += f", compressed {size / held:.1f}:1" if path.suffix == ".gz" else ""
    rows = []
    # Wall time also counts: a thread unpacks in advance to save it.
    for unit, (mine, masker, *bare) in zip(("ms", "ms gone by"), turns(acts), strict=True):
        rows.append(Row(work, mine, "nilearn NiftiMasker", masker, "≥ 2", unit, inverse=True))
        rows += [Row(work, mine, _UNPACKER, each, "≤ 1.2", unit) for each in bare]
    return rows


def turns(acts: Sequence[Callable[[], object]], repeats: int = 3) -> list[list[float]]:
    """Return each act's least processor time and wall time in milliseconds, acts taking turns."""
    found = np.full((2, len(acts)), np.inf)
    for _ in range(repeats):
        for place, act in enumerate(acts):
            begun = time.process_time(), time.perf_counter()
            act()
            taken = np.subtract((time.process_time(), time.perf_counter()), begun)
            found[:, place] = np.minimum(found[:, place], 1e3 * taken)
    return [[float(each) for each in row] for row in found]


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


def made_up(folder: Path, kind: type[np.generic]) -> Grid:
    """Write a brain of noise and a noisy room around it, which compress about as scans do."""
    generator = np.random.default_rng(0)
    places = np.indices(SHAPE) - (np.array(SHAPE) / 2 - 0.5)[:, None, None, None]
    mask = ((places / (np.array(SHAPE)[:, None, None, None] * 0.42)) ** 2).sum(axis=0) < 1
    series = np.zeros((*SHAPE, VOLUMES), dtype=kind, order="F")
    for volume in range(VOLUMES):
        inside = generator.normal(1000, 100, int(mask.sum()))
        series[..., volume] = np.rint(generator.normal(100, 30, SHAPE))
        series[mask, volume] = np.rint(inside) if kind is np.int16 else inside
    for ending in (".nii", ".nii.gz"):
        nib.save(nib.Nifti1Image(series, AFFINE), folder / f"scan{ending}")
    nib.save(nib.Nifti1Image(mask.astype(np.uint8), AFFINE), folder / "mask.nii.gz")
    return Grid(mask, AFFINE)
