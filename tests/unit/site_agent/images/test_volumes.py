"""Reading stored voxels: nibabel is the reference; damage is told whatever unpacks the file."""

import gzip
import sys

import nibabel as nib
import numpy as np
import pytest

from consortium.errors import DataError
from site_agent.images.nifti import CHUNK, iterate_volumes, stored_places
from tests.support.tiny_images import AFFINE, SHAPE, tiny_grid

ENDINGS = (".nii", ".nii.gz")


@pytest.fixture(params=["zlib", "isal"])
def unpacker(request, monkeypatch):
    """Both ways to unpack; the second where it is installed."""
    if request.param == "isal":
        pytest.importorskip("isal")
    else:
        monkeypatch.setitem(sys.modules, "isal", None)


def stored(path, kind=">i2", volumes=3):
    """Integers with a slope and an offset, of either byte order."""
    values = np.random.default_rng(0).integers(-900, 900, (*SHAPE, volumes))
    header = nib.Nifti1Header(endianness=">" if kind.startswith(">") else "<")
    header.set_data_dtype(kind)
    image = nib.Nifti1Image(values.astype(kind), AFFINE, header)
    image.header.set_slope_inter(0.5, 3.0)
    nib.save(image, path)
    return nib.load(path)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", [">i2", "<i2", "<f4", "<u1"])
def test_volumes_are_those_that_nibabel_reads(tmp_path, unpacker, ending, kind):
    path = tmp_path / f"scan{ending}"
    image = stored(path, kind)
    whole, mask = image.get_fdata(dtype=np.float32), tiny_grid().mask
    volumes = list(iterate_volumes(path, image))
    kept = list(iterate_volumes(path, image, stored_places(mask)))
    assert len(volumes) == len(kept) == 3
    for number, (volume, voxels) in enumerate(zip(volumes, kept, strict=True)):
        assert volume.dtype == voxels.dtype == np.float32
        np.testing.assert_array_equal(volume, whole[..., number])
        np.testing.assert_array_equal(voxels, whole[..., number][mask])


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_that_ends_early_or_late_is_told(tmp_path, unpacker, ending):
    path = tmp_path / f"scan{ending}"
    image = stored(path)
    plain = gzip.decompress(path.read_bytes()) if ending == ".nii.gz" else path.read_bytes()
    pack = gzip.compress if ending == ".nii.gz" else bytes
    for content, sound in (
        (plain[:-1], False),
        (plain + bytes(CHUNK), True),
        (plain + bytes(CHUNK + 1), False),
    ):
        path.write_bytes(pack(content))
        if sound:
            assert len(list(iterate_volumes(path, image))) == 3
        else:
            with pytest.raises(DataError, match="cut short or damaged after volume"):
                list(iterate_volumes(path, image))


@pytest.mark.parametrize("place", [40, -6, -20])
def test_damaged_compression_is_told(tmp_path, unpacker, place):
    path = tmp_path / "scan.nii.gz"
    image = stored(path)
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DataError, match="damaged"):
        list(iterate_volumes(path, image))
    path.write_bytes(content[:-9])
    with pytest.raises(DataError, match="damaged"):
        list(iterate_volumes(path, image))


def test_a_mapped_file_is_not_read_as_a_whole(tmp_path):
    import tracemalloc

    path = tmp_path / "scan.nii"
    image = stored(path, "<f4", volumes=20_000)
    tracemalloc.start()
    for _ in iterate_volumes(path, image, np.array([5])):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size / 10
