"""The assessment of data protection: each of its numbers is the plan's, and none stands alone."""

import json
import re
from pathlib import Path

import pytest
import yaml

from consortium.base.formatting import number, percent, power_of_ten
from consortium.privacy.gdp import best_guess, detection_power, epsilon_of
from tests.support.command_line import enter, refused
from tests.support.html_page import Page

CONFIGS = Path(__file__).parents[3] / "configs"
SIZES = {"group_ica": "41,43,37,52,29,61,33,47", "describe": "250", "network": "64"}
NUMBER = re.compile(r"\d[\d,.]*\d|\d")
NO_FIGURES = re.compile(r"Articles? [\d(), ]+(\([a-z]\))?|cape-consortium [\d.]+|digest [0-9a-f]+")


def fill(study: Path, sizes: str, folder: Path, *more: str) -> tuple[str, str]:
    said = enter("consortium", "dpia", study, "--subjects", sizes, "--out", folder, *more)
    assert said.code == 0, said
    page, text = (folder / name for name in ("dpia.html", "dpia.md"))
    return page.read_text(encoding="utf-8"), text.read_text(encoding="utf-8").replace("\\", "")


def planned(study: Path, sizes: str, *more: str) -> dict:
    return json.loads(enter("consortium", "plan", study, "--subjects", sizes, "--json", *more).out)


def sources(text: str) -> list[list[str]]:
    table = text.split("## Where every number comes from")[1].strip().splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]


def lookup(content, path: str):
    for key in path.split("."):
        content = content[int(key)] if isinstance(content, list) else content[key]
    return content


@pytest.mark.parametrize("name", SIZES)
def test_every_number_is_what_its_source_says(name, tmp_path):
    study = CONFIGS / f"{name}.yaml"
    plan, file = planned(study, SIZES[name]), yaml.safe_load(study.read_text(encoding="utf-8"))
    _, text = fill(study, SIZES[name], tmp_path)
    checked = 0
    for _, value, source in sources(text):
        found_at = re.fullmatch(r"(.*?)consortium plan --json: (\S+)", source)
        if found_at:
            how, path = found_at.groups()
            found = lookup(plan, path)
            turn = {"power at μ of ": detection_power, "best guess at μ of ": best_guess}.get(how)
            good = {percent(turn(found))} if turn else {number(found), f"{found:,}"}
            assert value in good, (value, source, found)
            checked += 1
    assert checked >= 6 + 4 * len(plan["stages"])
    privacy = {row[0]: row[1] for row in sources(text)}
    assert privacy["largest ε that is allowed"] == number(file["privacy"]["epsilon"])
    assert privacy["δ"] == power_of_ten(float(file["privacy"]["delta"]))
    assert privacy["hospitals that may collude"] == str(file["privacy"]["colluding_sites"])
    assert privacy["hospitals"] == str(len(file["sites"]))


@pytest.mark.parametrize("name", SIZES)
def test_no_number_stands_in_the_text_that_has_no_source(name, tmp_path):
    study = CONFIGS / f"{name}.yaml"
    page, text = fill(study, SIZES[name], tmp_path)
    known = {token for row in sources(text) for token in NUMBER.findall(row[1])}
    stated = study.read_text(encoding="utf-8")
    body = NO_FIGURES.sub("", text.split("## Where every number comes from")[0])
    fields = re.findall(r"^\| ((?:data|features)[.\w]*) \| (.*) \|$", body, re.MULTILINE)
    for path, value in fields:
        body = body.replace(f"| {path} | {value} |", "")
        assert all(
            float(each) in map(float, re.findall(r"[\d.]*\d", stated))
            for each in re.findall(r"(?<![\w.])\d[\d.]*(?![\w.])", value)
        )
    for line in re.findall(r"^(?:title|study|task).*", stated, re.MULTILINE):
        body = body.replace(line.split(":", 1)[1].strip().strip("\"'"), "")
    words = {token for token in NUMBER.findall(body) if token not in known}
    assert words <= set(NUMBER.findall(stated)), words
    shown = " ".join(Page(page).text.split())
    assert all(row[1] in shown and row[2] in shown for row in sources(text))


def test_a_study_of_volumes_says_what_that_means_for_a_person(tmp_path):
    content = yaml.safe_load((CONFIGS / "tensor.yaml").read_text(encoding="utf-8"))
    content = {
        **content,
        "study": "volumes",
        "algorithm": "pca",
        "analysis": {"components": 2},
        "features": [],
        "data": {"resolution": 16, "detrend": "none", "standardize": "none"},
        "privacy": {"unit": "timepoint", "epsilon": 1, "delta": 1e-5, "colluding_sites": 1},
    }
    study = tmp_path / "volumes.yaml"
    study.write_text(yaml.safe_dump(content), encoding="utf-8")
    _, text = fill(study, "60", tmp_path, "--volumes", "120")
    mu = 120 * planned(study, "60", "--volumes", "120")["coalition"]["mu"]
    assert f"For a participant with 120 volumes this is ε = {number(epsilon_of(mu, 1e-5))}" in text
    assert percent(detection_power(mu)) in text


@pytest.mark.parametrize(("name", "each"), [("admm", True), ("group_ica", False)])
def test_what_a_hospital_sends_is_not_hidden_where_its_answer_is_released(name, each, tmp_path):
    _, text = fill(CONFIGS / f"{name}.yaml", "60", tmp_path)
    recipients = text.split("## Recipients")[1].split("## Retention")[0]
    assert ("all parties see each of them" in recipients) == each
    assert ("under a mask" in recipients) != each


def test_vectors_that_are_sent_openly_are_told(tmp_path):
    content = (CONFIGS / "group_ica.yaml").read_text(encoding="utf-8")
    study = tmp_path / "study.yaml"
    study.write_text(content.replace("privacy:", "privacy:\n  boost: 10000", 1), encoding="utf-8")
    assert "Further noise hides what one hospital sends" in fill(study, "60", tmp_path)[1]


def test_what_a_study_is_called_is_text_and_no_markup(tmp_path):
    content = (CONFIGS / "group_ica.yaml").read_text(encoding="utf-8")
    title = "<b>*Rest* | all</b>"
    study = tmp_path / "study.yaml"
    study.write_text(re.sub(r"(?m)^title: .*$", f'title: "{title}"', content), encoding="utf-8")
    page, _ = fill(study, "41", tmp_path)
    assert title in Page(page).text
    assert "b" not in Page(page).tags
    assert r"\<b\>\*Rest\* \| all\</b\>" in (tmp_path / "dpia.md").read_text(encoding="utf-8")


def test_a_study_without_protection_is_not_assessed(tmp_path):
    content = (CONFIGS / "group_ica.yaml").read_text(encoding="utf-8")
    study = tmp_path / "study.yaml"
    study.write_text(content.replace("privacy:", "privacy:\n  scheme: none", 1), encoding="utf-8")
    said = refused("consortium", "dpia", study, "--subjects", "41", "--out", tmp_path / "out")
    assert "'none' is a reference" in said
    assert not (tmp_path / "out").exists()
