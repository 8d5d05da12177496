"""Scores of a hospital's own participants: they stay inside, and no study reads them."""

import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pandas as pd
import pytest

from consortium.base.delimited import KEPT_COLUMN
from consortium.coordinator.demo.prepare import DemoFolders
from tests.support.command_line import enter, refused
from tests.support.finished_run import carry_out
from tests.support.local_consortium import SITES, LocalConsortium, build

PERSONS = 40
REGIONS = ["insula", "cuneus", "precuneus"]
STUDY = f"""\
study: thickness
sites: [north, east, south, west]
participants: {{north: {PERSONS}, east: {PERSONS}, south: {PERSONS}, west: {PERSONS}}}
features:
  - name: cortex
    source: table
    file: thickness.tsv
    columns:
      insula: {{low: 1, high: 5}}
      cuneus: {{low: 1, high: 5}}
      precuneus: {{low: 1, high: 5}}
  - name: who
    source: table
    columns:
      diagnosis: {{levels: [control, patient]}}
      age: {{low: 18, high: 90}}
      scanner: {{levels: [a, b, c]}}
privacy: {{epsilon: 90, delta: 1.0e-5, boost: BOOST, colluding_sites: 1, dropouts: DROPOUTS}}
algorithm: glm
analysis:
  outcomes: cortex
  formula: diagnosis * age + scanner
  contrasts: all
  shares: 0.5
  norms: {{location: 3, deviation: 0.3}}
  covariates: {{age: {{mean: 50, deviation: 15}}}}
  anyway: true
timing: {{join: 4, answer: 4, late: 1}}
"""


def make_tables(folder: Path, subjects: int) -> None:
    for number, name in enumerate(SITES):
        rng = np.random.default_rng(number)
        place = folder / name / "bids"
        place.mkdir(parents=True)
        people = pd.DataFrame({"participant_id": [f"sub-{n:02d}" for n in range(subjects)]})
        age = rng.uniform(20, 80, subjects).round(1)
        patient = np.arange(subjects) % 2
        people["diagnosis"] = np.where(patient, "patient", "control")
        people["age"] = age
        people["scanner"] = rng.choice(list("abc"), subjects)
        people.to_csv(place / "participants.tsv", sep="\t", index=False)
        values = 3.0 + 0.2 * number - 0.01 * (age[:, None] - 50) - 0.2 * patient[:, None]
        values = values + 0.3 * rng.standard_normal((subjects, 3))
        table = pd.concat(
            [people[["participant_id"]], pd.DataFrame(values, columns=REGIONS)], axis=1
        )
        table.to_csv(place / "thickness.tsv", sep="\t", index=False)


@cache
def place(norms: str = "deviation: 0.3") -> DemoFolders:
    """A consortium with a finished run."""
    text = STUDY.replace("deviation: 0.3", norms)
    made = build(
        Path(mkdtemp()) / "town", text=text, subjects=PERSONS, make=make_tables, most=100.0
    )
    carry_out(LocalConsortium(made))
    return made


def words(
    target: Path, *more: object, source: Path | None = None, town: DemoFolders | None = None
) -> tuple[object, ...]:
    town = town or place()
    rest = ("--roster", town.files.roster, "-f", town.site("east"), *more)
    return ("zscores", source or town.files.out, target, *rest)


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, sep="\t").set_index("participant_id")


def own_people() -> tuple[pd.DataFrame, pd.DataFrame]:
    folder = place().dataset("east")
    return read(folder / "participants.tsv"), read(folder / "thickness.tsv")


def chart_file(path: Path, text: str) -> Path:
    path.write_text(text.replace(" ", "\t"), encoding="utf-8")
    return path


def test_scores_are_those_of_the_released_coefficients(tmp_path: Path) -> None:
    said = enter("site-agent", *words(tmp_path / "scores"))
    assert (said.code, said.err) == (0, ""), said.err
    found = read(tmp_path / "scores" / "zscores.tsv")
    people, values = own_people()
    (single,) = (place().files.out / "tables").glob("*glmcoefficients_results.tsv")
    coefficients = pd.read_csv(single, sep="\t").set_index("entry")
    (own,) = (place().files.out / "tables").glob("*glmcontrast*_results.tsv")
    deviation = pd.read_csv(own, sep="\t").set_index("entry")["deviation"]
    patient = (people["diagnosis"] == "patient").astype(float)
    age = (people["age"] - 50) / 15
    for region in REGIONS:
        slope = coefficients.loc[region]
        others = slope["age"] * age + slope["diagnosis:age"] * age * (2 * patient - 1)
        for level in ("b", "c"):
            others += slope[f"scanner={level}"] * (people["scanner"] == level)
        beyond = values[region] / deviation[region] - others
        level = (beyond - slope["diagnosis"] * patient).mean()
        assert found[region].to_numpy() == pytest.approx((beyond - level).to_numpy(), abs=1e-4)
    harmonized = read(tmp_path / "scores" / "harmonized.tsv")
    assert set(harmonized.columns) == {KEPT_COLUMN, *REGIONS}
    moved = values[REGIONS] - harmonized[REGIONS]
    assert moved.std().to_numpy() == pytest.approx(0.0, abs=1e-4)  # one level for all


def test_without_stated_deviations_they_are_the_hospitals_own(tmp_path: Path) -> None:
    town = place("correlation: 0.0")
    said = enter("site-agent", *words(tmp_path / "scores", town=town))
    assert (said.code, said.err) == (0, ""), said.err
    assert "are this hospital's own" in " ".join(said.out.split())
    found = read(tmp_path / "scores" / "zscores.tsv")[REGIONS]
    patient = read(town.dataset("east") / "participants.tsv")["diagnosis"] == "patient"
    values = read(town.dataset("east") / "thickness.tsv")[REGIONS]
    within = pd.concat([found[patient] - found[patient].mean(), found[~patient]])
    assert within.std().to_numpy() == pytest.approx(1.0, abs=0.1)
    harmonized = read(tmp_path / "scores" / "harmonized.tsv")[REGIONS]
    assert (values - harmonized).std().to_numpy() == pytest.approx(0.0, abs=1e-4)
    few = words(tmp_path / "few", "--among", "diagnosis=control", town=town)
    assert "At least 30" in refused("site-agent", *few)


def test_a_published_chart_has_slopes_curves_and_levels(tmp_path: Path) -> None:
    rows = "".join(f"{region} 0.4 3.1 0.2 3.5 3.0 2.9 -0.1\n" for region in REGIONS)
    head = "outcome deviation location between age@20 age@50 age@80 scanner=b\n"
    chart = chart_file(tmp_path / "chart.tsv", head + rows)
    options = ("--chart", chart, "--among", "diagnosis=control")
    said = enter("site-agent", *words(tmp_path / "scores", *options))
    assert (said.code, said.err) == (0, ""), said.err
    found = read(tmp_path / "scores" / "zscores.tsv")
    people, values = own_people()
    # A natural spline through three equidistant knots, in closed form.
    step, second = 30.0, 1.5 * (3.5 - 2 * 3.0 + 2.9) / 30.0**2

    def curve(at: float) -> float:
        left, right = (3.5, 3.0) if at <= 50 else (3.0, 2.9)
        first = 20.0 if at <= 50 else 50.0
        u = (at - first) / step
        bend = second * step**2 / 6
        m0, m1 = (0.0, bend) if at <= 50 else (bend, 0.0)
        cubic = (1 - u) ** 3 - (1 - u), u**3 - u
        return (1 - u) * left + u * right + m0 * cubic[0] + m1 * cubic[1]

    expected = people["age"].map(curve) - 0.1 * (people["scanner"] == "b")
    control = people["diagnosis"] == "control"
    for region in REGIONS:
        beyond = values[region] - expected
        mean = beyond[control].mean()
        kept = 0.2**2 / (0.2**2 + 0.4**2 / control.sum())
        level = 3.1 + kept * (mean - 3.1)
        scores = (beyond - level) / 0.4
        assert found[region].to_numpy() == pytest.approx(scores.to_numpy(), abs=1e-4)


def test_a_value_that_moves_the_level_is_named(tmp_path: Path) -> None:
    data = place().dataset("east") / "thickness.tsv"
    before = data.read_text(encoding="utf-8")
    head, first, *rest = before.splitlines()
    try:
        wrong = "\t".join([first.split("\t")[0], "5.0", *first.split("\t")[2:]])
        data.write_text("\n".join([head, wrong, *rest]) + "\n", encoding="utf-8")
        said = enter("site-agent", *words(tmp_path / "scores"))
    finally:
        data.write_text(before, encoding="utf-8")
    assert said.code == 0
    assert "WARNING: 1 score beyond" in said.out
    assert "insula of 00" in " ".join(said.out.split())


def test_no_study_reads_scores(tmp_path: Path) -> None:
    target = tmp_path / "scores"
    assert enter("site-agent", *words(target)).code == 0
    assert target.stat().st_mode & 0o777 == 0o700
    data = place().dataset("east") / "thickness.tsv"
    before = data.read_bytes()
    try:
        data.write_bytes((target / "zscores.tsv").read_bytes())
        files = place().files
        said = refused(
            "site-agent", "check", files.study, "--roster", files.roster, "-f", place().site("east")
        )
    finally:
        data.write_bytes(before)
    assert "must not be used as data" in said


def test_nothing_is_sent_and_no_loss_is_charged(tmp_path: Path) -> None:
    exchange = place().files.exchange
    ledger = enter("site-agent", "ledger", "-f", place().site("east")).out
    before = sorted(path.name for path in exchange.rglob("*"))
    assert enter("site-agent", *words(tmp_path / "scores")).code == 0
    assert sorted(path.name for path in exchange.rglob("*")) == before
    assert enter("site-agent", "ledger", "-f", place().site("east")).out == ledger


@pytest.mark.parametrize(
    "text",
    [
        "outcome age\ninsula 1\n",
        "outcome deviation\ninsula 0.4\n",
        "outcome deviation\ninsula 0.4\ncuneus 0\nprecuneus 1\n",
        "outcome deviation\ninsula 0.4\ncuneus nan\nprecuneus 1\n",
        "outcome deviation\ninsula 0.4\ncuneus 1\ncuneus 1\nprecuneus 1\n",
        "outcome deviation weight\ninsula 0.4 1\ncuneus 1 1\nprecuneus 1 1\n",
        "outcome deviation age age\ninsula 0.4 1 1\ncuneus 1 1 1\nprecuneus 1 1 1\n",
        "outcome deviation age age@20\ninsula 0.4 1 1\ncuneus 1 1 1\nprecuneus 1 1 1\n",
        "outcome deviation age@50 age@20\ninsula 0.4 1 1\ncuneus 1 1 1\nprecuneus 1 1 1\n",
        "outcome deviation age@20\ninsula 0.4 1\ncuneus 1 1\nprecuneus 1 1\n",
        "outcome deviation scanner=b@1 scanner=b@2\ninsula 1 1 1\ncuneus 1 1 1\nprecuneus 1 1 1\n",
        "outcome deviation location\ninsula 0.4 1\ncuneus 1 1\nprecuneus 1 1\n",
        "outcome deviation location between\ninsula 1 1 -1\ncuneus 1 1 1\nprecuneus 1 1 1\n",
    ],
)
def test_a_chart_that_can_not_be_used_is_refused(tmp_path: Path, text: str) -> None:
    chart = chart_file(tmp_path / "chart.tsv", text)
    said = refused("site-agent", *words(tmp_path / "scores", "--chart", chart))
    assert "chart.tsv" in said
    assert not (tmp_path / "scores").exists()


def test_wrong_sources_and_levels_are_refused(tmp_path: Path) -> None:
    files = place().files
    target = tmp_path / "scores"
    refused("site-agent", *words(target, "--among", "diagnosis=sick"))
    refused("site-agent", *words(target, source=files.study))
    refused("site-agent", *words(target, source=tmp_path))
    refused("site-agent", *words(files.out / "scores"))
    (target / "old").mkdir(parents=True)
    refused("site-agent", *words(target))


def test_tables_of_other_outcomes_are_refused(tmp_path: Path) -> None:
    copied = Path(shutil.copytree(place().files.out, tmp_path / "out"))
    for path in (copied / "tables").glob("*glmcoefficients_results.tsv"):
        path.write_text(path.read_text().replace("insula", "other"), encoding="utf-8")
    assert "damaged" in refused("site-agent", *words(tmp_path / "scores", source=copied))
