"""
A year of releases, and what they cost together
===============================================

A hospital releases the same participants' components every month. Losses of Gaussian noise add up
as squares of μ: twelve releases cost far less than twelve times ε, and the sum is exact, not a
bound. The same sum is what a hospital's ledger keeps, and holds against the hospital's own limit.
"""

import nibabel as nib
import numpy as np
from matplotlib import pyplot as plt

import consortium as cc

# %%
# One release of simulated scans: 60 participants on a tiny grid, whose series are noise. There is
# nothing to be found, and the result says so; it costs ε nevertheless.
rng, affine = np.random.default_rng(0), np.diag([20.0, 20.0, 20.0, 1.0])
mask = nib.Nifti1Image(np.ones((3, 3, 2), dtype=np.float32), affine)
imgs = [nib.Nifti1Image(rng.normal(size=(3, 3, 2, 20)), affine) for _ in range(60)]
model = cc.PrivatePCA(1, epsilon=1.0, delta=1e-5, mask=mask).fit(imgs)
print("found:", model.found_)
print(model.privacy_)

# %%
# The same once a month, under a limit of ε = 4 for the year.
LIMIT, month = 4.0, model.privacy_
months = np.arange(1, 13)
together = [month.plus(*[month] * (count - 1)).epsilon for count in months]
allowed = sum(epsilon <= LIMIT for epsilon in together)
print(f"The year costs ε = {together[-1]:.3g}; under {LIMIT:g}, {allowed} releases are allowed.")

# %%
# The picture.
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.plot(months, months * month.epsilon, "o--", color="0.6", label="ε simply added")
axis.plot(months, together, "o-", label="ε of all together, exact")
axis.axhline(LIMIT, color="C3", label="the hospital's limit")
axis.set(xlabel="releases", ylabel="ε at δ = 1e-5", xticks=months)
axis.legend()
plt.show()
