"""
The first table of a paper, with Kaplan-Meier curves
====================================================

Who took part? ``describe`` releases means, standard deviations, quantiles and missing values of all
columns by group, each with an interval, in one study. Curves of the time to a relapse come from
noisy counts of time by event.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

import consortium as cc

# %%
# Simulated participants of four hospitals. Patients relapse earlier, and are older.
SITES = {"north": 1000, "east": 800, "south": 1100, "west": 1100}
folder, rng = Path(tempfile.mkdtemp()), np.random.default_rng(0)
for site, many in SITES.items():
    patient = rng.random(many) < 0.4
    relapse = rng.exponential(np.where(patient, 5.0, 12.0))
    followed = np.minimum(rng.uniform(2, 15, many), relapse).clip(max=8).round(3)
    table = pd.DataFrame(
        {
            "participant_id": [f"sub-{n:04d}" for n in range(many)],
            "diagnosis": np.where(patient, "patient", "control"),
            "age": (50 + 6 * patient + rng.normal(0, 12, many)).clip(18, 90).round(1),
            "MMSE": 30 - rng.binomial(30, np.where(patient, 0.12, 0.05)),
            "followed": followed,
            "relapse": np.where((followed == relapse.round(3)) & (followed < 8), "yes", "no"),
        }
    )
    table.loc[rng.random(many) < 0.1, "MMSE"] = np.nan
    (folder / site).mkdir()
    table.to_csv(folder / site / "participants.tsv", sep="\t", index=False, na_rep="n/a")

# %%
# The study. The groups' column has a view of its own, as it may not be missing.
(folder / "study.yaml").write_text(f"""
study: participants
sites: {[*SITES]}
participants: {SITES}
features:
  - {{name: group, source: table, columns: {{diagnosis: {{levels: [control, patient]}}}}}}
  - name: measures
    source: table
    gaps: 0.5
    columns:
      age: {{low: 18, high: 90}}
      MMSE: {{low: 0, high: 30}}
      followed: {{low: 0, high: 8}}
      relapse: {{levels: ["no", "yes"]}}
privacy: {{unit: subject, epsilon: 2, delta: 1.0e-5, colluding_sites: 1}}
algorithm: describe
analysis:
  groups: diagnosis
  bins: {{MMSE: 15}}
  survival: {{relapse: {{time: followed, event: relapse, bins: 8}}}}
""")
result = cc.simulate(folder / "study.yaml", {site: folder / site for site in SITES}, seed=1)
columns = ["entry", "statistic", "diagnosis=control", "diagnosis=patient", "all"]
print(result.tables["table1"][columns].round(1).to_string(index=False))

# %%
# The curves, with their intervals.
curves = result.tables["survival"]
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for name, colour in (("diagnosis=control", "#0b5c6b"), ("diagnosis=patient", "#b3541e")):
    time = np.append(0.0, curves["time"])
    shares = np.append(1.0, curves[name])
    axis.plot(time, shares, "o-", color=colour, label=name)
    low, high = (np.append(1.0, curves[f"{name} {end}"]) for end in ("low", "high"))
    axis.fill_between(time, low, high, color=colour, alpha=0.2)
axis.set(xlabel="years", ylabel="share without relapse", ylim=(0, 1.02))
axis.legend()
plt.show()
