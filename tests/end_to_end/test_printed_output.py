"""What the pages show as a command's output is what the command prints today.

Only the values that differ in each run (keys, times, numbers of participants) are masked.
"""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from consortium.simulation.__main__ import main as simulate_hospitals
from tests.contract.test_words import sentences
from tests.support.command_line import enter

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
COORDINATOR, SITE, TUTORIAL = (
    (DOCS / page).read_text(encoding="utf-8")
    for page in ("guides/coordinator.md", "guides/site.md", "tutorial.md")
)
LEDGER, READING, PROTECTION = (
    (DOCS / "explanation" / page).read_text(encoding="utf-8")
    for page in ("ledger.md", "ledger-output.md", "data-protection.md")
)
SITES = ("north", "east", "south", "west")
_MASKED = re.compile(
    r"\b[0-9a-f]{64}\b|\b[0-9a-f]{16}…|\b(?:[0-9a-f]{4}-){5}[0-9a-f]{4}\b|"
    r"\b\d{4}-\d\d-\d\dT\S+|\b\d+(?= (?:participants|lines|runs?)\b)|(?<=with )\d+(?= volumes)"
)


def shown(page: str, command: str) -> list[str]:
    """Lines of a page's code block behind a command that begins so."""
    found = re.search(rf"^\$ {re.escape(command)}[^\n]*\n(.*?)^```", page, re.M | re.S)
    assert found is not None, command
    return [line for line in found[1].splitlines() if line != "…"]


def masked(text: str) -> str:
    return _MASKED.sub("#", text)


def not_printed(page: str, command: str, printed: str) -> list[str]:
    """Lines that a page shows of a command and that are not in its output."""
    lines = {line.rstrip() for line in masked(printed).splitlines()}
    return [line for line in shown(page, command) if masked(line) not in lines]


def _copy_participant(dataset: Path, many: int) -> None:
    """Give a data set of one participant the same scans under other labels."""
    table = dataset / "participants.tsv"
    head, row = table.read_text(encoding="utf-8").splitlines()
    labels = [f"{number:03d}" for number in range(1, many + 1)]
    rows = [row.replace("001", label, 1) for label in labels]
    table.write_text("\n".join([head, *rows, ""]), encoding="utf-8")
    for file in [each for each in (dataset / "sub-001").rglob("*") if each.is_file()]:
        for label in labels[1:]:
            name = str(file.relative_to(dataset)).replace("sub-001", f"sub-{label}")
            (dataset / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, dataset / name)


@pytest.fixture(scope="module")
def study() -> str:
    (text,) = re.findall(r"^```yaml\n(study: rest-2026\n.*?)^```", COORDINATOR, re.M | re.S)
    return str(text)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory, study: str) -> Callable[..., str]:
    """Type a command in the folder of a consortium whose north has sixty participants."""
    root = tmp_path_factory.mktemp("printed")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        simulate_hospitals(
            [
                *("hospitals", "--sites", "north", "--subjects", "1"),
                *("--volumes", "40", "--networks", "2", "--resolution", "12"),
            ]
        )
    _copy_participant(root / "hospitals" / "north" / "bids", 60)
    (root / "study.yaml").write_text(study, encoding="utf-8")

    def type_line(line: str, code: int = 0) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(root)
            done = enter(*line.split())
        assert done.code == code, done
        return done.err if code else done.out

    for name in SITES:
        (root / "data" / name).mkdir(parents=True)
    made = type_line("consortium init centre --exchange shared")
    assert not_printed(COORDINATOR, "consortium init centre", made) == []
    key = made.split()[-1]
    for name in SITES:
        data = "hospitals/north/bids" if name == "north" else f"data/{name}"
        made = type_line(
            f"site-agent init --name {name} --dataset {data} --exchange shared --centre {key} "
            f"--folder {name}"
        )
        if name == "north":
            assert not_printed(SITE, "site-agent init", made) == []
    requests = " ".join(f"{name}/{name}.join.yaml" for name in SITES)
    admitted = f"consortium admit {requests} --roster centre/roster.yaml --keys centre --yes"
    assert not_printed(COORDINATOR, "consortium admit", type_line(admitted)) == []
    return type_line


def test_a_line_that_is_not_printed_is_noticed() -> None:
    page = "```console\n$ consortium plan study.yaml\nRight, 5 participants.\nOld.\n```\n"
    assert not_printed(page, "consortium plan", "Right, 6 participants.\nNew.\n") == ["Old."]


def test_the_plan_of_the_coordinators_guide(printed: Callable[..., str]) -> None:
    told = printed("consortium plan study.yaml")
    assert shown(COORDINATOR, "consortium plan study.yaml") == told.splitlines()


def test_the_refusal_of_the_coordinators_guide(study: str, tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(study.replace("dropouts: 1", "dropouts: 2"), encoding="utf-8")
    told = enter("consortium", "plan", path)
    assert told.code == 1
    assert f"```text\n{told.err}```" in COORDINATOR


def test_new_studies_of_the_guides(printed: Callable[..., str]) -> None:
    (line,) = re.findall(r"^\$ (consortium new-study study\.yaml .*)$", COORDINATOR, re.M)
    made = printed(line.replace("study.yaml", "other.yaml"))
    assert not_printed(COORDINATOR, line, made.replace("other.yaml", "study.yaml")) == []
    (line,) = re.findall(r"^\$ (consortium new-study first\.yaml .*)$", TUTORIAL, re.M)
    made = printed(re.sub(r'"[^"]*"', "Title", line))
    assert not_printed(TUTORIAL, line, made) == []


def test_a_study_is_signed_checked_and_approved_as_shown(printed: Callable[..., str]) -> None:
    sign = "consortium sign study.yaml --roster centre/roster.yaml --keys centre"
    assert not_printed(COORDINATOR, "consortium sign", printed(sign)) == []
    check = printed("site-agent check study.yaml --roster centre/roster.yaml -f north")
    assert not_printed(SITE, "site-agent check", check) == []
    approve = "site-agent approve study.yaml --roster centre/roster.yaml --until 2026-12-31"
    refused = printed(f"{approve} -f north --yes --runs 2", code=1)
    assert f"```text\n{refused}```" in LEDGER
    approved = printed(f"{approve} -f north --yes --despite-warnings")
    (_, *last) = shown(SITE, "site-agent approve")
    assert [line for line in last if line not in approved.splitlines()] == []


def test_an_assessment_a_page_and_a_ledger_are_written_as_shown(
    printed: Callable[..., str], tmp_path: Path
) -> None:
    made = printed("consortium dpia study.yaml --subjects 40 --out assessment")
    assert not_printed(PROTECTION, "consortium dpia", made) == []
    exported = tmp_path / "north.json"
    exported.write_text(printed("site-agent ledger -f north --json"), encoding="utf-8")
    checked = printed(f"site-agent ledger --verify {exported}")
    assert not_printed(READING, "site-agent ledger --verify", checked) == []


def test_every_message_of_the_operators_table_is_one_of_the_program() -> None:
    page = (DOCS / "guides" / "site-operation.md").read_text(encoding="utf-8")
    table = page.split("These messages are frequent:")[1].split("\n\n## ")[0]
    messages = re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)
    assert len(messages) > 12
    files = [*(ROOT / "site_agent").rglob("*.py"), *(ROOT / "consortium").rglob("*.py")]
    sources = [
        " ".join(each.split()) for file in files for each in sentences(file.read_text("utf-8"))
    ]
    unknown = []
    for message in messages:
        parts = [re.escape(part.strip()) for part in message.split("…") if part.strip()]
        if not any(re.search(".*".join(parts), source) for source in sources):
            unknown.append(message)
    assert unknown == []
