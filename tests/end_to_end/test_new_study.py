"""A first study written by a command: complete, commented, and never over another."""

import re
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from consortium.coordinator.new_study import DRAFTS, QUESTIONS, option_name
from consortium.membership.roster import read_roster
from consortium.membership.signed_study import read_signed
from consortium.report.outputs import write_outputs
from consortium.space.grid import template_grid
from consortium.study.reader import parse_study, read_study
from consortium.study.spec import Study
from consortium.views.table import REGIONS
from tests.support.command_line import enter, refused
from tests.support.membership_files import papers
from tests.support.report_samples import blob, finished_maps, sample_study

SITES = "north,east,south,west"
TABLE = {"column": "diagnosis", "limits": "1,4.5"}
MORE = {
    "group_ica": {},
    "ica": {"epsilon": "8"},
    "glm": {**TABLE, "groups": "60,40", "outcomes": "region[1-20]"},
    "describe": {"outcomes": "age", "limits": "18,98"},
}


def options(algorithm: str, **given: str) -> list[str]:
    words = ["--algorithm", algorithm]
    for name, value in {"sites": SITES, **MORE[algorithm], **given}.items():
        words += [f"--{name.replace('_', '-')}", value]
    return words


def test_norms_are_learned_unless_a_deviation_is_said(tmp_path: Path) -> None:
    for number, more in enumerate(({}, {"deviation": "0.2"})):
        study = tmp_path / f"s{number}.yaml"
        assert enter("consortium", "new-study", study, *options("glm", **more)).code == 0
        stated = read_study(study).analysis.norms.deviation
        assert stated == (0.2 if more else None)


def test_all_regions_are_one_option(tmp_path: Path) -> None:
    study, outcomes = tmp_path / "thick.yaml", "lh_*_thickness,rh_*_thickness,eTIV"
    assert enter("consortium", "new-study", study, *options("glm", outcomes=outcomes)).code == 0
    assert len(read_study(study).features[0].labels) == 69
    assert len(study.read_text().splitlines()) < 50


def _own_table(folder: Path, *more: str) -> Path:
    """Forty persons, with numbers that must not be found in any study."""
    lines = ["participant_id\tdx\tsex\tage\tlh_insula\tlh_cuneus\tnote"]
    for n in range(40):
        pair = f"{2.7131 + n / 1000}\t{1.8173 + n / 1000}"
        dx, sex = ("SCZ", "HC")[n % 2], "FM"[n // 20]
        lines.append(f"sub-{n:02}\t{dx}\t{sex}\t{20 + n}\t{pair}\t{'a' if n else 'b'}")
    table = folder / "participants.tsv"
    table.write_text("\n".join([*lines, *more]) + "\n")
    return table


def test_names_are_detected_in_an_own_table_and_no_number_of_it_is_written(tmp_path: Path) -> None:
    study, table = tmp_path / "thick.yaml", _own_table(tmp_path)
    words = ("--algorithm", "glm", "--sites", SITES, "--detect", table)
    said = enter("consortium", "new-study", study, *words, "--groups", "60,40", "--limits", "1,4.5")
    assert (said.code, said.err) == (0, "")
    assert "Columns with two levels: dx: HC or SCZ; sex: F or M." in said.out
    assert "lh_insula: mean 2.73, deviation 0.0115 here." in said.out
    assert "No number of this table is written into the study" in said.out
    made, text = read_study(study), study.read_text()
    assert made.features[0].labels == ("lh_insula", "lh_cuneus")
    assert "HC" in text
    assert made.analysis.norms.location is None
    assert made.analysis.norms.deviation is None
    assert not [own for own in ("2.71", "1.81", "2.73", "1.83", "0.01154", "39.5") if own in text]


def test_what_is_not_a_name_is_asked_for_and_not_taken_from_the_table(tmp_path: Path) -> None:
    study, table = tmp_path / "thick.yaml", _own_table(tmp_path)
    words = ("--algorithm", "glm", "--sites", SITES, "--detect", table)
    assert "needs --groups, --limits" in _sorted(refused("consortium", "new-study", study, *words))
    table.write_text(table.read_text().replace("\tsex", "\tclinic"))
    said = refused("consortium", "new-study", study, *words)
    assert "Columns with two levels in the table: dx, clinic. Say by --column" in said
    other = ("--algorithm", "ica", "--sites", SITES, "--detect", table)
    assert "got --algorithm ica" in refused("consortium", "new-study", study, *other)
    assert not study.exists()


def test_names_for_a_description_are_detected_also(tmp_path: Path) -> None:
    study, table = tmp_path / "table1.yaml", _own_table(tmp_path)
    words = ("--algorithm", "describe", "--sites", SITES, "--detect", table, "--limits", "1,90")
    said = enter("consortium", "new-study", study, *words)
    assert (said.code, said.err) == (0, "")
    measures, group = read_study(study).features
    assert measures.labels == ("age", "lh_insula", "lh_cuneus")
    assert group.labels == ("dx",)
    assert read_study(study).analysis.groups == "dx"


def test_a_description_by_group_has_the_groups_that_were_given(tmp_path: Path) -> None:
    study = tmp_path / "table1.yaml"
    words = options("describe", column="dx", levels="HC,SCZ")
    assert enter("consortium", "new-study", study, *words).code == 0
    made = read_study(study)
    assert made.analysis.groups == "dx"
    assert made.features[1].columns["dx"].levels == ("HC", "SCZ")


@pytest.mark.parametrize("algorithm", DRAFTS)
def test_an_option_that_a_draft_does_not_use_is_refused(algorithm: str, tmp_path: Path) -> None:
    study, said = tmp_path / "study.yaml", set()
    plain = {name: "given" for name in QUESTIONS if name not in DRAFTS[algorithm]}
    for name, value in plain.items():
        words = options(algorithm, **{name: value})
        if (name, algorithm) in (("column", "describe"), ("components", "glm")):
            continue  # these choose another draft
        said.add(name)
        answer = refused("consortium", "new-study", study, *words)
        assert answer.startswith(f"consortium: {option_name(name)}: the draft of {algorithm}")
        assert not study.exists()
    assert said


def _sorted(said: str) -> str:
    """What a new study needs, in the alphabet's order."""
    needs = re.search(r"needs ([^.]*)\.", said)
    return f"needs {', '.join(sorted(needs[1].split(', ')))}" if needs else said


@pytest.mark.parametrize("algorithm", DRAFTS)
def test_a_new_study_passes_plan(algorithm: str, tmp_path: Path) -> None:
    study = tmp_path / "rest-2026.yaml"
    said = enter("consortium", "new-study", study, *options(algorithm))
    assert (said.code, said.err) == (0, "")
    assert read_study(study).study == "rest-2026"
    text = study.read_text(encoding="utf-8")
    assert all("#" in line for line in text.splitlines() if line.startswith("  epsilon"))
    said = enter("consortium", "plan", study, "--subjects", "100")
    assert (said.code, said.err) == (0, "")
    verdict, *rest = said.out.splitlines()
    assert re.search("One participant's privacy loss: ε ≤ [48] against the centre", verdict)
    assert verdict.startswith(
        ("Expected ", "The iterative analysis", "A decomposed tensor", "The findings have no")
    )
    assert 1 <= sum(line.startswith("│") for line in rest) <= 10
    assert "noise σ" not in said.out
    details = enter("consortium", "plan", study, "--subjects", "100", "--details").out
    assert details.startswith("\n".join(said.out.splitlines()[:-1]))
    assert "noise σ" in details


def test_it_is_said_before_a_run_whether_anybody_can_check_it(tmp_path: Path) -> None:
    study = tmp_path / "rest.yaml"
    said = enter("consortium", "new-study", study, *options("group_ica")).out
    hidden, shown = "Only the coordinator can check", "Any party can check the result"
    assert shown in " ".join(said.split())
    assert shown in enter("consortium", "plan", study, "--subjects", "100").out
    numeric = study.read_text().replace("privacy:\n", "privacy:\n  boost: 10000\n")
    study.write_text(numeric)
    assert hidden in enter("consortium", "plan", study, "--subjects", "100").out
    study.write_text(numeric + "verification: {open: true}\n")
    told = enter("consortium", "plan", study, "--subjects", "100").out
    assert shown in told
    assert hidden not in told


def test_what_was_written_before_is_left(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text("mine")
    said = refused("consortium", "new-study", study, *options("group_ica"))
    assert "exists already and is not changed" in said
    assert study.read_text() == "mine"


def test_what_no_option_says_is_asked_at_a_terminal(tmp_path: Path) -> None:
    study = tmp_path / "ages.yaml"
    words = ("--algorithm", "describe", "--outcomes", "age", "--limits", "18,98")
    said = refused("consortium", "new-study", study, *words)
    assert "needs --sites" in said
    typed = "How old they are\na,b,c\n2\n\n\n\n\n"
    done = enter("consortium", "new-study", study, *words, answer=typed, terminal=True)
    assert (done.code, done.err) == (0, "")
    made = read_study(study)
    assert (made.title, made.sites) == ("How old they are", ("a", "b", "c"))
    assert (made.privacy.epsilon, made.privacy.delta) == (2.0, 1e-5)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"epsilon": "much"}, "--epsilon: must be a number, got 'much'"),
        ({"epsilon": "-1"}, "privacy.epsilon must be"),
        ({"sites": "a,a"}, "a site is named twice"),
        ({"colluding_sites": "4"}, "leave none of 4"),
        ({"name": "Not A Name"}, "study must be"),
        ({"task": "x: {"}, "data.task must be"),
    ],
)
def test_answers_that_make_no_study_write_none(
    given: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    study = tmp_path / "study.yaml"
    said = refused("consortium", "new-study", study, *options("group_ica", **given))
    assert sentence in said
    assert not study.exists()


def test_pairs_are_two_values_and_drafts_are_named(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    said = refused("consortium", "new-study", study, *options("glm", groups="60"))
    assert "--groups: must be two values with a comma, got '60'" in said
    said = refused("consortium", "new-study", study, "--algorithm", "magic")
    assert "--algorithm: must be one of group_ica" in said


def test_text_stays_text_whatever_is_in_it(tmp_path: Path) -> None:
    study, title = tmp_path / "study.yaml", '"{{ 7 * 7 }}" # Ünï: [x]'
    assert enter("consortium", "new-study", study, *options("ica", title=title)).code == 0
    assert read_study(study).title == title


def test_the_sites_of_a_roster_take_part_and_the_study_is_signed(tmp_path: Path) -> None:
    place, members = papers(tmp_path / "town")
    study = tmp_path / "study.yaml"
    papers_of_centre = ("--roster", place.files.roster, "--keys", place.files.keys)
    assert enter("consortium", "new-study", study, *papers_of_centre).code == 0
    signed = read_signed(study, read_roster(place.files.roster))
    assert signed.study.sites == tuple(sorted(members.sites))
    other = tmp_path / "other.yaml"
    said = refused("consortium", "new-study", other, "--keys", place.files.keys)
    assert "Add --roster" in said
    assert not other.exists()


def test_a_hopeless_study_is_written_to_be_edited_and_not_signed(tmp_path: Path) -> None:
    place, _ = papers(tmp_path / "town")
    study = tmp_path / "study.yaml"
    words = ("--roster", place.files.roster, "--keys", place.files.keys, "--epsilon", "0.1")
    said = enter("consortium", "new-study", study, *words, "--subjects", "10")
    assert said.code == 1
    assert "would be enough" in said.err
    assert study.exists()
    assert not study.with_name("study.yaml.sig").exists()


FIRST = f"""\
study: rest
sites: [{SITES}]
data: {{space: MNI152NLin2009cAsym, resolution: 10, detrend: quadratic, confounds: ["trans_*"]}}
privacy: {{epsilon: 8, delta: 1.0e-5, colluding_sites: 1}}
algorithm: group_ica
analysis: {{components: 2}}
"""


@pytest.fixture
def rest(tmp_path: Path) -> Path:
    """The output folder of a run that found two networks."""
    grid, out = template_grid(10.0), tmp_path / "rest"
    maps = np.stack([30.0 * blob(grid, at, 16.0) for at in ((0, -52, 28), (-8, -88, 0))], axis=1)
    noise = np.random.default_rng(0).standard_normal(maps.shape)
    write_outputs(out, finished_maps(sample_study(), grid, maps + noise), pages=False)
    (out / "evidence" / "study").mkdir(parents=True)
    (out / "evidence" / "study" / "study.yaml").write_text(FIRST)
    return out


COMPARED = ("--column", "diagnosis", "--groups", "60,40")


def test_networks_that_were_found_are_compared_between_patients_and_controls(
    rest: Path, tmp_path: Path
) -> None:
    study = tmp_path / "patients.yaml"
    words = ("--algorithm", "glm", "--components", rest, *COMPARED)
    said = enter("consortium", "new-study", study, *words)
    assert (said.code, said.err) == (0, "")
    made, first = read_study(study), parse_study(FIRST)
    assert (made.sites, made.data) == (first.sites, first.data)
    assert made.map_files == ("patients-networks.nii.gz",)
    assert nib.load(tmp_path / "patients-networks.nii.gz").shape[3] == 2
    said = enter("consortium", "plan", study, "--subjects", "100")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("Expected standard error")


def test_without_a_runs_study_or_over_a_file_nothing_is_written(rest: Path, tmp_path: Path) -> None:
    study, maps = tmp_path / "patients.yaml", tmp_path / "patients-networks.nii.gz"
    words = ("new-study", study, "--algorithm", "glm", *COMPARED, "--components")
    assert "must be the output folder of a run" in refused("consortium", *words, tmp_path / "none")
    maps.write_text("somebody's")
    assert "exists already" in refused("consortium", *words, rest)
    assert maps.read_text() == "somebody's"
    assert not study.exists()


# -- limits, groups and regions from tables ------------------------------------------------

REGIONS_68 = [f"{side}_{name}_thickness" for side in ("lh", "rh") for name in REGIONS["desikan"]]
FEW = {key: value for key, value in MORE["glm"].items() if key not in ("limits", "outcomes")}


def glm_of(study: Path, **given: object) -> list[str]:
    """Words of a command for a glm, without usual limits and outcomes."""
    words = [
        word for name, value in {"sites": SITES, **FEW, **given}.items() for word in (name, value)
    ]
    return ["new-study", str(study), "--algorithm", "glm"] + [
        f"--{word}" if place % 2 == 0 else str(word) for place, word in enumerate(words)
    ]


def made_by(*words: str) -> Study:
    said = enter("consortium", *words)
    assert (said.code, said.err) == (0, ""), said
    return read_study(Path(words[1]))


def limits_of(study: Study) -> dict[str, tuple[float | None, float | None]]:
    return {name: (own.low, own.high) for name, own in study.features[0].single_columns}


@pytest.mark.parametrize("between", [",", ", ", " ", "\n", ";"])
def test_sixty_eight_outcomes_are_read_however_they_are_separated(
    tmp_path: Path, between: str
) -> None:
    words = glm_of(tmp_path / "s.yaml", limits="1,5", outcomes=between.join(REGIONS_68))
    assert made_by(*words).features[0].labels == tuple(REGIONS_68)


@pytest.mark.parametrize(("end", "between"), [("tsv", "\t"), ("csv", ",")])
@pytest.mark.parametrize("outcomes", [None, "lh_*_thickness,rh_*_thickness"])
def test_each_outcome_has_limits_of_its_own_from_a_table(
    tmp_path: Path, end: str, between: str, outcomes: str | None
) -> None:
    wanted = {name: (0.5 + n / 100, 5.0 + n / 100) for n, name in enumerate(REGIONS_68)}
    lines = [("name", "low", "high"), *((n, str(a), str(b)) for n, (a, b) in wanted.items())]
    table = tmp_path / f"limits.{end}"
    table.write_text("\ufeff" + "\r\n".join(between.join(line) for line in lines) + "\r\n")
    more = {"groups": "6000,4000"} | ({} if outcomes is None else {"outcomes": outcomes})
    made = made_by(*glm_of(tmp_path / "s.yaml", limits=table, **more))
    assert limits_of(made) == wanted
    said = enter("consortium", "plan", tmp_path / "s.yaml")
    assert (said.code, said.err) == (0, "")


def test_limits_of_a_table_of_participants_are_wide_and_rounded(tmp_path: Path) -> None:
    table = _own_table(tmp_path)
    made = made_by(*glm_of(tmp_path / "s.yaml", limits=table, outcomes="lh_insula,lh_cuneus"))
    low, high = limits_of(made)["lh_insula"]
    assert low < 2.7131 - 0.03
    assert high > 2.7521 + 0.03
    assert (round(low, 2), round(high, 2)) == (low, high)


def test_detected_limits_are_written_only_if_they_are_asked_for(tmp_path: Path) -> None:
    table, study = _own_table(tmp_path), tmp_path / "s.yaml"
    words = ["new-study", study, "--algorithm", "glm", "--sites", SITES, "--groups", "60,40"]
    said = enter("consortium", *words, "--detect", table, "--limits", "detected")
    assert (said.code, said.err) == (0, "")
    assert "rounded outwards to two digits" in said.out
    assert "No number of this table" not in said.out
    assert set(limits_of(read_study(study))) == {"lh_insula", "lh_cuneus"}
    said = refused("consortium", *glm_of(tmp_path / "t.yaml", limits="detected", outcomes="a"))
    assert "requires the table of --detect" in said


def test_groups_of_each_site_come_from_a_table_and_are_rounded(tmp_path: Path) -> None:
    table = tmp_path / "groups.csv"
    table.write_text("site,patient,control\nnorth,157,143\neast,47,52\nsouth,3,1234\nwest,0,96\n")
    more = {"limits": "1,5", "outcomes": "a", "groups": table}
    words = glm_of(tmp_path / "s.yaml", **more)
    assert "are rounded to multiples of 10" in enter("consortium", *words).out
    assert read_study(tmp_path / "s.yaml").analysis.groups == {
        **{"north": (140, 160), "east": (50, 50)},
        **{"south": (1200, 10), "west": (100, 0)},
    }
    table.write_text("site,patient,control\nnorth,60,40\n")
    said = refused("consortium", *glm_of(tmp_path / "t.yaml", **more))
    assert "east, south, west is in one of both only" in said


@pytest.mark.parametrize(
    ("outcomes", "many", "first"),
    [
        ("Left-*,Right-*", 14, "Left-Thalamus"),
        ("Left-*", 7, "Left-Thalamus"),
        ("*", 14, "Left-Thalamus"),
        ("lh_*_thickness,rh_*_thickness", 68, "lh_bankssts_thickness"),
        ("Left-*,lh_*_thickness,eTIV", 42, "Left-Thalamus"),
        ("Left-Hippocampus,Right-Hippocampus", 2, "Left-Hippocampus"),
    ],
)
def test_regions_are_those_of_the_atlas_that_names_them_so(
    tmp_path: Path, outcomes: str, many: int, first: str
) -> None:
    made = made_by(*glm_of(tmp_path / "s.yaml", limits="1,5", outcomes=outcomes))
    labels = made.features[0].labels
    assert (len(labels), labels[0]) == (many, first)
    assert all(
        "-" in label or label == "eTIV" or label.startswith(("lh_", "rh_")) for label in labels
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name,low,high\na,5,1\n", "low below high is required for 'a', got 5 and 1"),
        ("name,low,high\na,x,1\n", "a number is required for 'a', got 'x'"),
        ("name,low,high\nb,1,5\n", "a name 'a' is required"),
        ("name,low,high\na,1,5\nb,1,5,7\n", "line 3: every row must have 3 cells"),
        ("name,low,high\na,1,5\na,2,5\n", "one line is required for 'a'"),
        ("participant_id,c\ns1,1\ns2,2\n", "a column of numbers 'a' is required"),
    ],
)
def test_a_table_that_lacks_what_is_needed_is_refused_and_nothing_written(
    tmp_path: Path, text: str, sentence: str
) -> None:
    table, study = tmp_path / "limits.csv", tmp_path / "s.yaml"
    table.write_text(text)
    assert sentence in refused("consortium", *glm_of(study, limits=table, outcomes="a"))
    assert not study.exists()


def test_names_that_are_no_columns_or_named_twice_are_refused(tmp_path: Path) -> None:
    for outcomes, sentence in (("a,b'c", "got 'b'c'"), ("a,b,a", "'a' is named twice")):
        said = refused("consortium", *glm_of(tmp_path / "s.yaml", limits="1,5", outcomes=outcomes))
        assert sentence in said
