"""Credit, and the methods as a text for a paper."""

import re

import pytest

from consortium.algorithms import REGISTRY
from consortium.algorithms.base import Captions, Result
from consortium.report.outputs import escape_markdown, write_credit, write_page
from consortium.report.references import OF_ANALYSIS, REFERENCES, bibtex, citation_keys
from consortium.report.sections.methods import paragraphs
from consortium.space.study_space import Space
from consortium.study.data_section import DataSection
from tests.support.report_samples import box_grid, finished, sample_report, sample_study


def test_every_analysis_and_key_that_is_named_exists():
    assert OF_ANALYSIS.keys() <= REGISTRY.keys()
    assert {key for keys in OF_ANALYSIS.values() for key in keys} <= REFERENCES.keys()


@pytest.mark.parametrize("scheme", ["cape", "local", "none"])
def test_a_text_cites_just_what_its_bibliography_lists(scheme, tmp_path):
    study = sample_study()
    privacy = study.privacy.model_copy(update={"scheme": scheme})
    study = study.model_copy(update={"privacy": privacy})
    text, entries = (
        path.read_text(encoding="utf-8")
        for path in write_credit(tmp_path, finished(study, Space(box_grid()), Result({})))
    )
    cited = set(re.findall(r"@([a-z-]+)", text))
    assert cited == set(re.findall(r"^@\w+\{([a-z-]+),$", entries, re.M))
    assert ("cape" in cited) == (scheme == "cape")
    assert ("secure-aggregation" in cited) == (scheme == "cape")
    assert ("gaussian-dp" in cited) == (scheme != "none")


def test_the_words_of_an_analysis_are_in_the_methods_before_what_all_have_in_common(tmp_path):
    words = "Each of 20 outcomes was regressed on age_1."
    result = Result({}, captions=Captions(methods=words))
    path, _ = write_credit(tmp_path, finished(sample_study(), Space(box_grid()), result))
    text = path.read_text(encoding="utf-8")
    own, common = (
        text.index(escape_markdown(words)),
        text.index("The sites' data were analysed together"),
    )
    assert own < common
    page = write_page(tmp_path, finished(sample_study(), Space(box_grid()), result))
    assert words in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"volumes": 80}, "Every participant's series has 80 volumes"),
        ({"minimum_volumes": 120}, "Participants with fewer than 120 volumes were left out"),
        ({"session": "01", "runs": "first"}, "(session 01, the first recording that fits)"),
        ({}, "repetition times are those of the sites and are not released."),
        (
            {"persons": {"group": {"levels": ["a", "b"]}, "age": {"low": 18, "high": 65}}},
            "Participants were included by group: a, b; age: 18 to 65.",
        ),
        ({"persons": {"age": {"low": 18}}}, "Participants were included by age: at least 18."),
    ],
)
def test_methods_say_of_participants_and_series_what_the_study_states(data, said):
    study = sample_study()
    section = DataSection.model_validate({**study.data.model_dump(), **data})
    study = study.model_copy(update={"data": section})
    text = " ".join(paragraphs(finished(study, Space(box_grid()), Result({}))))
    assert said in text
    assert ("included by" in text) == ("persons" in data)


def test_a_regression_cites_its_model_its_tests_and_its_correction():
    study = sample_study().model_copy(update={"algorithm": "glm"})
    keys = citation_keys(study, sample_report(study), images=False)["The analysis is based on"]
    assert set(keys) == {"linear-model", "satterthwaite", "false-discovery"}


def test_images_are_credited_where_there_are_any():
    study = sample_study()
    keys = [citation_keys(study, sample_report(study), images=images) for images in (True, False)]
    assert [any("bids" in each for each in found.values()) for found in keys] == [True, False]


@pytest.mark.parametrize("key", sorted(REFERENCES))
def test_an_entry_is_whole(key):
    entry = bibtex([key])
    assert entry.count("{") == entry.count("}")
    assert re.search(r"year = \{(19|20)\d\d\}", entry)
    assert re.search(r"(journal|booktitle) = \{.+\}", entry)
    assert "–" not in entry
    reference = REFERENCES[key]
    assert str(reference.year) in reference.cited
    assert reference.text.startswith(reference.authors.split(",")[0])


def test_what_a_study_says_is_no_markup_and_no_citation_in_the_text():
    assert escape_markdown("trans_*, <b> @key [x](y)") == r"trans\_\*, \<b\> \@key \[x\](y)"
