"""
One study's networks as the next one's templates
================================================

Healthy participants' networks are released once, by group ICA. The next study, of patients, takes
the released maps as its templates: it asks only how the patients differ from them, which needs less
ε than finding networks anew. Here the patients' second network reaches further to the back.
"""

import tempfile
from pathlib import Path

import nibabel as nib
import numpy as np
from matplotlib import pyplot as plt
from nilearn.datasets import load_mni152_brain_mask
from nilearn.image import resample_to_img
from nilearn.plotting import plot_glass_brain

import consortium as cc

# %%
# Simulated scans of two networks.
rng, brain = np.random.default_rng(0), load_mni152_brain_mask(resolution=18)
inside = brain.get_fdata() > 0
voxels = nib.affines.apply_affine(brain.affine, np.argwhere(inside))
visual, frontal, parietal = (
    np.exp(-np.square((voxels - place) / 20).sum(axis=1) / 2)
    for place in ([0, -85, 5], [0, 45, 20], [0, -60, 45])
)


def scans(networks, persons=45, volumes=50):
    """Series of a hospital's participants."""
    for _ in range(persons):
        values = np.zeros((*inside.shape, volumes), dtype=np.float32)
        values[inside] = networks.T @ rng.laplace(size=(2, volumes))
        values[inside] += rng.normal(size=(len(voxels), volumes))
        yield nib.Nifti1Image(values, brain.affine)


SITES, further = ("north", "east", "south"), frontal + 0.7 * parietal
healthy = {site: [*scans(np.array([visual, frontal]))] for site in SITES}
patients = {site: [*scans(np.array([visual, further]))] for site in SITES}

# %%
# First study, then second: the released image lies beside its file, and is signed with it.
STUDY = """
study: networks
sites: [north, east, south]
participants: {{north: 45, east: 45, south: 45}}
volumes: 50
data: {{resolution: 18}}
privacy: {{unit: subject, epsilon: {epsilon}, delta: 1.0e-5, colluding_sites: 1}}
algorithm: {algorithm}
analysis: {analysis}
"""
folder = Path(tempfile.mkdtemp())
group_ica = STUDY.format(epsilon=8, algorithm="group_ica", analysis="{components: 2}")
(folder / "first.yaml").write_text(group_ica)
first = cc.simulate(folder / "first.yaml", healthy, seed=1)
nib.save(first.components_img_, folder / "networks.nii.gz")

analysis = "{templates: networks.nii.gz}"
by_templates = STUDY.format(epsilon=4, algorithm="template_networks", analysis=analysis)
(folder / "second.yaml").write_text(by_templates)
second = cc.simulate(folder / "second.yaml", patients, seed=2)

# %%
# The network that is frontal, once as its template and once as the patients have it, beside what
# the patients' scans were made of.
released = (first.components_img_, second.components_img_)
on_grid = [resample_to_img(maps, brain).get_fdata()[inside] for maps in released]
which = int(np.argmax([abs(np.corrcoef(one, frontal)[0, 1]) for one in on_grid[0].T]))
for name, maps in zip(("template", "patients"), on_grid, strict=True):
    likeness = abs(np.corrcoef(maps[:, which], further)[0, 1])
    print(f"{name}: correlation {likeness:.2f} with what the patients' scans were made of")
print(f"expected: {second.expected_[which]:.2f}, found: {second.found_[which]}")
truth = np.zeros(inside.shape)
truth[inside] = further / further.std()
figure, axes = plt.subplots(1, 3, figsize=(10, 3.5))
pictures = {
    "template, of healthy participants": released[0].slicer[..., which],
    "patients, by the template": released[1].slicer[..., which],
    "what the patients were made of": nib.Nifti1Image(truth, brain.affine),
}
for axis, (title, picture) in zip(axes, pictures.items(), strict=True):
    axis.set_title(title)
    plot_glass_brain(picture, axes=axis, display_mode="x", threshold=1, colorbar=False)
plt.show()
