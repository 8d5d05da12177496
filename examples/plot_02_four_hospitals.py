"""
Networks of four hospitals, and how sure each map is
====================================================

Four hospitals look for the brain networks that their patients have in common. Everything runs in
this process, on simulated scans; the noise is as large as that of a real run.
"""

import tempfile
from pathlib import Path

import nibabel as nib
import numpy as np
from matplotlib import pyplot as plt
from nilearn.datasets import load_mni152_brain_mask
from nilearn.plotting import plot_glass_brain

import consortium as cc

# %%
# Simulated scans: four networks, each of two places, whose time series are independent, and noise.
PLACES = {
    "default mode": [(0, -55, 30), (0, 50, 10)],
    "visual": [(-12, -90, 0), (12, -90, 0)],
    "sensorimotor": [(-42, -22, 55), (42, -22, 55)],
    "auditory": [(-55, -20, 8), (55, -20, 8)],
}
rng, mask = np.random.default_rng(0), load_mni152_brain_mask(resolution=18)
inside = mask.get_fdata() > 0
voxels = nib.affines.apply_affine(mask.affine, np.argwhere(inside))
networks = np.zeros((len(PLACES), len(voxels)))
for network, places in zip(networks, PLACES.values(), strict=True):
    for place in places:
        network += np.exp(-np.square((voxels - place) / 18).sum(axis=1) / 2)


def scan(volumes=50):
    """One participant's series."""
    values = np.zeros((*inside.shape, volumes), dtype=np.float32)
    series = networks.T @ rng.laplace(size=(len(networks), volumes))
    values[inside] = 100 + series + rng.normal(size=series.shape)
    return nib.Nifti1Image(values, mask.affine)


scans = {site: [scan() for _ in range(30)] for site in ("north", "east", "south", "west")}

# %%
# The study: the promise of privacy is for a whole participant, against the centre and one hospital.
study = Path(tempfile.mkdtemp()) / "study.yaml"
study.write_text("""
study: networks
sites: [north, east, south, west]
participants: {north: 30, east: 30, south: 30, west: 30}
volumes: 50
data: {resolution: 18}
privacy: {unit: subject, epsilon: 8, delta: 1.0e-5, colluding_sites: 1}
algorithm: group_ica
analysis: {components: 4}
""")
result = cc.simulate(study, scans, seed=1)

# %%
# Each map says how well it is expected to agree with what there would be without noise.
maps = result.components_img_
figure, axes = plt.subplots(2, 2, figsize=(7, 7))
for number, axis in enumerate(axes.flat):
    found, expected = result.found_[number], result.expected_[number]
    title = f"expected correlation {expected:.2f}" if found else "not found"
    axis.set_title(title)
    plot_glass_brain(maps.slicer[..., number], axes=axis, display_mode="z", threshold=2.5)
plt.show()
