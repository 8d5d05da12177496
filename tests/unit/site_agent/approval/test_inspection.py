"""What a site is shown before it says yes: people, price and refusals; nothing is written."""

import io
import shutil
from datetime import date
from pathlib import Path

import nibabel as nib
import pytest
from rich.console import Console

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.errors import (
    BudgetError,
    DataError,
    ExchangeError,
    PrivacyError,
    SignatureError,
    StudyError,
)
from consortium.membership.consent import Consent, read_consents
from consortium.membership.keys import load_identity
from consortium.membership.roster import read_roster
from consortium.opened_study import open_study
from consortium.privacy.gdp import TWO_READERS, compose, epsilon_of
from consortium.study.plan import promised_mu
from consortium.study.reader import read_study
from site_agent.approval.approval import Terms, approvals, read_papers
from site_agent.approval.decision import say_yes
from site_agent.approval.inspection import Inspection, _who_lacks_what, inspect
from site_agent.data.bids import labels_in
from site_agent.data.survey import SkippedPerson
from site_agent.ledger.ledger import Charge, Ledger
from site_agent.loading.open import open_dataset
from site_agent.loading.summaries import scanned
from site_agent.policy.policy import Allowance, Policy
from tests.support.charges import charged
from tests.support.data_fields import FMRI, TABLE, make_site, study_of
from tests.support.local_consortium import STUDY, build, limit
from tests.support.membership_files import publish
from tests.support.tiny_images import without_orientation


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("checking") / "place").root


@pytest.fixture
def place(original: Path, tmp_path: Path) -> DemoFolders:
    """A copy in which east has approved nothing; its data set must stay as it is."""
    target = tmp_path / "place"
    shutil.copytree(original, target)
    for file in target.glob("hospitals/*/agent/site.yaml"):
        file.write_text(file.read_text().replace(str(original), str(target)))
    found = DemoFolders(target)
    shutil.rmtree(found.site("east") / "approved")
    return found


def look(place: DemoFolders) -> Inspection:
    return inspect(place.site("east"), place.files.study, place.files.roster)


def shown(found: Inspection) -> str:
    out = io.StringIO()
    found.show(Console(file=out, width=200))
    return out.getvalue()


def images(place: DemoFolders) -> list[Path]:
    return sorted(place.dataset("east").glob("sub-*/**/*bold.nii.gz"))


def shorten(image: Path, volumes: int) -> None:
    """Cut a person's series."""
    scan = nib.load(image)
    nib.save(nib.Nifti1Image(scan.get_fdata()[..., :volumes], scan.affine), image)


def spend(place: DemoFolders, study: str = "small", mu: float | None = None) -> float:
    """Charge an earlier study to east's data set; returns its μ."""
    parsed = read_study(place.files.study)
    price = promised_mu(parsed) if mu is None else mu
    charge = Charge(
        dataset=str(place.dataset("east").resolve()),
        study=study,
        run=f"{study}-0001",
        round=1,
        stage="pca",
        statistic="second_moment",
        unit="subject",
        mu=price,
        site=load_identity(place.site("east")).public.hex(),
        centre=read_roster(place.files.roster).centre.hex(),
        query="00" * 32,
        outsider=0.25,
    )
    charged(Ledger(place.site("east") / "ledger.sqlite"), charge, labels_in(place.dataset("east")))
    return price


def _content(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = [each for each in folder.rglob("*") if each.is_file()]
    return {str(f): (f.stat().st_mtime_ns, f.read_bytes()) for f in files}


def test_the_owner_is_told_of_scans_that_are_larger_than_the_memory(
    place: DemoFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = place.site("east") / "site.yaml"
    lines = [line for line in file.read_text().splitlines() if not line.startswith("memory:")]
    file.write_text("\n".join([*lines, "memory: 100 MB"]) + "\n")
    (about_nominal,) = look(place).notes
    assert "3 participants here" in about_nominal
    monkeypatch.setattr("site_agent.images.preprocess._PREPARED", 1e9)
    found = look(place)
    assert "more than memory 100 MB in site.yaml; one is prepared at a time" in shown(found)
    assert found.problems == ()  # a refusal would tell others


def test_an_ordinary_study_qualifies_and_nothing_is_written(place: DemoFolders) -> None:
    before, exchange = _content(place.dataset("east")), _content(place.root / "exchange")
    found = look(place)
    assert found.lengths == (24, 24, 24)
    assert found.skipped == found.problems == ()
    assert _content(place.dataset("east")) == before
    assert _content(place.root / "exchange") == exchange
    assert Ledger(place.site("east") / "ledger.sqlite").entries() == []
    assert approvals(place.site("east"), load_identity(place.site("east"))) == []
    text = shown(found)
    assert "3 participants qualify, with 72 volumes." in text
    assert "One run costs ε ≤ 8 against the centre and 1 colluding site" in text
    assert "the coalition is ε = 0 before and ε = 8 after one run, and 20 is allowed" in text
    assert "Against outsiders it is ε = 0 before and ε = 6.73 after" in text
    assert TWO_READERS in text
    assert "second_moment" in text
    assert "rotation" in text


def test_the_price_stands_on_what_was_spent(place: DemoFolders) -> None:
    mu = compose([spend(place, "earlier", 0.5), spend(place, "other", 0.25)])
    found = look(place)
    assert found.spent.study == 0.0
    assert found.spent.total == pytest.approx(mu)
    after = epsilon_of(compose([mu, found.price]), 1e-5)
    expected = f"ε = {epsilon_of(mu, 1e-5):.3g} before and ε = {after:.3g} after one run"
    assert expected in shown(found)
    assert found.problems == ()


def test_an_image_without_orientation_takes_part_if_the_site_accepts_it(
    place: DemoFolders,
) -> None:
    without_orientation(images(place)[0])
    found = look(place)
    assert found.lengths == (24, 24)
    assert "sform_code and qform_code are both 0" in shown(found)
    file = place.site("east") / "site.yaml"
    lines = [line for line in file.read_text().splitlines() if "accept_unoriented:" not in line]
    file.write_text("\n".join([*lines, "accept_unoriented: true"]) + "\n")
    assert look(place).lengths == (24, 24, 24)


def test_who_is_left_out_is_told_with_the_reason(place: DemoFolders) -> None:
    text = place.files.study.read_text().replace(", volumes: 24", "")
    place.files.study.write_text(text)
    publish(place, read_roster(place.files.roster))
    short, gone, *_ = images(place)
    shorten(short, 9)
    gone.unlink()
    found = look(place)
    assert found.lengths == (24,)
    assert sorted(each.reason for each in found.skipped) == ["no-image", "too-few-volumes"]
    said = shown(found)
    assert "1 participants qualify" in said
    assert "1 left out: no-image" in said
    assert "1 left out: too-few-volumes" in said
    assert found.skipped[0].label in said


FEATURES = """\
study: small
sites: [north, east, south, west]
participants: {north: 10, east: 10, south: 10, west: 10}
data: {resolution: 30, minimum_volumes: 10}
features:
- {name: who, source: table, columns: {age: {low: 18, high: 90}}}
- {name: networks, source: fmri}
privacy: {epsilon: 8, delta: 1.0e-5, colluding_sites: 1}
algorithm: average
timing: {join: 4, answer: 4}
"""


def test_a_study_of_features_tells_who_has_all_views(place: DemoFolders) -> None:
    place.files.study.write_text(FEATURES)
    publish(place, read_roster(place.files.roster))
    table = place.dataset("east") / "participants.tsv"
    first, second, third = table.read_text().split()[1:]
    table.write_text(f"participant_id\tage\n{first}\t40\n{second}\tn/a\n{third}\t50\n")
    found = look(place)
    assert found.lengths == (1, 1)
    assert found.problems == ()
    text = shown(found)
    assert "2 participants qualify with all views (who, networks)." in text
    assert " volumes." not in text
    assert "1 left out: no-view" in text
    assert f"{second.removeprefix('sub-')}: {table}: column age has no value." in text
    table.unlink()
    with pytest.raises(DataError, match=r"participants\.tsv: a table is required here"):
        look(place)


def test_what_many_lack_is_one_line_with_their_number(place: DemoFolders) -> None:
    levels = "{diagnosis: {levels: [control, patient]}}"
    place.files.study.write_text(FEATURES.replace("{age: {low: 18, high: 90}}", levels))
    publish(place, read_roster(place.files.roster))
    table = place.dataset("east") / "participants.tsv"
    persons = table.read_text().split()[1:]
    lines = [f"{person}\tPatient" for person in persons]  # as a misspelt level
    table.write_text("\n".join(["participant_id\tdiagnosis", *lines]) + "\n")
    text = shown(look(place))
    some = ", ".join(person.removeprefix("sub-") for person in persons)
    lack = (
        "column diagnosis has a value that is not a level of the study (control, patient) and is "
        "not named in aliases of site.yaml."
    )
    assert f"  3 participants ({some}): {table}: {lack}" in text
    assert sum(lack in line for line in text.splitlines()) == 1
    (told,) = (line for line in text.splitlines() if "Patient" in line and "WARNING" in line)
    assert "column 'diagnosis' has 'Patient' for 3 participants" in told
    assert "levels: {patient: [Patient]}" in told


def test_persons_who_lack_the_same_in_folders_of_their_own_are_one_line_too() -> None:
    skipped = [
        SkippedPerson(f"{k:02d}", "no-image", f"/data/sub-{k:02d} holds no image.")
        for k in range(8)
    ]
    alone = SkippedPerson("99", "no-image", "/data/sub-99 has ten volumes.")
    assert list(_who_lacks_what([*skipped, alone])) == [
        "8 participants (00, 01, 02, 03, 04, …): /data/sub-* holds no image.",
        "99: /data/sub-99 has ten volumes.",
    ]


def leave_out(place: DemoFolders, *lines: str) -> Path:
    """Give east a table of its own of who is in no study."""
    site = place.site("east")
    (site / "out.tsv").write_text("\n".join(["participant_id\treason", *lines]) + "\n")
    config = site / "site.yaml"
    kept = [x for x in config.read_text().splitlines() if not x.startswith("left_out:")]
    config.write_text("\n".join([*kept, "left_out: out.tsv"]) + "\n")
    return site / "out.tsv"


def test_whom_the_hospital_leaves_out_is_in_no_study(place: DemoFolders) -> None:
    first = images(place)[0]
    first.write_bytes(first.read_bytes()[:2000])  # nobody need mend it
    label = first.name.split("_")[0]
    table = leave_out(place, f"{label}\twithdrew consent", "sub-typo\tmoved away")
    found = look(place)
    assert len(found.lengths) == 2
    assert found.problems == ()
    text = shown(found)
    assert "1 left out: left-out-here" in text
    assert f"{label} is excluded by {table}: withdrew consent" in text
    assert "1 row ('typo') matches none" in text
    leave_out(place, f"{label}\t")
    with pytest.raises(DataError, match="must have a reason"):
        look(place)


def test_whom_a_study_does_not_choose_is_named(place: DemoFolders) -> None:
    rules = "persons: {age: {low: 40}}, minimum_volumes"
    place.files.study.write_text(place.files.study.read_text().replace("minimum_volumes", rules))
    publish(place, read_roster(place.files.roster))
    table = place.dataset("east") / "participants.tsv"
    first, second, third = table.read_text().split()[1:]
    table.write_text(f"participant_id\tage\n{first}\t40\n{second}\t39\n{third}\t50\n")
    found = look(place)
    assert len(found.lengths) == 2
    assert found.problems == ()
    assert f"{second} does not fit the study's rules for age; left out." in shown(found)
    agree(place)


@pytest.mark.parametrize("header", [True, False])
def test_who_has_unusable_files_is_left_out_and_named(place: DemoFolders, header: bool) -> None:
    image = images(place)[0]
    image.write_bytes(image.read_bytes()[: 200 if header else 2000])
    found = look(place)
    assert found.problems == ()
    assert len(found.lengths) == 2
    assert "NOTE: 1 participant is left out as unusable" in shown(found)
    assert image.name in shown(found)


def test_nobody_at_all_is_a_refusal(place: DemoFolders) -> None:
    place.files.study.write_text(
        place.files.study.read_text().replace(", volumes: 24}", "}\nvolumes: 24")
    )
    publish(place, read_roster(place.files.roster))
    for image in images(place):
        shorten(image, 9)
    found = look(place)
    assert found.lengths == ()
    assert "3 left out: too-few-volumes" in shown(found)
    assert "REFUSED: All 3 subjects are left out" in shown(found)
    for image in images(place):
        image.unlink()
    (problem,) = look(place).problems
    assert "Check the path" in problem


REFUSED = {
    "subject.study": Policy(subject=Allowance(study=7.5, total=20)),
    "subject.total": Policy(subject=Allowance(study=20, total=7.5)),
    "statistics": Policy(statistics=("second_moment",)),
}


@pytest.mark.parametrize("field", REFUSED)
def test_what_the_policy_refuses_is_named(field: str, place: DemoFolders) -> None:
    REFUSED[field].save(place.site("east"))
    found = look(place)
    assert any(f"field '{field}'" in problem for problem in found.problems)
    assert f"REFUSED: policy.yaml: field '{field}'" in shown(found)


def test_what_was_spent_counts_against_the_policy(place: DemoFolders) -> None:
    assert look(place).problems == ()
    spend(place)
    found = look(place)
    assert "3 left out: over-limit" in shown(found)
    (nobody,) = found.problems
    assert "have no budget left" in nobody


def test_numbers_far_from_the_nominal_ones_are_warned_of(place: DemoFolders) -> None:
    (warning,) = look(place).warnings
    assert "3 participants here, and the study states a nominal number of 10." in warning
    text = place.files.study.read_text().replace("east: 10", "east: 1") + "volumes: 60\n"
    place.files.study.write_text(text)
    publish(place, read_roster(place.files.roster))
    people, volumes = look(place).warnings
    assert "2 of them take part, chosen at random, and all are charged." in people
    assert "24 volumes per participant here, and the study states" in volumes
    place.files.study.write_text(text.replace("east: 1", "east: 4").replace("60", "30"))
    publish(place, read_roster(place.files.roster))
    assert look(place).warnings == ()


def test_what_is_not_signed_is_not_looked_at(place: DemoFolders) -> None:
    place.files.study.write_text(STUDY + "# more\n")
    with pytest.raises((SignatureError, StudyError)):
        look(place)


# -- the yes ------------------------------------------------------------------------------


def agree(
    place: DemoFolders, runs: int = 1, until: date | None = None, epsilon: float | None = None
):
    folder, files = place.site("east"), place.files
    papers = read_papers(folder, "east", load_identity(folder).public, files.study, files.roster)
    return say_yes(folder, papers, Terms(runs, epsilon, until), date(2026, 11, 21))


def test_a_yes_until_a_day_that_has_passed_is_no_yes(tmp_path: Path) -> None:
    place = build(tmp_path / "place")
    for record in (place.site("east") / "approved").glob("*.json"):
        record.unlink()
    with pytest.raises(StudyError, match="--until 2026-11-20 has passed"):
        agree(place, until=date(2026, 11, 20))
    assert not list((place.site("east") / "approved").glob("*.json"))
    agree(place, until=date(2026, 11, 21))


def _consent(place: DemoFolders) -> Consent | None:
    study, keys = read_study(place.files.study), read_roster(place.files.roster).keys
    return read_consents(place.files.open_exchange(), study, keys)["east"]


def test_a_yes_is_recorded_and_the_coordinator_told(place: DemoFolders) -> None:
    approval, trouble = agree(place, until=date(2027, 1, 1), epsilon=8.5)
    assert trouble is None
    assert approvals(place.site("east"), load_identity(place.site("east"))) == [approval]
    expected = Consent("east", approval.study.digest, 1, 8.5, date(2027, 1, 1))
    assert _consent(place) == expected


def test_runs_are_counted_from_now_on(place: DemoFolders) -> None:
    limit(place, "east", 50.0)
    spend(place)
    approval, _ = agree(place, runs=2)
    assert approval.terms.runs == 3


def test_a_yes_beyond_the_policy_is_no_yes(place: DemoFolders) -> None:
    limit(place, "east", 7.5)
    with pytest.raises(BudgetError, match=r"subject\.study"):
        agree(place)
    Policy(fewest_sites=5).save(place.site("east"))
    with pytest.raises(PrivacyError, match="fewest_sites"):
        agree(place)
    assert approvals(place.site("east"), load_identity(place.site("east"))) == []
    assert _consent(place) is None


def test_a_yes_to_more_runs_than_the_policy_ever_lets_is_no_yes(place: DemoFolders) -> None:
    with pytest.raises(BudgetError, match="for 2 runs"):
        agree(place, runs=2)
    approval, _ = agree(place, runs=2, epsilon=9.0)  # its own bound ends it after the first
    assert approval.terms.runs == 2


def test_a_yes_without_exchange_is_a_yes_that_is_told_later(place: DemoFolders) -> None:
    shutil.rmtree(place.root / "exchange")
    (place.root / "exchange").write_text("in the way")
    approval, trouble = agree(place)
    assert isinstance(trouble, ExchangeError)
    assert approvals(place.site("east"), load_identity(place.site("east"))) == [approval]


@pytest.mark.parametrize("wrong", [{"runs": 0}, {"epsilon": 0.0}, {"epsilon": float("inf")}])
def test_terms_that_allow_nothing_are_refused_before_anything_is_written(
    wrong: dict[str, float], place: DemoFolders
) -> None:
    with pytest.raises(StudyError, match=r"--runs: must be|--epsilon: must be"):
        agree(place, **wrong)
    assert approvals(place.site("east"), load_identity(place.site("east"))) == []


def test_who_is_scanned_is_looked_at_where_a_view_measures_series(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    single = FMRI | {"measure": "image", "image": "statmap"}
    for views, many in (([FMRI], 2), ([TABLE], 0), ([single], 0), ([], 2)):
        study = study_of(views)
        data = open_dataset(site / "bids", open_study(study, site), site / "cache")
        assert len(scanned(data)) == many
