"""``python -m tests.new_analysis NAME``: list the missing parts of an analysis.

It looks for the files that docs/guides/new-analysis.md requires, and runs the contract tests on the
analysis. The exit code is 1 if a part is missing or a test fails.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from consortium.algorithms import REGISTRY
from consortium.base.strict_yaml import parse_yaml

ROOT = Path(__file__).parents[1]
CONTRACT = tuple(
    f"tests/contract/test_{name}.py"
    for name in ("analyses", "sensitivity", "entry_names", "withheld", "named_fields", "honesty")
)


def missing_parts(name: str, root: Path = ROOT) -> Iterator[str]:
    """Yield a sentence for each part of an analysis that does not exist."""
    if name not in REGISTRY:
        yield "consortium/algorithms/__init__.py: REGISTRY lacks it. Add a line."
    for path, purpose in (
        (f"docs/analyses/{name}.md", "a page with the sensitivity's proof"),
        (f"benchmarks/honesty/{name}.py", "repetition(cell, rng), which compares with a truth"),
        (f"tests/unit/algorithms/test_{name}.py", "tests against another implementation"),
    ):
        if not (root / path).exists():
            yield f"{path} is missing. Write {purpose}."
    examples = [
        parse_yaml(each.read_text(encoding="utf-8")) for each in (root / "configs").glob("*.yaml")
    ]
    if not any(each["algorithm"] == name and each.get("title") for each in examples):
        yield f"configs: no example with a title has 'algorithm: {name}'. Write one."
    losses = (root / "docs/explanation/privacy-bounds.md").read_text(encoding="utf-8")
    for statistic in REGISTRY[name].statistics if name in REGISTRY else ():
        if f"`{statistic}`" not in losses:
            yield f"docs/explanation/privacy-bounds.md lacks the statistic {statistic}. Add it."


def main(name: str) -> int:
    """Print the missing parts, run the contract tests, and return the exit code."""
    missing = list(missing_parts(name))
    sys.stdout.write("\n".join(missing or [f"{name} has all parts."]) + "\n")
    sys.stdout.flush()
    if name not in REGISTRY:
        return 1
    tests = [sys.executable, "-m", "pytest", "-q", "--tb=line", *CONTRACT, "-k", name]
    failed = subprocess.run(tests, cwd=ROOT, check=False).returncode
    return int(bool(missing or failed))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("One name is required. Usage: python -m tests.new_analysis NAME")
    sys.exit(main(sys.argv[1]))
