"""
What EEG and fMRI have in common, over four hospitals
=====================================================

Canonical correlation analysis of two tables: every participant's responses in 12 brain regions, and
the amplitudes of 8 potentials. One link is there, of correlation 0.8; a second pair is asked for,
too, and the result says honestly that it is not found.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

import consortium as cc

# %%
# Simulated participants. The link: three regions go along with two potentials.
SITES = {"north": 300, "east": 250, "south": 250, "west": 200}
REGIONS, POTENTIALS = [f"region{n}" for n in range(1, 13)], [f"erp{n}" for n in range(1, 9)]
folder, rng = Path(tempfile.mkdtemp()), np.random.default_rng(0)
for site, persons in SITES.items():
    common = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], persons)
    image, eeg = rng.normal(0, 0.3, (persons, 12)), rng.normal(0, 0.3, (persons, 8))
    image[:, [1, 4, 5]] += common[:, :1]
    eeg[:, [2, 3]] += common[:, 1:]
    table = pd.DataFrame(np.hstack([image, eeg]), columns=REGIONS + POTENTIALS)
    table.insert(0, "participant_id", [f"sub-{n:03d}" for n in range(persons)])
    (folder / site).mkdir()
    table.to_csv(folder / site / "participants.tsv", sep="\t", index=False)

# %%
# The study. Limits of columns are public; values beyond them are moved to them.
(folder / "study.yaml").write_text(f"""
study: fusion
sites: {[*SITES]}
participants: {SITES}
features:
  - {{name: image, source: table, columns: {{"region[1-12]": {{low: -4, high: 4}}}}}}
  - {{name: eeg, source: table, columns: {{"erp[1-8]": {{low: -4, high: 4}}}}}}
privacy: {{unit: subject, epsilon: 8, delta: 1.0e-5, colluding_sites: 1}}
algorithm: cca
analysis: {{pairs: 2, bounds: {{image: 0.9, eeg: 0.8}}}}
""")
result = cc.simulate(folder / "study.yaml", {site: folder / site for site in SITES}, seed=1)
pairs = pd.DataFrame(result.tables["pairs"])
for _, pair in pairs.iterrows():
    if pair["found"] == "yes":
        limits = f"{pair['correlation low']:.2f} to {pair['correlation high']:.2f}"
        print(f"pair {pair['pair']:.0f}: correlation {pair['correlation']:.2f} ({limits})")
    else:
        print(f"pair {pair['pair']:.0f}: not found; the noise alone could do it")

# %%
# What goes together, of the pair that was found.
figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained", sharey=True)
for axis, view in zip(axes, ("image", "eeg"), strict=True):
    (name,) = [name for name in result.tables if view in name]
    table = result.tables[name]
    axis.bar(table["entry"], table["pair-1"])
    axis.axhline(0, color="k", linewidth=0.8)
    axis.tick_params(axis="x", rotation=90)
    axis.set_title(view)
axes[0].set_ylabel("loading of the first pair")
plt.show()
