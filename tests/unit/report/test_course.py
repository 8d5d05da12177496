"""What happened, beside what was planned."""

from types import SimpleNamespace

import pytest

from consortium.algorithms.base import Extent
from consortium.report.course import course, format_duration, format_size
from consortium.report.finished import Finished
from consortium.report.sections import course_section
from consortium.study.plan import make_plan
from tests.support.report_samples import ROUNDS, UNITS, sample_report, sample_study


@pytest.fixture(scope="module")
def study():
    base = sample_study()
    privacy = base.privacy.model_copy(update={"dropouts": 1, "colluding_sites": 0})
    return base.model_copy(update={"privacy": privacy})


@pytest.fixture(scope="module")
def plan(study):
    return make_plan(study, Extent(712, 712).shape(UNITS, UNITS, "subject"))


def steps(study, plan, report, seconds=None):
    return {
        what: (planned, happened)
        for what, planned, happened in course(study, plan, report, seconds)
    }


def of_plan(study, plan, missing=()):
    """A report of the plan's one round, with some sites missing."""
    report = sample_report(study)
    stage = plan.stages[0]
    survivors = tuple(site for site in study.sites if site not in missing)
    release = report.releases[0].model_copy(update={"stage": stage.name, "survivors": survivors})
    return report.model_copy(update={"releases": (release,)})


def test_a_run_as_planned_is_told_beside_its_plan(study, plan):
    told = steps(study, plan, of_plan(study, plan), 125.0)
    assert told["Sites"] == ("3", "3")
    assert told["Sites missing from a round"] == ("at most 1", "none")
    assert told["Rounds"] == (f"at most {plan.rounds}", "1")
    assert told["Numbers released"][1] == "712"
    assert told["Sent by a site (payload)"][1] == format_size(plan.stages[0].message_bytes)
    assert told["ε against the coalition"] == ("at most 4", "3.91")
    assert told["Time"][1] == "2 min"


def test_a_missing_site_is_named_with_how_often_and_has_sent_nothing(study, plan):
    told = steps(study, plan, of_plan(study, plan, missing=("cork",)))
    assert told["Sites missing from a round"][1] == "at most 1 (cork 1 time)"
    assert told["Sent by a site (payload)"][1].startswith("0 bytes to ")
    assert "Time" not in told


def test_sites_that_were_not_there_when_the_run_began_are_named(study):
    larger = study.model_copy(update={"sites": (*study.sites, "dublin"), "quorum": 3})
    plan = make_plan(study, Extent(712, 712).shape(UNITS, UNITS, "subject"))
    told = steps(larger, plan, of_plan(study, plan))
    assert told["Sites"] == ("4, at least 3", "3; without dublin")


def test_answers_that_are_released_each_count_each(study, plan):
    report = of_plan(study, plan)
    (release,) = report.releases
    local = release.sigma_local
    each = release.model_copy(update={"sigma_aggregate": max(local)})
    told = steps(study, plan, report.model_copy(update={"releases": (each,)}))
    assert told["Numbers released"][1] == f"{3 * 712:,}"


def test_a_page_without_a_plan_has_no_such_part(study):
    assert ROUNDS
    assert course_section(SimpleNamespace(course=())) is None
    assert "course" in Finished.__dataclass_fields__


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59, "59 s"), (61, "1 min"), (7500, "2 h 5 min")]
)
def test_a_time_is_written_for_people(seconds, text):
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("many", "text"), [(1, "1 byte"), (1024, "1 KiB"), (1310720, "1.25 MiB"), (3 << 30, "3 GiB")]
)
def test_a_size_is_written_for_people(many, text):
    assert format_size(many) == text
