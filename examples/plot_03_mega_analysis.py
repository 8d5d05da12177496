"""
Where the cortex of patients is thinner: a mega-analysis of four hospitals
==========================================================================

Every hospital has FreeSurfer's thickness of 34 regions of each of its participants, as
``aparcstats2table`` writes it. The study asks where patients differ from controls, adjusted for age
and hospital. Each effect comes with an interval that counts the noise of privacy as well as chance.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

import consortium as cc

# %%
# Simulated tables. In three regions the cortex of patients is thinner by 0.12 mm; scanners differ.
HOSPITALS = {"north": (140, 120), "east": (90, 110), "south": (160, 130), "west": (120, 130)}
REGIONS = [f"region{number}" for number in range(1, 35)]
THINNER = {"region4", "region17", "region28"}
folder, rng = Path(tempfile.mkdtemp()), np.random.default_rng(0)

for hospital, groups in HOSPITALS.items():
    patient = np.repeat([0, 1], groups)
    age = rng.normal(45, 13, len(patient)).clip(18, 90)
    shared = rng.normal(0, 0.1, (len(patient), 1)) + rng.normal(0, 0.05, len(REGIONS))
    thickness = 2.5 + shared + rng.normal(0, 0.17, (len(patient), len(REGIONS)))
    thickness -= 0.004 * (age[:, None] - 45)
    thickness -= 0.12 * np.outer(patient, [region in THINNER for region in REGIONS])
    persons = pd.DataFrame({"participant_id": [f"sub-{n:03d}" for n in range(len(patient))]})
    persons["diagnosis"] = np.where(patient, "patient", "control")
    (folder / hospital).mkdir()
    persons.assign(age=age).to_csv(folder / hospital / "participants.tsv", sep="\t", index=False)
    table = pd.concat([persons["participant_id"], pd.DataFrame(thickness, columns=REGIONS)], axis=1)
    table.to_csv(folder / hospital / "thickness.tsv", sep="\t", index=False)

# %%
# The study: limits and norms are of the literature, never of these data.
STUDY = f"""
study: thickness
sites: {[*HOSPITALS]}
participants: { ({name: sum(groups) for name, groups in HOSPITALS.items()}) }
features:
  - name: cortex
    source: table
    file: thickness.tsv
    columns:
      region[1-34]: {{low: 1.0, high: 4.5}}
  - name: participant
    source: table
    columns:
      diagnosis: {{levels: [control, patient]}}
      age: {{low: 18, high: 90}}
privacy: {{unit: subject, epsilon: 4, delta: 1.0e-5, colluding_sites: 1}}
algorithm: glm
analysis:
  outcomes: cortex
  formula: diagnosis + age
  contrasts: {{patients: diagnosis}}
  groups: { ({name: [*groups] for name, groups in HOSPITALS.items()}) }
  norms: {{location: 2.5, deviation: 0.22, correlation: 0.3}}
  covariates: {{age: {{mean: 45, deviation: 13}}}}
"""
(folder / "study.yaml").write_text(STUDY)
result = cc.simulate(folder / "study.yaml", {name: folder / name for name in HOSPITALS}, seed=2)

# %%
# Effects in stated standard deviations (0.22 mm), with 95 % intervals.
table = pd.DataFrame(result.tables["contrastpatients"])
found = table["found"] == "yes"
print("found:", ", ".join(table["entry"][found]) or "nothing")
missed = sorted(THINNER - {*table["entry"][found]})
print("not found, though there:", ", ".join(missed) or "none")
figure, axis = plt.subplots(figsize=(9, 4), layout="constrained")
for which, colour, name in ((found, "C3", "found"), (~found, "0.6", "not found")):
    some = table[which]
    ends = [some["effect"] - some["low"], some["high"] - some["effect"]]
    axis.errorbar(some.index, some["effect"], ends, fmt="o", color=colour, label=name)
axis.set_xticks(table.index, table["entry"], rotation=90)
axis.axhline(0, color="k", linewidth=0.8)
axis.set(ylabel="patients against controls, SD")
axis.legend()
plt.show()
