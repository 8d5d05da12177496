"""A series from disk to masked float32, beside nilearn and beside unpacking alone."""

import gzip
import math
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
    """Rows of the one table: one series as float32 and as int16, gzipped and plain."""
    rows = []
    for kind in (np.float32, np.int16):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            grid = made_up(folder, kind)
            for ending in (".nii.gz", ".nii"):
                rows += compare(folder / f"scan{ending}", folder / "mask.nii.gz", grid)
    return rows


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
    mine, masker, *bare = alternate(*acts, repeats=3)
    image, held = nib.load(path), path.stat().st_size
    size = math.prod(image.shape) * image.get_data_dtype().itemsize
    work = f"load {size / 1e6:.0f} MB of {image.get_data_dtype()} in {''.join(path.suffixes)}"
    work += f", compressed {size / held:.1f}:1" if path.suffix == ".gz" else ""
    rows = [Row(work, mine, "nilearn NiftiMasker", masker, "≥ 2", "ms gone by", inverse=True)]
    return rows + [Row(work, mine, _UNPACKER, each, "≤ 1.2", "ms gone by") for each in bare]
