"""
Checking a published result, and a table that was changed
=========================================================

Four hospitals count their patients' ages together, each with its own agent. Whoever gets the output
folder can check that it is the sum of what the named hospitals signed, with their fingerprints and
nothing else: no data, no key, and no word of the coordinator's. Then somebody edits one count.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

FOLDER, SITES = Path(tempfile.mkdtemp()), ("north", "east", "south", "west")


def start(program, *words):
    """Start a program of the package in the folder, as it is typed."""
    command = [str(Path(sys.executable).with_name(program)), *map(str, words)]
    return subprocess.Popen(command, cwd=FOLDER, stdout=-1, stderr=-1, text=True)


def typed(program, *words):
    """Wait for it; returns what it printed, and its exit code."""
    running = start(program, *words)
    said, wrong = running.communicate()
    return (said or wrong).strip(), running.returncode


# %%
# Simulated ages, of 60 patients a hospital, as each has them in its own ``participants.tsv``.
rng = np.random.default_rng(0)
for site in SITES:
    ages = np.clip(rng.normal(60, 12, 60), 18, 95).round()
    people = pd.DataFrame({"participant_id": [f"sub-{n:02d}" for n in range(60)], "age": ages})
    (FOLDER / site / "bids").mkdir(parents=True)
    people.to_csv(FOLDER / site / "bids" / "participants.tsv", sep="\t", index=False)

# %%
# The consortium. ``init`` prints the fingerprint of each party, which it publishes. The
# released sums can be shown without showing a single hospital's numbers.
(FOLDER / "ages.yaml").write_text("""
study: ages
sites: [north, east, south, west]
participants: {north: 60, east: 60, south: 60, west: 60}
features: [{name: age, source: table, columns: {age: {low: 15, high: 95}}}]
privacy: {unit: subject, epsilon: 2, delta: 1.0e-5, colluding_sites: 1}
algorithm: describe
analysis: {bins: 8, means: false}
""")
said, _ = typed("consortium", "init", "centre", "--exchange", "shared")
key, prints = said.split()[-1], {"centre": re.findall("(?:[0-9a-f]{4}-){5}[0-9a-f]{4}", said)[0]}
for site in SITES:
    own = ("--dataset", f"{site}/bids", "--exchange", "shared", "--folder", f"{site}/agent")
    said, _ = typed("site-agent", "init", "--name", site, "--centre", key, *own)
    prints[site] = said.split()[-1]
(FOLDER / "fingerprints.yaml").write_text("".join(f"{s}: {p}\n" for s, p in prints.items()))
asked = [f"{site}/agent/{site}.join.yaml" for site in SITES]
keys = ("--roster", "centre/roster.yaml", "--keys", "centre")
print(typed("consortium", "admit", *asked, *keys, "--yes")[0])
typed("consortium", "sign", "ages.yaml", *keys)
yes = ("--roster", "centre/roster.yaml", "--yes", "--start", "--once")
agents = [
    start("site-agent", "approve", "ages.yaml", *yes, "--folder", f"{s}/agent") for s in SITES
]
print(typed("consortium", "run", "ages.yaml", *keys, "--exchange", "shared", "--out", "out")[0])
for agent in agents:
    agent.communicate()

# %%
# Anybody's check. Exit code 0 says that all of it is shown.
shown, code = typed("consortium", "verify", "out", "--sites", "fingerprints.yaml")
print(shown, f"exit code {code}", sep="\n")

# %%
# One count is edited in the folder, and the check names the file and who can have done it.
(path,) = FOLDER.glob("out/tables/*bins_results.tsv")
counts = pd.read_csv(path, sep="\t")
counts.assign(all=counts["all"] + 5).to_csv(path, sep="\t", index=False)
refuted, changed = typed("consortium", "verify", "out", "--sites", "fingerprints.yaml")
print(refuted, f"exit code {changed}", sep="\n")

# %%
# The picture: what was signed.
middle, low, high = counts[["from", "to"]].mean(axis=1), counts["all low"], counts["all high"]
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.bar(middle, counts["all"], width=9)
axis.vlines(middle, low, high, color="black")
axis.set(xlabel="age", ylabel="patients of four hospitals", title="verified before it was changed")
plt.show()
