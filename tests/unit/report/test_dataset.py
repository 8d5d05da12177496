"""What makes an output folder a BIDS data set."""

import json
from dataclasses import replace
from urllib.parse import unquote

import pytest
import yaml

from consortium import __version__
from consortium.algorithms.base import Result
from consortium.errors import StudyError
from consortium.report.dataset import (
    CRATE,
    ENTRY,
    NO_LICENSE,
    code_url,
    deployment_entry,
    start_dataset,
)
from consortium.report.outputs import write_outputs
from consortium.space.study_space import Space
from consortium.study.reader import parse_study
from tests.support.report_samples import box_grid, finished, finished_maps, sample_study

FIELDS = {
    "basic": {
        "name",
        "data_curators",
        "description",
        "intended_use",
        "data_product_type",
        "data_product_region",
        "data_product_sector",
        "publication_date",
    },
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {
        "privacy_unit",
        "privacy_unit_details",
        "number_of_privacy_units",
        "privacy_parameters",
        "privacy_parameters_details",
    },
    "deployment_model": {
        "model_name",
        "model_name_details",
        "trust_assumptions",
        "actors",
        "release_type",
        "release_type_details",
        "data_source_type",
        "data_source_type_details",
        "access_type",
        "access_type_details",
    },
    "implementation": {
        "preprocessing_and_hyperparameter_tuning",
        "mechanisms",
        "composition",
        "post_processing",
        "justification",
        "utility",
        "additional_information",
    },
    "administrative": {"evidence_sources", "status", "registry_authors", "tier"},
}
"""Of the registry's template."""
SITES = ("aachen", "bergen", "cork")


@pytest.fixture(scope="module")
def run():
    return finished(
        sample_study(license="CC-BY-4.0", authors=("A. Ox",)), Space(box_grid()), Result({})
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    grid = box_grid()
    maps = grid.coordinates[:, :2] ** 3
    folder = tmp_path_factory.mktemp("claims")
    study = sample_study(license="CC-BY-4.0", authors=("A. Ox",))
    write_outputs(folder, finished_maps(study, grid, maps))
    return folder


def test_the_entry_has_the_registry_s_fields_and_the_report_s_numbers(run, folder):
    entry = yaml.safe_load((folder / ENTRY).read_text(encoding="utf-8"))
    assert entry["url_slug"] == "three-hospitals"
    assert entry["deployment"].keys() == FIELDS.keys()
    for part, fields in entry["deployment"].items():
        assert fields.keys() <= FIELDS[part]
    report = run.report
    assert entry["deployment"]["privacy_loss"]["privacy_parameters"] == {
        "epsilon": report.guarantees.coalition.epsilon,
        "delta": report.delta,
    }
    assert entry["deployment"]["privacy_loss"]["number_of_privacy_units"] == 244
    assert entry["deployment"]["administrative"]["status"] == "Draft"


def test_the_entry_counts_the_releases_of_all_rounds(run):
    first = run.report.releases[0]
    for releases, told in (((first,), "1 release"), ((first,) * 3, "3 releases")):
        report = run.report.model_copy(update={"releases": releases})
        entry = deployment_entry(replace(run, report=report))
        assert entry["deployment"]["deployment_model"]["release_type"] == f"{told} of one study"


@pytest.mark.parametrize("change", [{"scheme": "none"}, {"sampler": "seeded (seed 0)"}])
def test_a_run_that_protects_nobody_claims_nothing(run, change):
    assert deployment_entry(run) is not None
    assert deployment_entry(replace(run, report=run.report.model_copy(update=change))) is None


def test_the_catalogue_names_every_file_with_its_size_and_describes_what_it_names(folder):
    graph = json.loads((folder / CRATE).read_text(encoding="utf-8"))["@graph"]
    by_id = {entity["@id"]: entity for entity in graph}
    assert len(by_id) == len(graph)
    root = by_id["./"]
    assert by_id[CRATE]["about"] == {"@id": "./"}
    assert {"name", "description", "datePublished", "license"} <= root.keys()
    parts = {unquote(part["@id"]) for part in root["hasPart"]}
    there = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    sidecars = {name for name in there if name.startswith("tpl-") and name.endswith(".json")}
    assert there - parts == sidecars | {CRATE, ".bidsignore"}
    assert parts <= there
    for part in parts:
        assert int(by_id[part]["contentSize"]) == (folder / part).stat().st_size
    told = [root["license"], *root["contributor"], *root["hasPart"]]
    assert all(each["@id"] in by_id for each in told)


def test_all_that_the_catalogue_describes_is_reached_from_its_root(folder):
    graph = json.loads((folder / CRATE).read_text(encoding="utf-8"))["@graph"]
    by_id = {entity["@id"]: entity for entity in graph}
    (action,) = (each for each in graph if each["@type"] == "CreateAction")
    assert by_id["./"]["mentions"] == [{"@id": action["@id"]}]
    reached, ahead = {CRATE}, ["./"]
    while ahead:
        here = ahead.pop()
        reached.add(here)
        ahead += {*_references(by_id[here])} - reached
    assert reached == by_id.keys()


def _references(entity):
    """Identifiers that an entity's properties lead to."""
    for value in entity.values():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                yield each["@id"]


def test_neither_counts_a_site_s_persons_one_by_one(run, folder):
    text = (folder / CRATE).read_text() + (folder / ENTRY).read_text()
    for site in run.report.sites:
        assert f" {site.units} " not in text


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
        "study: x\nsites: [a, b]\nparticipants: {a: 10, b: 10}\n"
        "algorithm: pca\nanalysis: {components: 1}\n"
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
