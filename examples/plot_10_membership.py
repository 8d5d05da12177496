"""
Is somebody in the study? The same attack on exact sums and on ours
===================================================================

An attacker has somebody's image, and asks whether that person is among a study's patients. The
exact difference of two group means gives most patients away. Of what ``PrivateGLM`` releases of the
same participants, the promise limits what *any* attack can find; this one stays at the limit or
below, but for the chance of 75 participants.
"""

import nibabel as nib
import numpy as np
from matplotlib import pyplot as plt
from scipy.stats import norm

import consortium as cc

# %%
# Simulated images of 400 voxels: 75 controls, 75 patients, and 750 patients who are not in the
# study.
rng, affine = np.random.default_rng(0), np.diag([12.0, 12.0, 12.0, 1.0])
everybody = rng.normal(0, 0.9, (900, 400)) + rng.normal(0, 0.4, (900, 1))
controls, patients, others = np.split(everybody, [75, 150])

# %%
# The release. So few participants can't answer for 400 voxels: without ``anyway`` it would be
# refused.
model = cc.PrivateGLM(
    "diagnosis",
    "diagnosis",
    {"diagnosis": ["control", "patient"]},
    groups=(75, 75),
    deviation=1.0,
    epsilon=1.0,
    delta=1e-5,
    mask=nib.Nifti1Image(np.ones((20, 20, 1), dtype=np.float32), affine),
    analysis={"anyway": True},
)
imgs = [nib.Nifti1Image(values.reshape(20, 20, 1), affine) for values in everybody[:150]]
model.fit({"diagnosis": ["control"] * 75 + ["patient"] * 75}, imgs)
released = model.contrast("effect").get_fdata().ravel()
exact = patients.mean(axis=0) - controls.mean(axis=0)

# %%
# The attack: how far an image lies in the direction of what was published.
alarms = np.linspace(0, 1, 101)
figure, axis = plt.subplots(figsize=(5.5, 4.5), layout="constrained")
for name, told in {"exact sums": exact, "released at ε = 1": released}.items():
    inside, outside = ((who - who.mean(axis=1, keepdims=True)) @ told for who in (patients, others))
    limits = np.quantile(outside, 1 - alarms)
    found = (inside[:, None] > limits).mean(axis=0)
    axis.plot(alarms, found, label=name)
    print(f"{name}: {np.interp(0.05, alarms, found):.0%} of the patients found at 5 % false alarms")
most = norm.cdf(norm.ppf(alarms) + model.privacy_.mu)
axis.plot(alarms, most, "k--", label="at most, by the promise at ε = 1")
axis.plot([0, 1], [0, 1], "k:", label="guessing")
axis.set(xlabel="others taken for patients of the study", ylabel="patients of the study found")
axis.legend()
plt.show()
