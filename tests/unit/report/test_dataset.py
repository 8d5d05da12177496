"""What makes an output folder a BIDS data set."""

import json

import pytest

from consortium import __version__
from consortium.algorithms.base import Result
from consortium.errors import StudyError
from consortium.report.dataset import NO_LICENSE, code_url, start_dataset
from consortium.space.study_space import Space
from consortium.study.reader import parse_study
from tests.support.report_samples import box_grid, finished, sample_study

SITES = ("aachen", "bergen", "cork")


def started(folder, **changes):
    start_dataset(folder, finished(sample_study(**changes), Space(box_grid()), Result({})))
    return json.loads((folder / "dataset_description.json").read_text())


def test_the_description_names_generator_licence_and_sources(tmp_path):
    description = started(tmp_path)
    assert description["DatasetType"] == "derivative"
    assert description["License"] == NO_LICENSE
    assert "Authors" not in description
    (generator,) = description["GeneratedBy"]
    assert generator == {
        "Name": "cape-consortium",
        "Version": __version__,
        "CodeURL": code_url("cape-consortium"),
    }
    assert [source["Site"] for source in description["SourceDatasets"]] == list(SITES)


def test_licence_and_authors_are_those_of_the_study(tmp_path):
    description = started(tmp_path, license="CC-BY-4.0", authors=("A. Ox", "B. Yak"))
    assert (description["License"], description["Authors"]) == ("CC-BY-4.0", ["A. Ox", "B. Yak"])


@pytest.mark.parametrize("line", ["license: |\n  two\n  lines", 'authors: ["\\a"]'])
def test_licence_and_authors_are_lines_for_people(line):
    text = (
        "study: x\nsites: [a, b]\nalgorithm: pca\nanalysis: {components: 1}\n"
        "privacy: {epsilon: 1, delta: 1.0e-5, colluding_sites: 0}\n"
    )
    assert parse_study(text)
    with pytest.raises(StudyError, match=line.split(":")[0]):
        parse_study(f"{text}{line}\n")


def test_a_package_that_names_no_source_has_a_package_url_for_one():
    assert code_url("no-such-package") == f"pkg:generic/no-such-package@{__version__}"
    assert code_url("prefect").startswith("https://")


def test_the_readme_says_what_the_folder_holds_and_what_it_cost(tmp_path):
    started(tmp_path)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert text.startswith("# Resting networks\n")
    assert "over the scans of aachen, bergen, cork" in text
    assert "How strong: Per subject, at δ" in text


def test_a_run_without_noise_is_not_called_private(tmp_path):
    study = sample_study()
    privacy = study.privacy.model_copy(update={"scheme": "none"})
    started(tmp_path, privacy=privacy)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "No protection: This run added no noise." in text
    assert "ε" not in text
