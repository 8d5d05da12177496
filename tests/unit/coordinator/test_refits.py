"""Refits of one run: they count together, and stay apart from the run's own folder."""

import json
import re
import shutil
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from consortium.algorithms.glm.kernels.contrast_regression import false_discovery
from consortium.base.atomic import write_text
from consortium.coordinator.refit import Refit, fit_again
from consortium.coordinator.refits import RECORD, usual_folder, write_refit
from consortium.errors import ConsortiumError, DataError, OutputError
from consortium.python.privacy import Privacy
from consortium.python.result import StudyResult, read_result_table
from consortium.report.coefficients import read_released
from tests.support.command_line import enter
from tests.unit.coordinator.test_refit import FORMULA, run_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "run"
    run_of(out)
    return out


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "run"
    run_of(out, "cape", anyway=True)
    return out


def test_false_discoveries_are_limited_over_all_refits_of_a_run(
    noisy: Path, tmp_path: Path
) -> None:
    place = tmp_path / "refits"
    questions = [Refit(formula="diagnosis"), Refit(formula="ward + age"), Refit(formula="age")]
    for asked in questions:
        written = write_refit(noisy, place, asked)
    assert write_refit(noisy, place, questions[1]).number == 2  # asked before
    released = read_released(noisy)
    models = [fit_again(released, asked) for asked in questions]
    own = fit_again(released, Refit(formula=FORMULA)).p
    q = false_discovery(np.concatenate([own, *(each.p for each in models)]))
    lines = [(place / f"refit-{n}.tsv").read_text().splitlines()[1:] for n in (1, 2, 3)]
    stored = [float(line.split("\t")[8]) for table in lines for line in table]
    assert stored == pytest.approx(q[len(own) :])
    assert written.page.read_text().count("<h2>") == 3


def test_a_folder_of_another_run_or_of_other_files_is_refused(
    folder: Path, noisy: Path, tmp_path: Path
) -> None:
    write_refit(folder, tmp_path / "refits", Refit(formula="age"))
    with pytest.raises(OutputError, match="another"):
        write_refit(noisy, tmp_path / "refits", Refit(formula="age"))
    write_text(tmp_path / "refits" / RECORD, "{}")
    with pytest.raises(OutputError, match="damaged"):
        write_refit(folder, tmp_path / "refits", Refit(formula="age"))
    write_text(tmp_path / "files" / "notes.txt", "notes")
    for other in (tmp_path / "files", tmp_path / "files" / "notes.txt"):
        with pytest.raises(ConsortiumError):
            write_refit(folder, other, Refit(formula="age"))
    assert [path.name for path in (tmp_path / "files").iterdir()] == ["notes.txt"]


def test_the_command_writes_beside_the_run(folder: Path, tmp_path: Path) -> None:
    run = shutil.copytree(folder, tmp_path / "run")
    before = sorted(run.rglob("*"))
    said = enter("consortium", "refit", run, "--formula", "diagnosis + age")
    assert said.code == 0
    assert sorted(run.rglob("*")) == before
    assert (usual_folder(run) / "refit-1.tsv").is_file()
    said = enter("consortium", "refit", run, "--formula", "ward", "--merge", "ward=b+c", "--json")
    rows = json.loads(said.out)["rows"]
    assert [row[:2] for row in rows] == [["ward=b+c", "a"]] * 3
    assert enter("consortium", "refit", run, "--formula", "sex").code != 0


def test_the_page_shows_what_the_command_prints(folder: Path, tmp_path: Path) -> None:
    run = shutil.copytree(folder, tmp_path / "out")
    options = ["--formula", "ward + age", "--merge", "ward=b+c"]
    page = Path(__file__).parents[3] / "docs" / "explanation" / "glm-refits.md"
    text = page.read_text(encoding="utf-8")
    assert f'`consortium refit out --formula "{options[1]}" --merge {options[3]}`' in text
    (table,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    assert table in enter("consortium", "refit", run, *options).out


def test_a_result_in_python_has_the_same_effects(tmp_path: Path) -> None:
    run = tmp_path / "run"
    result = run_of(run)
    tables = {
        name: read_result_table(next((run / "tables").glob(f"desc-*glm{name}_results.tsv")))
        for name in ("coefficients", "coefficientserrors")
    }
    opened = StudyResult(cast("Privacy", None), {}, tables)
    found = opened.refit("ward + age", merge=["ward=b+c"])
    model = fit_again(read_released(run), Refit(formula="ward + age", merge=("ward=b+c",)))
    assert found["effect"].to_numpy() == pytest.approx(model.estimates[0].effects)
    assert found["q"].to_numpy() == pytest.approx(false_discovery(model.p))
    assert set(result.tables) >= {"coefficients"}
    with pytest.raises(DataError):
        StudyResult(cast("Privacy", None), {}).refit("age")


def test_names_that_are_numbers_are_names_in_python(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run_of(run)
    for path in (run / "tables").glob("*coefficients*_results.tsv"):
        text = path.read_text(encoding="utf-8")
        text = text.replace("control", "0").replace("patient", "1").replace("region", "")
        write_text(path, text)
    tables = {
        name: read_result_table(next((run / "tables").glob(f"desc-*glm{name}_results.tsv")))
        for name in ("coefficients", "coefficientserrors")
    }
    opened = StudyResult(cast("Privacy", None), {}, tables)
    found = opened.refit("diagnosis", reference=["diagnosis=1"], outcomes=["[12]"])
    assert found["coefficient"].tolist() == ["diagnosis=0"] * 2
    assert found["reference"].tolist() == ["1"] * 2
    assert found["entry"].tolist() == [1, 2]  # as in the tables of the run
