"""Opened and simulated results, and what several releases cost together."""

import math
from pathlib import Path
from typing import cast

import nibabel as nib
import numpy as np
import pandas as pd
import pytest
import yaml
from matplotlib import pyplot as plt

import consortium as cc
from consortium.errors import DataError, OutputError, PrivacyError, StudyError
from consortium.privacy.gdp import compose, epsilon_of
from consortium.python.estimator import carry_out, system_keys
from consortium.python.privacy import Privacy
from consortium.python.result import StudyResult
from consortium.report.privacy_report import read_privacy_report
from consortium.simulation.array_data import ArrayData
from consortium.study.plan import make_plan
from tests.support.cases import make_sites, make_study
from tests.support.finished_run import finished
from tests.support.made_up_scans import MASK, scans


def test_an_output_folder_is_opened_whole() -> None:
    out = finished().out
    result = cc.open_result(out)
    report = read_privacy_report(out / "privacy_report.json")
    assert result.privacy.epsilon == report.guarantees.coalition.epsilon
    assert result.privacy.report == report
    stored = nib.load(next(out.glob("tpl-*/func/*_components.nii.gz")))
    assert np.array_equal(np.asarray(result.components_img_.dataobj), stored.get_fdata())
    assert len(result.found_) == stored.shape[3]
    assert "components" in result.tables
    with pytest.raises(DataError, match=r"has no table 'connectivity'. Its tables are components"):
        _ = result.connectivity_
    with pytest.raises(DataError, match="one map of stat 't' of contrast None"):
        result.contrast()


def test_a_damaged_folder_is_told(tmp_path: Path) -> None:
    copy = finished().copy(tmp_path).out
    image = next(copy.glob("tpl-*/func/*_components.nii.gz"))
    image.write_bytes(image.read_bytes()[:200])
    with pytest.raises(OutputError, match=r"is damaged. Copy the folder again"):
        cc.open_result(copy)


def test_a_missing_number_of_a_table_is_no_number(tmp_path: Path) -> None:
    copy = finished().copy(tmp_path).out
    path = next(copy.glob("tables/*components_results.tsv"))
    head, first, *rest = path.read_text(encoding="utf-8").splitlines()
    cells = [first.split("\t")[0], *["n/a"] * (len(head.split("\t")) - 1)]
    path.write_text("\n".join([head, "\t".join(cells), *rest]) + "\n", encoding="utf-8")
    row = cc.open_result(copy).tables["components"].iloc[0]
    assert row.isna().sum() == len(row) - 1


def test_a_simulation_in_memory_and_from_files_are_one(tmp_path: Path) -> None:
    values = {
        "study": "small",
        "sites": ["north", "south"],
        "participants": dict.fromkeys(["north", "south"], 10),
        "data": {"mask": "mask.nii.gz"},
        "privacy": {"unit": "subject", "epsilon": 8, "delta": 1e-5, "colluding_sites": 0},
        "algorithm": "pca",
        "analysis": {"components": 2},
    }
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(values))
    nib.save(MASK, tmp_path / "mask.nii.gz")
    files = []
    for number, image in enumerate(scans(20, 50)):
        files.append(tmp_path / f"scan{number}.nii.gz")
        nib.save(image, files[-1])
    runs = [
        cc.simulate(path, {"north": scans(20), "south": south}, seed=1)
        for south in (scans(20, 50), files)
    ]
    first, second = (np.asarray(run.components_img_.dataobj) for run in runs)
    assert np.array_equal(first, second)
    assert not runs[0].privacy.protects
    assert "protects no participant" in str(runs[0].privacy)
    with pytest.raises(StudyError, match=r"south: no data set. Add it to data"):
        cc.simulate(path, {"north": scans(20)}, seed=1)
    with pytest.raises(StudyError, match=r"names mask.nii.gz, which is stored next to its file"):
        cc.simulate(cc.load_study(path), {"north": scans(2), "south": scans(2)}, seed=1)


def test_connectivity_has_a_number_for_every_two_networks(tmp_path: Path) -> None:
    rng, networks = np.random.default_rng(0), 3
    maps = np.kron(np.eye(networks), np.ones((9, 1))).reshape(3, 3, 3, networks)
    nib.save(nib.Nifti1Image(maps.astype(np.float32), MASK.affine), tmp_path / "maps.nii.gz")
    nib.save(MASK, tmp_path / "mask.nii.gz")
    labels = np.arange(1, 28, dtype=np.int16).reshape(3, 3, 3)
    nib.save(nib.Nifti1Image(labels, MASK.affine), tmp_path / "atlas.nii.gz")
    values = {
        "study": "links",
        "sites": ["north"],
        "participants": {"north": 100},
        "data": {"mask": "mask.nii.gz", "atlas": "atlas.nii.gz", "smoothing": 0},
        "privacy": {
            "unit": "subject",
            "epsilon": 50,
            "delta": 1e-5,
            "colluding_sites": 0,
            "scheme": "local",
        },
        "algorithm": "template_networks",
        "analysis": {
            "templates": "maps.nii.gz",
            "connectivity": True,
            "anyway": True,
        },
    }
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(values))
    people = []
    for _ in range(100):
        courses = rng.normal(size=(networks, 60))
        courses[1] += courses[0]
        noise = rng.normal(size=(3, 3, 3, 60))
        people.append(nib.Nifti1Image(maps @ courses + 0.3 * noise, MASK.affine))
    found = cc.simulate(path, {"north": people}, seed=2).connectivity_
    assert found.shape == (networks, networks)
    assert found == pytest.approx(found.T, nan_ok=True)
    assert found[0, 1] > abs(found[0, 2])
    assert list(np.diag(found)) == [1.0] * networks


def test_what_releases_cost_together_is_the_composition() -> None:
    parts = [cc.Privacy(epsilon_of(mu, 1e-5), 1e-5, mu, "subject") for mu in (0.3, 0.4, 1.2)]
    together = parts[0].plus(*parts[1:])
    assert together.mu == pytest.approx(compose([0.3, 0.4, 1.2]))
    assert together.epsilon == pytest.approx(epsilon_of(1.3, 1e-5))
    seeded = cc.Privacy(math.inf, 1e-5, math.inf, "subject", seeded=True)
    assert not parts[0].plus(seeded).protects
    for other in (
        cc.Privacy(1.0, 1e-6, 0.2, "subject"),
        cc.Privacy(1.0, 1e-5, 0.2, "timepoint"),
    ):
        with pytest.raises(PrivacyError, match="different units or δ can't be added"):
            parts[0].plus(other)


def test_only_a_plan_of_one_site_with_noise_of_its_own_is_carried_out_here() -> None:
    sites = make_sites(subjects=(5, 5, 5, 5), features=4)
    for scheme in ("cape", "none"):
        study = make_study(scheme=scheme)
        plan = make_plan(study, sites[0].extent.shape([5] * 4, [50] * 4, "subject"))
        with pytest.raises(PrivacyError, match=f"4 sites with scheme {scheme} can't be"):
            carry_out(plan, sites[0], system_keys)


def test_noise_here_is_as_large_as_the_result_says() -> None:
    values = np.full((2000, 1), 0.01)
    site = ArrayData([values] * 20)
    study = make_study(
        "average", {"bound": 1.0}, sites=("here",), scheme="local", colluding_sites=0
    )
    plan = make_plan(study, site.extent.shape([20], [20], "subject"))
    result = carry_out(plan, site, system_keys).result
    assert result is not None
    error = result.arrays["mean"][:, 0] - 0.01
    assert error.std() == pytest.approx(float(result.numbers["noise_deviation"]), rel=0.1)


@pytest.mark.parametrize("heading", ["coefficient", "effect"])
def test_a_result_of_entries_is_drawn_with_its_intervals(heading: str) -> None:
    ends = ("low", "high") if heading == "effect" else (f"{heading} low", f"{heading} high")
    table = {
        "view": ("who",) * 4,
        "entry": ("age", "sex", "edge", "untold"),
        heading: (0.5, -2.0, 0.1, ""),
        ends[0]: (0.2, -2.5, -0.9, ""),
        ends[1]: (0.8, -1.5, 1.1, ""),
    }
    privacy = cast("Privacy", None)
    levels = pd.DataFrame({"view": ["who"]})
    result = StudyResult(privacy, {}, {"levels": levels, "coefficients": pd.DataFrame(table)})
    figure = result.plot(2)
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["age", "sex"]
    assert axes.get_xlabel() == f"{heading}, with its interval"
    (dots,) = [line for line in axes.lines if line.get_marker() == "o"]
    assert list(dots.get_xdata()) == [0.5, -2.0]
    plt.close(figure)
    untold = pd.DataFrame({**table, heading: ("", "", "", "")})
    nothing = StudyResult(privacy, {}, {"coefficients": untold})
    shown = nothing.plot()
    assert "exceeds the noise, so none is drawn" in shown.texts[0].get_text()
    plt.close(shown)
