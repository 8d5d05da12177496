"""The blocks of pages that are drawn from the code."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from consortium.algorithms import REGISTRY
from consortium.privacy.gdp import detection_power, mu_of
from consortium.privacy.loss import SiteNoise, coalition_losses, printed_loss
from consortium.secagg import states
from consortium.secagg.threshold import most_dropouts, threshold
from consortium.study.reader import read_study
from generators.errors import codes
from generators.markdown import table

ROOT = Path(__file__).parents[2]
_FINDS = re.compile(r"\A# [^\n]*\n+([^\n]*?[.?])(?=\s)")


def diagram(moves: Mapping[tuple[Any, str], Any]) -> str:
    """Draw a table of `consortium.secagg.states` as a Mermaid state diagram."""
    events: dict[tuple[Enum, Enum], list[str]] = defaultdict(list)
    for (state, event), following in moves.items():
        events[state, following].append(event)
    known = list(dict.fromkeys(state for pair in events for state in pair))
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f'    state "{state.value}" as {state.name}' for state in known]
    lines.append(f"    [*] --> {known[0].name}")
    for (state, following), names in events.items():
        lines.append(f"    {state.name} --> {following.name}: {', '.join(names)}")
    return "\n".join([*lines, "```", ""])


def _losses() -> str:
    """μ² at Δ/τ = 1 in the symmetric setting, exact and as printed."""
    rows = []
    for sites, colluding in ((4, 1), (10, 3), (30, 9)):
        squares = [_loss(sites, colluding, boost) ** 2 for boost in (1.0, 100.0, 1e4)]
        limit = sites / (sites - colluding)
        printed = printed_loss(sites, colluding) ** 2
        numbers = [printed, *squares, limit]
        rows.append([str(sites), str(colluding), *(f"{number:.3f}" for number in numbers)])
    head = ["S", "S_C", "μ² printed", "μ² exact, κ = 1", "κ = 100", "κ = 10,000", "exact"]
    return table(head, rows)


def _loss(sites: int, colluding: int, boost: float) -> float:
    correlated, local = (boost**0.5,) * sites, (sites**-0.5,) * sites
    noise = SiteNoise("cape", correlated, local)
    return float(coalition_losses(noise, [1.0] * sites, colluding).max())


def _detection() -> str:
    """Power of the best test for a person, as the privacy statement of a report has it."""
    epsilons = (0.5, 1, 2, 4, 8)
    powers = [detection_power(mu_of(epsilon, 1e-5)) for epsilon in epsilons]
    head = ["ε (at δ = 10⁻⁵)", *(f"{epsilon:g}" for epsilon in epsilons)]
    return table(head, [["found by the best test", *(f"{100 * power:.0f} %" for power in powers)]])


def _dropouts() -> str:
    """Most drop-outs, and the answers that a round needs, for small consortia."""
    rows = []
    for sites in (4, 5, 6, 8, 10, 16, 20, 30):
        most = [most_dropouts(sites, colluding) for colluding in range(4)]
        cells = [f"{lost} ({threshold(sites, c, lost)})" for c, lost in enumerate(most)]
        rows.append([str(sites), *cells])
    return table(["sites S", *(f"S_C = {c}" for c in range(4))], rows)


def _studies() -> str:
    """The example studies, with what each is of."""
    rows = []
    for path in sorted((ROOT / "configs").glob("*.yaml")):
        study = read_study(path)
        kind = "participants" if study.features else "image series"
        rows.append([f"`{path.name}`", kind, f"`{study.algorithm}`", study.title or study.study])
    return table(["study", "of", "`algorithm`", "title"], rows)


def _layers() -> str:
    """The rooms from high to low, as the contracts in pyproject.toml have them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    rows = []
    for contract in settings["tool"]["importlinter"]["contracts"]:
        for package in contract.get("containers", ()):
            for layer in contract["layers"]:
                rooms = [room.strip() for room in layer.split("|")]
                rows += [[f"`{package}/{room}`", _purpose(package, room)] for room in rooms]
    return table(["room, high to low", "content"], rows)


def _purpose(package: str, room: str) -> str:
    """What a room's docstring begins with; of a folder also what is in it."""
    place = ROOT / package / room
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    document = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(" ".join(document.split("\n\n")[: 1 + place.is_dir()]).split())


@cache
def _catalogue() -> tuple[str, str]:
    """Both tables of the named attacks: with a guard, and without one."""
    told = subprocess.run(
        [sys.executable, "-m", "tests.attacks.catalogue"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    guarded, unguarded = told.stdout.strip().split("\n\n")
    return guarded, unguarded


def finds(name: str) -> str:
    """Return the first sentence of an analysis's page, which states its result."""
    page = (ROOT / "docs" / "analyses" / f"{name}.md").read_text(encoding="utf-8")
    found = _FINDS.search(page)
    if found is None:
        raise ValueError(f"docs/analyses/{name}.md has no first sentence; add it.")
    return found[1]


def _analyses(page: Path) -> str:
    """Every analysis with its page and its result; links are relative to the page."""
    folder = os.path.relpath(ROOT / "docs" / "analyses", page.parent)
    prefix = "" if folder == "." else f"{folder}/"
    rows = [
        [f"[`{name}`]({prefix}{name}.md)", algorithm.title, finds(name)]
        for name, algorithm in sorted(REGISTRY.items())
    ]
    return table(["`algorithm`", "name", "result"], rows)


def _statistics() -> str:
    """What sites may be asked for, by analysis."""
    rows = [
        [f"`{name}`", ", ".join(f"`{statistic}`" for statistic in algorithm.statistics)]
        for name, algorithm in sorted(REGISTRY.items())
    ]
    return table(["`algorithm`", "statistics that sites may be asked for"], rows)


BLOCKS: Mapping[str, Callable[[], str]] = {
    "party": lambda: diagram(states.PARTY),
    "party-round": lambda: diagram(states.PARTY_ROUND),
    "hub": lambda: diagram(states.HUB),
    "hub-round": lambda: diagram(states.HUB_ROUND),
    "losses": _losses,
    "detection": _detection,
    "dropouts": _dropouts,
    "errors": codes,
    "attacks": lambda: _catalogue()[0],
    "unguarded": lambda: _catalogue()[1],
    "statistics": _statistics,
    "studies": _studies,
    "layers": _layers,
}
"""The same on whichever page they stand."""
PAGE_BLOCKS: Mapping[str, Callable[[Path], str]] = {"analyses": _analyses}
"""With links, which depend on the page."""


def block(name: str, page: Path) -> str:
    """Draw a block for a page.

    Raises
    ------
    KeyError
        If there is none of that name.
    """
    return PAGE_BLOCKS[name](page) if name in PAGE_BLOCKS else BLOCKS[name]()
