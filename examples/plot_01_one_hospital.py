"""
A map with its expected accuracy, in ten lines
==============================================

One hospital publishes a map of its own patients. No other hospital is needed, and no server: the
estimators follow scikit-learn, and say before and after what a fit sees and what it costs.
"""

import nibabel as nib
import numpy as np
from matplotlib import pyplot as plt
from nilearn.datasets import load_mni152_brain_mask

import consortium as cc

# %%
# Simulated scans of 120 participants, in memory; paths of NIfTI files, or of a BIDS data set, do as
# well.
rng, brain = np.random.default_rng(0), load_mni152_brain_mask(resolution=18)
inside = brain.get_fdata() > 0
places = nib.affines.apply_affine(brain.affine, np.argwhere(inside))
visual = np.exp(-np.square((places - (0, -85, 5)) / 22).sum(axis=1) / 2)
parietal = np.exp(-np.square((places - (48, -45, 40)) / 22).sum(axis=1) / 2)
imgs = []
for _ in range(120):
    values = np.zeros((*inside.shape, 50), dtype=np.float32)
    values[inside] = rng.normal(size=(len(places), 50))
    for network in (visual, parietal):
        values[inside] += np.outer(network, rng.laplace(size=50))
    imgs.append(nib.Nifti1Image(values, brain.affine))

# %%
# From here on it is ten lines. What to expect costs nothing; the fit costs ε.
model = cc.PrivateGroupICA(2, epsilon=8.0, delta=1e-5, resolution=18.0)
for sentence in model.forecast(participants=120, volumes=50)["forecast"]:
    print(sentence)
model.fit(imgs)
for number, expected in enumerate(model.expected_, start=1):
    found = "found" if model.found_[number - 1] else "not found"
    print(f"map {number} is {found}; expected correlation {expected:.2f}")
print(model.privacy_)
model.plot()
plt.show()
