"""``python -m benchmarks.first_paper FOLDER [SEED [RUNS]]``: a first paper's questions, real data.

FOLDER has the files that `benchmarks.real` describes. The hospitals with at least 15 autistic
participants and 15 controls write tables, as a site keeps them. Two studies read them: Table 1 at
ε = 1, and autism at ε = 8, adjusted for age and sex, with the agreement of hospitals. A model
without age is computed from the same release. Each number is printed next to the one without
noise, from the pooled tables: a mean, or least squares with a constant of each site. With RUNS,
Table 1 is repeated so often, and the bias and the coverage of its intervals for the numbers of the
participants themselves are printed instead.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import consortium as cc
from benchmarks.agreement_real import FEWEST
from benchmarks.real import Real, read
from benchmarks.timing import command, show
from consortium.base.array import Array
from consortium.study.nominal import nominal_size

MOMENTS = "mean", "standard deviation"
HEAD = """
study: {name}
sites: [{sites}]
participants: {{{sizes}}}
privacy: {{unit: subject, epsilon: {epsilon}, delta: 1.0e-5, colluding_sites: 1}}
"""
DESCRIBE = """
features:
  - {name: group, source: table, columns: {diagnosis: {levels: [control, autism]}}}
  - name: person
    source: table
    columns: {age: {low: 5, high: 65}, sex: {levels: [F, M]}, mean_thickness: {low: 1, high: 4.5}}
algorithm: describe
analysis: {groups: diagnosis, quantiles: [0.5]}
"""
GLM = """
features:
  - {name: brain, source: table, columns: {"region[1-68]": {low: 1, high: 4.5}}}
  - name: person
    source: table
    columns:
      diagnosis: {levels: [control, autism]}
      age: {low: 5, high: 65}
      sex: {levels: [F, M]}
algorithm: glm
analysis:
  {outcomes: brain, formula: diagnosis + age + sex, contrasts: all, shares: 0.5, anyway: true,
   agreement: 0.1, covariates: {age: {mean: 17, deviation: 9}}}
"""


def _table(people: Real) -> pd.DataFrame:
    """Return one row for each participant of a hospital with enough of both groups."""
    regions = [f"region{number}" for number in range(1, len(people.outcomes) + 1)]
    table = pd.DataFrame(people.outcomes.T, columns=regions)
    table["mean_thickness"] = people.outcomes.mean(axis=0)
    table["diagnosis"] = np.where(people.autism, "autism", "control")
    table["age"], table["sex"] = people.age, np.where(people.sex, "M", "F")
    table["site"] = [f"s{number}" for number in people.site]
    counts = table.groupby("site")["diagnosis"].value_counts().unstack(fill_value=0)
    enough = counts.min(axis=1) >= FEWEST
    return table[table["site"].map(enough)].reset_index(drop=True)


def _pooled(table: pd.DataFrame, columns: list[str]) -> Array:
    """Return the pooled effect of autism on each region, with a constant of each site."""
    coded = {"diagnosis": table["diagnosis"] == "autism", "age": table["age"]}
    coded["sex"] = table["sex"] == "M"
    sites = pd.get_dummies(table["site"]).to_numpy(np.float64)
    design = np.column_stack([*(coded[name].astype(np.float64) for name in columns), sites])
    outcomes = table.filter(regex="^region").to_numpy()
    return np.asarray(np.linalg.lstsq(design, outcomes, rcond=None)[0][0])


def _run(name: str, text: str, table: pd.DataFrame, epsilon: float, seed: int) -> cc.StudyResult:
    sizes = {site: nominal_size(int(many)) for site, many in table["site"].value_counts().items()}
    with TemporaryDirectory() as scratch:
        folders = {site: Path(scratch, site) for site in sizes}
        for site, folder in folders.items():
            own = table[table["site"] == site].drop(columns="site")
            own.insert(0, "participant_id", [f"sub-{number:03d}" for number in range(len(own))])
            folder.mkdir()
            own.to_csv(folder / "participants.tsv", sep="\t", index=False)
        stated = ", ".join(f"{site}: {size}" for site, size in sizes.items())
        head = HEAD.format(name=name, sites=", ".join(sizes), sizes=stated, epsilon=epsilon)
        study = Path(scratch, "study.yaml")
        study.write_text(head + text, encoding="utf-8")
        return cc.simulate(study, folders, seed=seed)


def _coverage(table: pd.DataFrame, epsilon: float, runs: int) -> None:
    """Print bias and coverage of Table 1."""
    found: dict[tuple[str, str, str], list[tuple[float, float, bool]]] = {}
    for seed in range(runs):
        released = _run("table1", DESCRIBE, table, epsilon, seed).tables["table1"]
        for _, row in released[released["statistic"].isin(MOMENTS)].iterrows():
            for level in ("control", "autism"):
                value, low, high = (row[f"diagnosis={level}{end}"] for end in ("", " low", " high"))
                own = table.loc[table["diagnosis"] == level, row["entry"]]
                true = own.mean() if row["statistic"] == MOMENTS[0] else own.std()
                if np.isfinite(value):
                    key = row["entry"], row["statistic"], level
                    found.setdefault(key, []).append(
                        (value - true, high - low, low <= true <= high)
                    )
    rows = []
    for key, trials in found.items():
        bias, width, inside = np.mean(trials, axis=0)
        rows.append([*key, f"{bias:.3f}", f"{width:.3f}", f"{inside:.3f}", str(len(trials))])
    titles = ["entry", "statistic", "group", "bias", "width", "inside", "reported"]
    show(f"Table 1 at ε = {epsilon:g}, {runs} runs", titles, rows)


def main(folder: Path, seed: int = 1, runs: int = 0) -> None:
    """Print the table of participants, effects with and without age, and the agreement."""
    table = _table(read(folder))
    if runs:
        for epsilon in (1.0, 4.0):
            _coverage(table, epsilon, runs)
        return
    described = _run("table1", DESCRIBE, table, 1.0, seed).tables["table1"]
    print(f"{len(table)} participants at {table['site'].nunique()} hospitals")
    rows = []
    for entry in ("age", "mean_thickness"):
        mean = described.query(f"entry == '{entry}' and statistic == 'mean'").iloc[0]
        for level in ("control", "autism"):
            low, high = (mean[f"diagnosis={level} {end}"] for end in ("low", "high"))
            true = table.loc[table["diagnosis"] == level, entry].mean()
            released = f"{mean[f'diagnosis={level}']:.2f} ({low:.2f} to {high:.2f})"
            rows.append([f"mean of {entry}", level, released, f"{true:.2f}"])
    show("Table 1 at ε = 1", ["statistic", "group", "released, 95 % interval", "exact"], rows)
    result = _run("autism", GLM, table, 8.0, seed)
    rows = []
    for model, effects in (
        ("with age", result.tables["contrastdiagnosis"]),
        ("without age", result.refit("diagnosis + sex")),
    ):
        columns = ["diagnosis", *(["age"] if model == "with age" else []), "sex"]
        unit = result.tables["contrastdiagnosis"]["deviation"].to_numpy()
        pooled = _pooled(table, columns) / unit
        found, error = effects["effect"].to_numpy(), effects["error"].to_numpy()
        inside = np.abs(found - pooled) <= 1.96 * error
        rms = float(np.sqrt(np.mean(np.square(found - pooled))))
        numbers = [np.corrcoef(found, pooled)[0, 1], rms, float(np.median(error)), inside.mean()]
        rows.append([model, *(f"{number:.2f}" for number in numbers)])
        rows[-1].append(str(int((effects["q"] <= 0.05).sum())))
    titles = ["model", "correlation", "rms difference", "stated error", "inside", "q ≤ 0.05"]
    show("Autism, 68 regions: released and pooled effects at ε = 8", titles, rows)
    agreement = result.tables["agreement"].iloc[0]
    show("Agreement", list(agreement.index), [[f"{value:.3f}" for value in agreement]])


if __name__ == "__main__":
    command(main)
