"""Every named attack: who attacks, how, what guards against it, and what no guard can see.

``python -m tests.attacks.catalogue`` prints the catalogue in Markdown, for the threat model.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tests.attacks.attack_kinds import Attack

MODULES = (
    "attacks_by_hub",
    "attacks_by_replay",
    "attacks_by_sites",
    "attacks_among_neighbours",
    "attacks_by_equivocation",
    "attacks_on_agents",
    "attacks_by_copies",
    "attacks_by_backups",
    "attacks_on_budgets",
    "attacks_on_approvals",
    "attacks_on_papers",
    "attacks_on_inbox",
    "attacks_on_results",
    "attacks_on_exchange",
    *(["attacks_over_network"] if importlib.util.find_spec("paramiko") else []),
    "attacks_in_text",
    "attacks_in_scans",
    "attacks_on_scales",
)


class Row(NamedTuple):
    """What can't be guarded against, and why that is borne."""

    name: str
    attacker: str
    sentence: str
    what_remains: str


UNGUARDED = (
    Row(
        "invented-data",
        "site",
        "Answers with invented numbers.",
        "Under masks no party sees whether a site respects its public bound. The site can move a "
        "sum by any numbers, not only by its share of the participants. It can't aim at a chosen "
        "result, because it signs its message before any party can compute the others' sum, and "
        "can't change it afterwards. Where vectors are open, the bound and its share limit it.",
    ),
    Row(
        "two-tongues-among-friends",
        "site",
        "Tells the centre one model and a neighbour that works with it another.",
        "Honest neighbours sign the answers that they received, so a site that sent them or the "
        "centre another answer is named. A neighbour that works with it omits its signature. No "
        "party can check whether an answer follows from the received ones: each is a number "
        "within the public bound that its site could have sent anyway, as in invented-data. "
        "Answers of the last round have no further use. Privacy loss does not depend on received "
        "answers.",
    ),
    Row(
        "invented-sum-of-numeric-boost",
        "hub",
        "Publishes, in a study with a numeric boost, other numbers than the sum of the vectors.",
        "Single vectors are open only to the centre, so no other party can add them. Readers can "
        "be misled: 'consortium verify' then reports that it can neither confirm nor refute the "
        "result. The privacy of the data does not change. Results of studies with boost: exact, "
        "or with verification.open: true, can be checked.",
    ),
    Row(
        "messages-withheld",
        "exchange",
        "Deletes or withholds messages for good.",
        "Every wait has a deadline and names the awaited party. The run ends without a result. "
        "Rounds answered by then stay charged.",
    ),
)


def attacks() -> list[Attack]:
    """Every attack that a guard meets, in the order of the modules."""
    from tests.attacks.attack_kinds import Attack

    modules = [importlib.import_module(f"tests.attacks.{name}") for name in MODULES]
    found = [each for module in modules for each in vars(module).values()]
    return [each for each in found if isinstance(each, Attack)]


def markdown() -> str:
    """Write both tables."""
    lines = ["| attack | who | what | guard | without it |", "|---|---|---|---|---|"]
    for each in attacks():
        cells = (each.name, each.attacker, each.sentence, f"`{each.guard}`", each.without)
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| not guarded | who | what | what remains |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in UNGUARDED]
    return "\n".join(lines)


if __name__ == "__main__":
    print(markdown())  # noqa: T201
