"""A study of hospitals' own tables from its file to its result, in one process."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.support.command_line import enter

STUDY = """\
study: thickness
sites: [a, b, c]
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
    assert "b: 2 persons left out, the first because:" in told
    assert "column lh_cuneus_thickness has a value that the study calls missing" in told
    (table,) = out.glob("tables/*_loadings.tsv")
    rows = [line.split("\t") for line in table.read_text().splitlines()[1:]]
    assert [name for name, _ in rows] == ["lh_insula_thickness", "lh_cuneus_thickness"]
    np.testing.assert_allclose([float(value) for _, value in rows], [-0.5, 0.5], atol=1e-9)
