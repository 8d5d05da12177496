"""
Do hospitals agree, and does the result depend on age?
======================================================

What reviewers ask after a first result. One study of ``glm`` with ``contrasts: all`` and
``agreement: 0.1`` answers both questions. Models with and without age are computed from the
released coefficients, and one released number shows how much the effect differs between hospitals.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

import consortium as cc

# %%
# Simulated thickness of 20 regions at eight hospitals. Patients are older. In the first data set
# the effect is the same everywhere, in the second it differs by 0.3 standard deviations.
SITES = {f"h{number}": 200 for number in range(1, 9)}
REGIONS = [f"region{number}" for number in range(1, 21)]
EFFECT = np.where(np.arange(20) < 5, -0.6, 0.0)


def simulate_tables(between: float) -> Path:
    """Write one table of participants for each hospital."""
    folder, rng = Path(tempfile.mkdtemp()), np.random.default_rng(3)
    for site, many in SITES.items():
        patient = rng.random(many) < 0.5
        age = (50 + 6 * patient + rng.normal(0, 10, many)).clip(18, 90)
        own = EFFECT + between * rng.standard_normal(20) - 0.03 * (age - 50)[:, None]
        offset = 0.5 * rng.standard_normal(20)  # of the scanner
        own = np.where(patient[:, None], own, -0.03 * (age - 50)[:, None]) + offset
        table = 2.5 + 0.15 * pd.DataFrame(own + rng.standard_normal(own.shape), columns=REGIONS)
        table.insert(0, "participant_id", [f"sub-{n:04d}" for n in range(many)])
        table["diagnosis"] = np.where(patient, "patient", "control")
        table["age"] = age.round(1)
        (folder / site).mkdir()
        table.to_csv(folder / site / "participants.tsv", sep="\t", index=False)
    return folder


# %%
# The study. A tenth of its budget is for the agreement of hospitals.
STUDY = f"""
study: agreement
sites: {[*SITES]}
participants: {SITES}
features:
  - {{name: brain, source: table, columns: {{"region[1-20]": {{low: 1, high: 4}}}}}}
  - name: person
    source: table
    columns: {{diagnosis: {{levels: [control, patient]}}, age: {{low: 18, high: 90}}}}
privacy: {{unit: subject, epsilon: 8, delta: 1.0e-5, colluding_sites: 1}}
algorithm: glm
analysis:
  outcomes: brain
  formula: diagnosis + age
  contrasts: all
  agreement: 0.1
  shares: 0.5
  covariates: {{age: {{mean: 53, deviation: 11}}}}
"""
results = {}
for name, between in (("the same effect", 0.0), ("effects differ", 0.3)):
    folder = simulate_tables(between)
    (folder / "study.yaml").write_text(STUDY)
    data = {site: folder / site for site in SITES}
    results[name] = cc.simulate(folder / "study.yaml", data, seed=1)
    print(f"{name}:")
    print(results[name].tables["agreement"].loc[0].round(2).to_string())

# %%
# The same release without age, at no further privacy loss.
result = results["the same effect"]
without = result.refit("diagnosis")
adjusted = result.tables["contrastdiagnosis"]

# %%
# Left: effects with and without age. Right: standard deviation of the effect between hospitals.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.errorbar(
    np.arange(20) - 0.15, adjusted["effect"], 2 * adjusted["error"], fmt="o", label="with age"
)
left.errorbar(
    np.arange(20) + 0.15, without["effect"], 2 * without["error"], fmt="s", label="without"
)
unit = np.hypot(1, 0.03 * 10)  # deviation within groups and sites, with that by age
left.plot(np.arange(20), EFFECT / unit, "k_", label="truth")
left.set(xlabel="region", ylabel="patients − controls, SD")
left.legend(loc="lower right")
for place, found in enumerate(results.values()):
    names = [f"between_hospitals{end}" for end in ("", "_low", "_high")]
    middle, low, high = found.tables["agreement"].loc[0, names]
    right.errorbar(place, middle, [[middle - low], [high - middle]], fmt="o", color="#0b5c6b")
right.plot([0, 1], [0.0, 0.3], "k_", markersize=20)
right.set(xticks=[0, 1], xticklabels=[*results], ylabel="SD between hospitals", xlim=(-0.5, 1.5))
plt.show()
