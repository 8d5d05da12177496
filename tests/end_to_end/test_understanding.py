"""What `check` understood of a site's files, as a data manager reads it."""

import json
import re
from pathlib import Path

import pytest

from consortium.coordinator.demo.prepare import DemoFolders
from consortium.membership.roster import read_roster
from site_agent.approval.understanding import facts_before
from site_agent.ledger.entries import Charge
from site_agent.ledger.ledger import Ledger
from tests.support.charges import charged
from tests.support.command_line import Said, enter
from tests.support.local_consortium import SITES
from tests.support.membership_files import papers, publish

STUDY = f"""
study: ages
title: Ages
sites: [{", ".join(SITES)}]
participants: {dict.fromkeys(SITES, 60)}
features:
  - name: who
    source: table
    columns: {{age: {{low: 18, high: 90}}, iq: {{low: 40, high: 160}}}}
privacy: {{unit: subject, epsilon: 4, delta: 1.0e-5, colluding_sites: 1}}
algorithm: average
analysis: {{bound: 1.0}}
"""
ROWS = [[f"sub-{n:03}", str(20 + n % 60), str(70 + n)] for n in range(1, 61)]


@pytest.fixture
def place(tmp_path: Path) -> DemoFolders:
    made = papers(tmp_path, STUDY)[0]
    for path in made.dataset("east").glob("sub-*"):
        path.rename(path.with_name(f"not-{path.name}"))
    return made


def written(place: DemoFolders, rows: list[list[str]], *, names: bool = False) -> Path:
    """Write the site's table, with row names as R writes them if asked."""
    head = ["participant_id", "age", "iq"]
    lines = [[str(k), *row] if names else row for k, row in enumerate(rows, start=1)]
    table = place.dataset("east") / "participants.tsv"
    table.write_text("\n".join("\t".join(line) for line in [head, *lines]) + "\n")
    return table


def site(place: DemoFolders, command: str, *words: str) -> Said:
    files = (place.files.study, "--roster", place.files.roster, "-f", place.site("east"))
    return enter("site-agent", command, *files, *words)


def understood(place: DemoFolders) -> dict[str, str]:
    found = json.loads(site(place, "check", "--json").out)["understood"]
    assert isinstance(found, dict)
    return found


def configured(place: DemoFolders, line: str) -> None:
    config, field = place.site("east") / "site.yaml", line.partition(":")[0]
    config.write_text(re.sub(rf"(?m)^{field}:.*\n", "", config.read_text()) + line + "\n")


def test_check_prints_labels_rows_and_cells(place: DemoFolders) -> None:
    rows = [list(row) for row in ROWS]
    rows[3][1], rows[4][1], rows[5][2] = "n/a", "inf", "?"
    written(place, rows)
    found = understood(place)
    assert found["participants' table"] == "participants.tsv, 60 rows, 001, 002, …, 060"
    assert found["view 'who'"] == (
        "participants.tsv, 60 rows: age 20 to 79, 1 missing, 1 odd ('inf'); iq 71 to 130, 1 odd "
        "('?')"
    )
    said = site(place, "check").out
    assert "Read from the files:" in said
    assert "age 20 to 79, 1 missing, 1 odd" in " ".join(said.split())


def test_row_names_are_reported_and_move_no_value(place: DemoFolders) -> None:
    plain = site(place, "check") if written(place, ROWS) else None
    written(place, ROWS, names=True)
    found = understood(place)
    assert "60 rows, with a column of row names that is not read" in found["participants' table"]
    assert plain is not None
    assert "60 participants qualify" in plain.out
    assert "60 participants qualify" in site(place, "check").out


def test_a_difference_from_the_last_approval_is_marked(place: DemoFolders) -> None:
    written(place, ROWS)
    assert site(place, "approve", "--yes").code == 0
    before = facts_before(place.site("east"), "ages")
    assert before == understood(place)
    assert "CHANGED" not in site(place, "check").out
    rows = [list(row) for row in ROWS]
    rows[0][1] = "n/a"
    written(place, rows)
    said = site(place, "check").out
    assert "CHANGED: view 'who': participants.tsv, 60 rows: age 20 to 79, 1 missing" in said
    assert "At the last approval: participants.tsv, 60 rows: age 20 to 79; iq 71" in said
    changed = json.loads(site(place, "check", "--json").out)["changed"]
    assert [each.partition(":")[0] for each in changed] == ["view 'who'"]


def test_a_damaged_store_of_the_last_approval_is_passed_over(place: DemoFolders) -> None:
    written(place, ROWS)
    for text in ("", "[1]", '{"ages": 3}', "\udcff"):
        (place.site("east") / "understood.json").write_text(text, errors="surrogateescape")
        assert "CHANGED" not in site(place, "check").out


def test_rows_of_another_width_are_refused_before_an_approval(place: DemoFolders) -> None:
    table = written(place, [*ROWS[:30], [*ROWS[30], "x"], *ROWS[31:40], ROWS[40][:2], *ROWS[41:]])
    said = site(place, "check")
    assert said.code == 1
    (refusal,) = [
        line for line in said.out.splitlines() if line.startswith("REFUSED: " + str(table))
    ]
    assert "line 32" in refusal
    assert "1 more line" in refusal
    assert site(place, "approve", "--yes").code == 1


def test_a_row_of_a_left_out_list_that_matches_nobody_stops_yes(place: DemoFolders) -> None:
    written(place, ROWS)
    configured(place, "left_out: out.tsv")
    out = place.site("east") / "out.tsv"
    out.write_text("participant_id\treason\nsub-17\twithdrew\nsub-170\twithdrew\n")
    said = site(place, "approve", "--yes")
    assert said.code == 1
    assert "WARNING" in said.out
    assert "1 row ('170') matches none" in said.out
    assert "017: sub-017 is excluded by" in said.out  # sub-17 is found
    out.write_text("participant_id\treason\nsub-17\twithdrew\n")
    assert site(place, "approve", "--yes").code == 0


def test_a_ledger_with_charges_of_other_labels_only_stops_yes(place: DemoFolders) -> None:
    written(place, ROWS)
    ledger = Ledger(place.site("east") / "ledger.sqlite")

    def charge(run: str, labels: list[str]) -> None:
        text = ("data", "first", run, 1, "a", "mean", "subject", 0.1)
        charged(ledger, Charge(*text, "5a" * 32, "ce" * 32, "9e" * 32, 0.1), labels)

    charge("first-0001", ["x1", "x2", "x3"])
    said = site(place, "approve", "--yes")
    assert said.code == 1
    assert "none of this study's 60 participants has any" in said.out
    charge("first-0002", [f"{n}.0" for n in range(1, 61)])
    assert "has any" not in site(place, "check").out
    spent = json.loads(enter("site-agent", "ledger", "-f", place.site("east"), "--json").out)
    assert spent


def test_where_no_table_was_seen_check_and_doctor_say_so(place: DemoFolders) -> None:
    table = written(place, ROWS)
    elsewhere = place.site("east") / "raw.tsv"
    table.rename(elsewhere)
    (place.dataset("east") / "sub-001").mkdir()
    assert f"{table} does not exist" in enter("site-agent", "doctor", "-f", place.site("east")).out
    assert site(place, "check").code == 1
    configured(place, "participants: raw.tsv")
    said = site(place, "check")
    assert "60 participants qualify" in said.out
    assert "raw.tsv can be read, 60 rows" in " ".join(
        enter("site-agent", "doctor", "-f", place.site("east")).out.split()
    )


def test_rows_of_another_table_that_match_nobody_stop_yes(place: DemoFolders) -> None:
    """A withdrawn patient in another spelling would take part under a new account."""
    written(place, ROWS)
    place.files.study.write_text(
        STUDY.replace("source: table", "source: table\n    file: thick.tsv")
    )
    publish(place, read_roster(place.files.roster))
    table = place.dataset("east") / "thick.tsv"

    def thick(*labels: str) -> None:
        rows = [[label, *row[1:]] for label, row in zip(labels, ROWS, strict=False)]
        lines = [["participant_id", "age", "iq"], *rows]
        table.write_text("\n".join(map("\t".join, lines)) + "\n")

    thick(*(f"/data/fs/sub-{k}" for k in range(1, 61)))
    assert site(place, "approve", "--yes").code == 0
    thick(*(f"x{k}" for k in range(1, 61)))
    said = site(place, "approve", "--yes")
    assert said.code == 1
    assert "60 participants of 60 ('x1', 'x10', 'x11', …) match none" in said.out


def test_one_zero_beyond_the_limits_is_a_warning(place: DemoFolders) -> None:
    rows = [list(row) for row in ROWS]
    rows[7][1] = "0"
    written(place, rows)
    said = site(place, "check").out
    assert "age 0 to 79, 1 beyond the limits" in " ".join(said.split())
    assert "WARNING: 0 is in 'age'" in said
