"""
How well a model predicts, with AUC and calibration
===================================================

How good is a diagnosis that is predicted from volumes? ``regression`` with ``held_out`` trains on
part of the participants, and measures AUC and calibration on the others. A keyed hash at each
hospital selects them.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

import consortium as cc

# %%
# Simulated participants of four hospitals. Patients have less hippocampus and thinner cortex.
SITES = {"north": 1000, "east": 800, "south": 1100, "west": 1100}
folder, rng = Path(tempfile.mkdtemp()), np.random.default_rng(0)
for site, many in SITES.items():
    patient = rng.random(many) < 0.4
    table = pd.DataFrame(
        {
            "participant_id": [f"sub-{n:04d}" for n in range(many)],
            "dx": np.where(patient, "patient", "control"),
            "hippocampus": (7600 - 900 * patient + rng.normal(0, 900, many)).round(),
            "thickness": (2.45 - 0.07 * patient + rng.normal(0, 0.13, many)).round(3),
            "age": rng.normal(70, 8, many).clip(50, 90).round(1),
        }
    )
    (folder / site).mkdir()
    table.to_csv(folder / site / "participants.tsv", sep="\t", index=False)

# %%
# The study holds out 30 % of the participants, and uses 30 % of its budget to measure the
# prediction of their diagnoses.
(folder / "study.yaml").write_text(f"""
study: diagnosis
sites: {[*SITES]}
participants: {SITES}
features:
  - name: measures
    source: table
    columns:
      hippocampus: {{low: 4000, high: 11000}}
      thickness: {{low: 1.8, high: 3.0}}
      age: {{low: 50, high: 90}}
  - {{name: dx, source: table, columns: {{dx: {{levels: [control, patient]}}}}}}
privacy: {{unit: subject, epsilon: 4, delta: 1.0e-5, colluding_sites: 1}}
algorithm: regression
analysis: {{target: dx, model: logistic, bound: 1.2, held_out: 0.3, judging: 0.3}}
""")
result = cc.simulate(folder / "study.yaml", {site: folder / site for site in SITES}, seed=1)
print(result.tables["auc"].round(3).to_string(index=False))
print(result.tables["calibration"].round(2).to_string(index=False))

# %%
# The ROC curve, and observed shares of patients by predicted probability, with intervals.
figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
roc, predicted = result.tables["roc"], result.tables["predicted"]
curves = (roc, "false positive rate", "sensitivity"), (predicted, "predicted", "observed")
for axis, (table, across, up) in zip(axes, curves, strict=True):
    axis.plot([0, 1], [0, 1], "--", color="#9aa7b2")
    axis.vlines(table[across], table[f"{up} low"], table[f"{up} high"], color="#9aa7b2")
    axis.plot(table[across], table[up], "o-", color="#0b5c6b")
    axis.set(xlabel=across, ylabel=up, xlim=(0, 1), ylim=(0, 1), aspect="equal")
plt.show()
