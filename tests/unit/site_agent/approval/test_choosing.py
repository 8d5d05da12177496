"""How many persons a study's rules take, and which numbers a site does not give away."""

from __future__ import annotations

from pathlib import Path

import pytest

from consortium.study.spec import Study
from site_agent.approval.choosing import choice_of
from site_agent.config import SiteConfig
from site_agent.policy.policy import Policy
from site_agent.policy.refusals import Choice, Request, refusals
from tests.support.cases import make_study

FIELD = "field 'fewest_subjects_chosen'"


def study(name: str = "small", **persons) -> Study:
    made = make_study("ica", {"components": 2})
    data = made.data.model_validate({**made.data.model_dump(), "persons": persons})
    return made.model_copy(update={"study": name, "data": data})


def ages(low: float, high: float) -> dict:
    return {"age": {"low": low, "high": high}}


@pytest.fixture
def config(tmp_path: Path) -> SiteConfig:
    """Forty persons, one of each age from 18."""
    lines = ["participant_id\tage", *(f"sub-{n:02d}\t{18 + n}" for n in range(40))]
    (tmp_path / "participants.tsv").write_text("\n".join(lines))
    return SiteConfig(name="east", dataset=tmp_path, exchange="x")


def choice(config: SiteConfig, asked: Study, *others: Study) -> Choice:
    return choice_of(config, asked.data.persons, others)


def said(asked: Study, found: Choice, policy: Policy | None = None) -> list[str]:
    request = Request("east", choice=found)
    return [str(error) for error in refusals(policy or Policy(), asked, None, request)]


def test_persons_are_counted_by_their_lines_without_those_left_out(
    config: SiteConfig, tmp_path: Path
) -> None:
    asked = study(**ages(18, 37))
    assert choice(config, asked) == Choice(20, 40)
    table = tmp_path / "out.tsv"
    table.write_text("participant_id\treason\n00\twithdrew\n39\twithdrew\n")
    without = config.model_copy(update={"left_out": table})
    assert choice(without, asked) == Choice(19, 38)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (18, 37, ""),
        (18, 100, ""),
        (18, 47, ""),
        (50, 50, "1 persons by its rules"),
        (18, 26, "9 persons by its rules"),
        (18, 56, "all but 1 persons by its rules"),
    ],
)
def test_rules_that_fit_few_or_spare_few_are_refused(
    config: SiteConfig, low: float, high: float, expected: str
) -> None:
    asked = study(**ages(low, high))
    found = said(asked, choice(config, asked))
    assert len(found) == bool(expected)
    assert all(FIELD in line and expected in line for line in found)
    assert said(asked, choice(config, asked), Policy(fewest_subjects_chosen=1)) == []


def test_two_studies_whose_rules_differ_by_a_person_are_not_both_answered(
    config: SiteConfig,
) -> None:
    first, near, far = study("first", **ages(18, 37)), ages(18, 38), ages(18, 47)
    (line,) = said(study("next", **near), choice(config, study("next", **near), first))
    assert "differ from those of 'first' by 1" in line
    assert said(study("next", **far), choice(config, study("next", **far), first)) == []
    again = study("next", **ages(18, 37))
    assert choice(config, again, first).apart == ()
    other_words = study("next", **ages(17, 37.5))
    assert said(other_words, choice(config, other_words, first)) == []


def test_a_study_that_chose_by_a_column_that_is_gone_is_not_compared(config: SiteConfig) -> None:
    gone = study("gone", sex={"levels": ["F"]})
    assert choice(config, study(**ages(18, 37)), gone).apart == ()


def test_a_site_with_few_persons_refuses_before_it_tells_how_many() -> None:
    asked = make_study("ica", {"components": 2})
    chosen = asked.model_copy(update={"data": asked.data.model_copy(update={"session": "a"})})

    def told(which: Study, persons: int, policy: Policy) -> list[str]:
        return [str(e) for e in refusals(policy, which, None, Request("east", persons=persons))]

    assert told(asked, 9, Policy()) == []
    assert told(chosen, 10, Policy()) == []
    assert FIELD in told(chosen, 9, Policy())[0]
    assert "fewest_subjects_here" in told(asked, 9, Policy(fewest_subjects_here=10))[0]
