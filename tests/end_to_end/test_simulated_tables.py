"""A study of hospitals' own tables from its file to its result, in one process."""

from pathlib import Path

import numpy as np

from consortium.views.table import REGIONS
from tests.support.command_line import enter

DESIKAN = REGIONS["desikan"]

STUDY = """\
study: thickness
sites: [a, b, c]
participants: {a: 10, b: 10, c: 10}
data: {missing: [-9999]}
features:
  - {name: brain, source: table, file: lh.tsv, columns: {"lh_*_thickness": {low: 1, high: 5}},
     regions: [insula, cuneus]}
privacy: {scheme: none, unit: subject, epsilon: 8, delta: 1.0e-5, colluding_sites: 1}
algorithm: average
analysis: {bound: 10}
"""


def test_tables_as_freesurfer_writes_them_become_a_result_and_who_is_left_out_is_told(
    tmp_path: Path,
) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    for site in "abc":
        (tmp_path / site).mkdir()
        lines = ["lh.aparc.thickness\tlh_cuneus_thickness\tlh_insula_thickness\teTIV"]
        lines += [f"sub-{number:02d}\t4.0\t2.0\t1" for number in range(10)]
        lines += ["sub-90\t-9999\t2.0\t1", "sub-91\t\t2.0\t1"] if site == "b" else []
        (tmp_path / site / "lh.tsv").write_text("\n".join(lines) + "\n")
    folders = [word for site in "abc" for word in ("--data", f"{site}={tmp_path / site}")]
    out = tmp_path / "out"
    said = enter("consortium", "simulate", tmp_path / "study.yaml", *folders, "--out", out)
    assert said.code == 0
    told = " ".join(said.out.split())
    assert "b: 2 participants left out, the first because:" in told
    assert "column lh_cuneus_thickness has a value that is a code for missing in the study" in told
    (table,) = out.glob("tables/*_loadings.tsv")
    rows = [line.split("\t") for line in table.read_text().splitlines()[1:]]
    assert [name for name, _ in rows] == ["lh_insula_thickness", "lh_cuneus_thickness"]
    np.testing.assert_allclose([float(value) for _, value in rows], [-0.5, 0.5], atol=1e-9)


MANY = 34
LONG = f"""\
study: thickness-in-many
title: Where patients' cortex is thinner
sites: [{", ".join(f"site{n}" for n in range(MANY))}]
participants: {{{", ".join(f"site{n}: {20 + 10 * (n // 15)}" for n in range(MANY))}}}
features:
  - name: cortex
    source: table
    file: thickness.csv
    regions: desikan
    columns:
      lh_*_thickness: {{low: 1.0, high: 4.5}}
      rh_*_thickness: {{low: 1.0, high: 4.5}}
  - name: person
    source: table
    file: participants.csv
    columns:
      patient: {{levels: ["0", "1"]}}
      age: {{low: 5, high: 65}}
privacy: {{unit: subject, epsilon: 8, delta: 1.0e-5, colluding_sites: 1}}
algorithm: glm
analysis:
  outcomes: cortex
  formula: patient + age
  contrasts: {{patients: patient}}
  groups: {{{", ".join(f"site{n}: [{10 + n // 2}, {10 + n % 3}]" for n in range(MANY))}}}
  norms: {{location: 2.6, deviation: 0.25}}
  covariates: {{age: {{mean: 17, deviation: 8}}}}
"""


def _write_site(folder: Path, levels: tuple[int, int], rng: np.random.Generator) -> None:
    """ENIGMA's way: CSV, a first column of persons, more columns than the study names."""
    folder.mkdir(parents=True)
    names = [f"{side}_{region}_thickness" for side in ("lh", "rh") for region in DESIKAN]
    brains, people = [["subject_id", *names, "ICV"]], [["subject_id", "patient", "age"]]
    for number, patient in enumerate([0] * levels[0] + [1] * levels[1]):
        age = rng.uniform(8, 30)
        values = rng.normal(2.6 - 0.3 * patient * (np.arange(68) == 0), 0.25)
        brains.append([f"{number:04}", *(f"{x:.3f}" for x in values), "1500000"])
        people.append([f"{number:04}", str(patient), f"{age:.2f}"])
    for name, rows in (("thickness.csv", brains), ("participants.csv", people)):
        (folder / name).write_text("\n".join(",".join(row) for row in rows) + "\n")


def test_a_study_of_34_sites_takes_less_than_forty_lines_and_two_commands(tmp_path: Path) -> None:
    assert len(LONG.splitlines()) < 40
    study, rng = tmp_path / "study.yaml", np.random.default_rng(0)
    study.write_text(LONG)
    for n in range(MANY):
        _write_site(tmp_path / "sites" / f"site{n}", (10 + n // 2, 10 + n % 3), rng)
    said = enter("consortium", "plan", study)
    assert (said.code, said.err) == (0, "")
    assert "68 outcomes" in said.out
    out = tmp_path / "out"
    said = enter("consortium", "simulate", study, "--data", tmp_path / "sites", "--out", out)
    assert (said.code, "left out" in said.out) == (0, False)
    (table,) = out.glob("tables/*_results.tsv")
    rows = [line.split("\t") for line in table.read_text().splitlines()]
    found = [row[1] for row in rows[1:] if row[rows[0].index("found")] == "yes"]
    assert f"lh_{DESIKAN[0]}_thickness" in found


def test_who_states_no_sizes_is_asked_for_them(tmp_path: Path) -> None:
    lines = (line for line in STUDY.splitlines() if not line.startswith("participants:"))
    (tmp_path / "study.yaml").write_text("\n".join(lines))
    for words in (
        ("plan",),
        ("dpia", "--out", tmp_path / "o"),
        ("design", "--out", tmp_path / "o"),
    ):
        said = enter("consortium", words[0], tmp_path / "study.yaml", *words[1:])
        assert said.code == 1
        assert "or give --subjects, one number or 3 with commas" in said.err
    said = enter("consortium", "simulate", tmp_path / "study.yaml", "--data", "x", "--out", "o")
    assert "must be SITE=FOLDER" in said.err
