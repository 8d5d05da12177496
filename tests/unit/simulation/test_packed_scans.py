"""Images of made-up runs: the same values whatever packs them."""

import gzip
import sys
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from consortium.simulation.dataset import save_packed, stored_image


@pytest.mark.parametrize("fast", [True, False])
def test_what_is_written_is_read_by_everybody(
    fast: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fast:
        pytest.importorskip("isal")
    else:
        monkeypatch.setitem(sys.modules, "isal.igzip", None)
    generator = np.random.default_rng(0)
    values = generator.standard_normal((20, 6)).astype(np.float32) * 100
    mask = np.zeros((4, 5, 3), dtype=bool)
    mask.flat[:20] = True
    image = stored_image(values, mask, np.diag([3.0, 3.0, 3.0, 1.0]), 2.0)
    paths = [tmp_path / f"{n}.nii.gz" for n in range(2)]
    for path in paths:
        save_packed(image, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()  # no clock and no name
    assert len(gzip.decompress(paths[0].read_bytes())) == 352 + 60 * 6 * 2
    read = nib.load(paths[0])
    np.testing.assert_array_equal(read.get_fdata()[mask], np.rint(values / 0.5) * 0.5)
    assert read.header.get_zooms() == (3.0, 3.0, 3.0, 2.0)
