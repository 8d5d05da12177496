"""``python -m tests.of_module FILE ...``: which tests guard a file of the product.

A module's tests stand at its own path, ``tests/unit/<path>/test_<module>.py``; those of an
analysis's parts in the analysis's own file; and where a module is tested through others', a table
names where. The table is made from a traced run of the whole suite (`tests.tracing.table`), and
`tests/contract/test_of_module.py` keeps it complete.
"""

import json
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNIT = Path("tests/unit")
TABLE = Path(__file__).with_name("guards.json")
BY_HAND = {
    "consortium/coordinator/demo/run.py": (
        "tests/unit/coordinator/demo/test_story.py",
        "make demo",
        "make full-brain",
    ),
    "consortium/algorithms/average_parameters.py": ("tests/unit/algorithms/test_average.py",),
    "consortium/algorithms/average_result.py": ("tests/unit/algorithms/test_average.py",),
    "consortium/base/expected_values.py": ("tests/contract/test_refused_values.py",),
    "consortium/base/printable.py": ("tests/end_to_end/test_printable.py",),
    "consortium/coordinator/new_study_tables.py": ("tests/end_to_end/test_new_study.py",),
    "consortium/coordinator/open_cohort.py": ("tests/end_to_end/test_open_networks.py",),
    "consortium/coordinator/open_runs.py": ("tests/protocol/test_lost_folder.py",),
    "flows/reporter.py": ("tests/unit/flows/test_outage.py", "tests/unit/flows/test_public.py"),
    "consortium/report/coefficients.py": ("tests/unit/coordinator/test_contrast.py",),
    "site_agent/chart.py": ("tests/end_to_end/test_site_zscores.py",),
    "site_agent/zscores.py": ("tests/end_to_end/test_site_zscores.py",),
    "consortium/base/delimited.py": ("tests/contract/inputs/test_tables.py",),
    "site_agent/advice.py": ("tests/contract/inputs/test_advice.py",),
    "site_agent/approval/decision.py": (
        "tests/unit/site_agent/approval/test_inspection.py",
        "tests/unit/site_agent/inbox/test_study_pages.py",
    ),
    "site_agent/approval/left_out.py": ("tests/unit/site_agent/inbox/test_table_pages.py",),
    "site_agent/inbox/account_pages.py": ("tests/unit/site_agent/inbox/test_guard.py",),
    "site_agent/inbox/application.py": ("tests/unit/site_agent/inbox/test_guard.py",),
    "site_agent/inbox/left_out.py": ("tests/unit/site_agent/inbox/test_table_pages.py",),
    "site_agent/inbox/office.py": (
        "tests/unit/site_agent/inbox/test_study_pages.py",
        "tests/unit/site_agent/inbox/test_table_pages.py",
    ),
    "site_agent/approval/understanding.py": ("tests/end_to_end/test_understanding.py",),
    "site_agent/data/table_summary.py": ("tests/end_to_end/test_understanding.py",),
    "site_agent/images/coverage.py": ("tests/contract/inputs/test_coverage.py",),
    "site_agent/page/course.py": ("tests/unit/site_agent/page/test_page.py",),
    "site_agent/labels.py": ("tests/contract/inputs/test_labels.py",),
    "site_agent/loading/summaries.py": ("tests/end_to_end/test_understanding.py",),
    "site_agent/bids_app.py": ("tests/end_to_end/test_bids_app.py",),
    "site_agent/commands/bids_app.py": ("tests/end_to_end/test_bids_app.py",),
    "relay/cape_relay/flare.py": ("make long",),
    "relay/cape_relay/vantage.py": ("make long",),
}
"""Commands of the Makefile that try what no test runs."""


PLACES = ("consortium", "site_agent", "flows", "relay")
"""Folders of the product."""


def modules() -> list[str]:
    """Every module of the product, as a path from the repository's root."""
    found = [path for place in PLACES for path in _in(place)]
    return sorted(path for path in found if not Path(path).name.startswith("__"))


def guards_of(module: str) -> tuple[str, ...]:
    """Test files of a module, or a command of the Makefile, or none.

    Parameters
    ----------
    module : str
        Such as ``consortium/secagg/hub.py``.
    """
    return own_guards(module) or BY_HAND.get(module) or _traced().get(module, ())


@cache
def _traced() -> dict[str, tuple[str, ...]]:
    told = json.loads(TABLE.read_text(encoding="utf-8"))
    return {module: tuple(tests) for module, tests in told.items()}


def own_guards(module: str) -> tuple[str, ...]:
    """Test files at a module's own path, or of its analysis."""
    path = Path(module)
    inside = path.relative_to("consortium") if path.parts[0] == "consortium" else path
    own = UNIT / inside.with_name(f"test_{path.name}")
    if (ROOT / own).is_file():
        return (own.as_posix(),)
    if path.match("consortium/algorithms/*/*.py"):
        return tuple(_of_analysis(path.parent.name))
    return ()


def _of_analysis(name: str) -> list[str]:
    folder = UNIT / "algorithms"
    found = [folder / f"test_{name}.py", *sorted((ROOT / folder).glob(f"test_{name}_*.py"))]
    return [
        (folder / path.name).as_posix() for path in found if (ROOT / folder / path.name).is_file()
    ]


def _in(place: str) -> list[str]:
    return [path.relative_to(ROOT).as_posix() for path in (ROOT / place).rglob("*.py")]


def main(files: list[str]) -> int:
    """Print the tests of some files; returns the exit code."""
    missing = [file for file in files if not guards_of(file)]
    for test in dict.fromkeys(test for file in files for test in guards_of(file)):
        sys.stdout.write(f"{test}\n")
    for file in missing:
        sys.stderr.write(f"{file}: no tests are known; is it a file of the product?\n")
    return 1 if missing or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
