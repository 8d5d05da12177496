"""
How many participants for which ε: planning before anybody is asked
===================================================================

``consortium design`` reads a study file and public numbers, no data, and forecasts what the study
would see, and studies near it. Here: the smallest effect that a mega-analysis can find in 80 % of
cases, over ε and over the number of participants.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from matplotlib import pyplot as plt

STUDY = """
study: thickness
sites: [north, east, south, west]
participants: {north: 260, east: 200, south: 290, west: 250}
features:
  - name: cortex
    source: table
    columns:
      region[1-34]: {low: 1.0, high: 4.5}
  - name: participant
    source: table
    columns:
      diagnosis: {levels: [control, patient]}
privacy: {unit: subject, epsilon: 4, delta: 1.0e-5, colluding_sites: 1}
algorithm: glm
analysis:
  outcomes: cortex
  formula: diagnosis
  contrasts: {patients: diagnosis}
  groups: {north: [130, 130], east: [100, 100], south: [145, 145], west: [125, 125]}
  norms: {location: 2.5, deviation: 0.22, correlation: 0.3}
"""
folder = Path(tempfile.mkdtemp())
(folder / "study.yaml").write_text(STUDY)
consortium = Path(sys.executable).with_name("consortium")
command = [consortium, "design", "study.yaml", "--out", "design"]
told = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
print(told.stdout)

# %%
# The same numbers are in a file. Bands are how far forecasts were off where it was measured.
(study,) = json.loads((folder / "design" / "design.json").read_text())["studies"]
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
for axis, curve in zip(axes, ("epsilon", "persons"), strict=True):
    points = [point for point in study["curves"][curve] if point["expected"]]
    at = [point["at"] for point in points]
    named = [{each["name"]: each for each in point["expected"]} for point in points]
    least = [each["least detectable effect"] for each in named]
    axis.plot(at, [each["value"] for each in least], "o-")
    axis.fill_between(at, *([each[end] for each in least] for end in ("low", "high")), alpha=0.3)
    axis.set(xscale="log", xlabel=curve.replace("epsilon", "ε"), xticks=at, ylim=0)
    axis.set_xticks(at, [f"{each:g}" for each in at])
    axis.minorticks_off()
    axis.grid(alpha=0.3)
axes[0].set_ylabel("least detectable effect, SD")
plt.show()
