"""Real scans of public packages, dealt to sites; nibabel's is always there."""

import json

import nibabel as nib
import numpy as np
import pytest

from consortium.errors import DataError
from consortium.simulation.dataset import known_series, split_over_sites


def test_pieces_put_together_are_the_scan(tmp_path):
    (path,) = known_series()["nibabel"]
    whole = nib.load(path)
    made = split_over_sites(tmp_path, [path], sites=["a", "b"], pieces=3)
    assert list(made.sites) == ["a", "b"]
    found = {
        site: sorted(bids.rglob("*_desc-preproc_bold.nii.gz")) for site, bids in made.sites.items()
    }
    assert [len(files) for files in found.values()] == [2, 1]
    order = [found["a"][0], found["b"][0], found["a"][1]]
    pieces = [nib.load(file).get_fdata() for file in order]
    np.testing.assert_allclose(np.concatenate(pieces, axis=3), whole.get_fdata(), rtol=1e-6)
    sidecar = json.loads(next(made.sites["b"].rglob("*_bold.json")).read_text())
    assert sidecar["RepetitionTime"] == whole.header.get_zooms()[3] == 2.0
    mask = nib.load(made.mask)
    assert mask.shape == whole.shape[:3]
    assert 0.2 < mask.get_fdata().mean() <= 1.0


def test_unfit_requests_are_refused(tmp_path):
    (path,) = known_series()["nibabel"]
    with pytest.raises(DataError, match="fewer"):
        split_over_sites(tmp_path, [path], sites=["a"], pieces=11)
    with pytest.raises(DataError, match="more pieces"):
        split_over_sites(tmp_path, [path], sites=["a", "b", "c"], pieces=2)
    flat = tmp_path / "flat.nii"
    nib.save(nib.Nifti1Image(np.ones((2, 2, 2), np.uint8), np.eye(4)), flat)
    with pytest.raises(DataError, match=r"flat\.nii has 3 axes"):
        split_over_sites(tmp_path, [flat], sites=["a"], pieces=1)
    other = tmp_path / "other.nii"
    nib.save(nib.Nifti1Image(np.ones((2, 2, 2, 9), np.uint8), np.eye(4)), other)
    with pytest.raises(DataError, match=r"other\.nii is on another grid"):
        split_over_sites(tmp_path, [path, other], sites=["a"], pieces=1)
    (tmp_path / "text.nii").write_text("x")
    with pytest.raises(DataError, match=r"text\.nii can't be read"):
        split_over_sites(tmp_path, [tmp_path / "text.nii"], sites=["a"], pieces=1)
