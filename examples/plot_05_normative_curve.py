"""
A normative curve of age, with its interval, and no harmonized data
===================================================================

How does the volume of the hippocampus change with age, over four hospitals with scanners of their
own? Every hospital has a constant of its own in the regression, so that scanners need not agree and
nobody has to harmonize. What is released is the slope, and its interval counts noise and chance.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

import consortium as cc

# %%
# Simulated participants: the volume falls by 18 mm³ a year, and scanners differ by hundreds.
SITES = {"north": 260, "east": 200, "south": 290, "west": 250}
folder, rng, ages, volumes = Path(tempfile.mkdtemp()), np.random.default_rng(0), [], []
for site, persons in SITES.items():
    age = rng.uniform(20, 80, persons)
    volume = 4000 + rng.normal(0, 300) - 18 * (age - 50) + rng.normal(0, 350, persons)
    table = pd.DataFrame({"age": age, "hippocampus": volume})
    table.insert(0, "participant_id", [f"sub-{n:03d}" for n in range(persons)])
    (folder / site).mkdir()
    table.to_csv(folder / site / "participants.tsv", sep="\t", index=False)
    ages.append(age)
    volumes.append(volume)

# %%
# The study. Norms are of the literature: slopes are reported in them, per deviation of age.
(folder / "study.yaml").write_text(f"""
study: ageing
sites: {[*SITES]}
participants: {SITES}
features:
  - {{name: volume, source: table, columns: {{hippocampus: {{low: 1000, high: 7000}}}}}}
  - {{name: participant, source: table, columns: {{age: {{low: 18, high: 90}}}}}}
privacy: {{unit: subject, epsilon: 2, delta: 1.0e-5, colluding_sites: 1}}
algorithm: glm
analysis:
  outcomes: volume
  formula: age
  contrasts: {{ageing: age}}
  norms: {{location: 4000, deviation: 560}}
  covariates: {{age: {{mean: 50, deviation: 17}}}}
""")
result = cc.simulate(folder / "study.yaml", {site: folder / site for site in SITES}, seed=2)
row = pd.DataFrame(result.tables["contrastageing"]).iloc[0]
slope, low, high = row[["effect", "low", "high"]].astype(float) * 560 / 17
print(
    f"{slope:.1f} mm³ a year (95 %: {low:.1f} to {high:.1f}); in truth -18; found: {row['found']}"
)

# %%
# The curve, beside the participants whom only their own hospitals see.
years = np.linspace(20, 80)
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for site, age, volume in zip(SITES, ages, volumes, strict=True):
    axis.plot(age, volume - 4000, ".", alpha=0.4, markeredgewidth=0, label=site)
axis.plot(years, slope * (years - 50), "k", label="released")
axis.fill_between(years, low * (years - 50), high * (years - 50), color="k", alpha=0.3)
axis.set(xlabel="age", ylabel="volume against that at 50, mm³")
axis.set_ylim(-1800, 2300)
axis.legend(ncols=5, fontsize="small", loc="upper center")
plt.show()
