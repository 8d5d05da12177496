"""
Patients against controls: p-values that know of the noise
==========================================================

One hospital releases where its patients' images differ from its controls'. The p-values count the
noise of privacy and chance. Who takes the released effects for ordinary ones, and forgets the
noise, finds differences that are not there.
"""

import nibabel as nib
import numpy as np
from matplotlib import pyplot as plt
from scipy.stats import norm

import consortium as cc

# %%
# Simulated contrast images of 400 controls and 400 patients on a grid of 144 voxels. In the first
# 12 patients are higher by 0.9 standard deviations, in all others there is no difference.
rng, affine = np.random.default_rng(0), np.diag([12.0, 12.0, 12.0, 1.0])
mask = nib.Nifti1Image(np.ones((12, 12, 1), dtype=np.float32), affine)
effect = np.zeros((12, 12, 1))
effect[0] = 0.9
diagnosis = ["control", "patient"] * 400
imgs = []
for who in diagnosis:
    shared, own = rng.normal(0, 0.5), rng.normal(0, 0.75**0.5, effect.shape)
    imgs.append(nib.Nifti1Image(shared + own + effect * (who == "patient"), affine))

# %%
# The fit.
model = cc.PrivateGLM(
    "diagnosis",
    "diagnosis",
    {"diagnosis": ["control", "patient"]},
    groups=(400, 400),
    deviation=1.0,
    epsilon=2.0,
    delta=1e-6,
    detect=1.0,
    mask=mask,
)
model.fit({"diagnosis": diagnosis}, imgs)
print(model.privacy_)

# %%
# Under no difference, p-values lie on the diagonal. The forgetful divide by the error that there
# would be without noise, √(1/400 + 1/400).
released, honest = (model.contrast(stat).get_fdata().ravel() for stat in ("effect", "p"))
forgetful = 2 * norm.sf(np.abs(released) / (1 / 400 + 1 / 400) ** 0.5)
q, nothing = model.contrast("q").get_fdata().ravel(), effect.ravel() == 0
print(f"found: {(q[~nothing] < 0.05).sum()} of 12 true, {(q[nothing] < 0.05).sum()} of 132 wrong")
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
picture = left.imshow(released.reshape(12, 12).T, cmap="RdBu_r", vmin=-1.2, vmax=1.2)
left.set(title="released effect, SD", xticks=[], yticks=[])
figure.colorbar(picture, ax=left, shrink=0.8)
uniform = (np.arange(nothing.sum()) + 0.5) / nothing.sum()
right.plot(uniform, np.sort(honest[nothing]), label="as released")
right.plot(uniform, np.sort(forgetful[nothing]), label="the noise forgotten")
right.plot([0, 1], [0, 1], "k:", label="as it should be")
right.set(title="voxels without a difference", xlabel="expected p", ylabel="p")
right.legend()
plt.show()
