"""What an attack is: a hostile act on the real code, and the one guard that it must meet."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import pytest

Attacker = Literal[
    "hub", "site", "exchange", "file giver", "disk intruder", "web page", "local user"
]
ATTACKERS: tuple[Attacker, ...] = get_args(Attacker)


@dataclass
class Stage:
    """Where an attack takes place; ``said`` is what the attacked party told."""

    root: Path
    said: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Attack:
    """An attack.

    Parameters
    ----------
    name : str
    attacker : str
    sentence : str
        What the attacker does.
    guard : str
        ``module:attribute`` of what must stop it.
    without : str
        What would happen without the guard.
    stops : str
        Pattern of what the attacked party says; empty if it goes on undisturbed.
    instead : callable
        Given the guard, makes what stands in its place when it is taken away.
    act : callable
        Attacks, and returns whether harm was done. It may end in the error that stopped it.
    """

    name: str
    attacker: Attacker
    sentence: str
    guard: str
    without: str
    stops: str
    instead: Callable[[Any], Any]
    act: Callable[[Stage], bool]

    def disarm(self, patch: pytest.MonkeyPatch) -> None:
        """Take the guard away, and nothing else."""
        module, _, attribute = self.guard.partition(":")
        *owners, name = attribute.split(".")
        owner: Any = importlib.import_module(module)
        for each in owners:
            owner = getattr(owner, each)
        patch.setattr(owner, name, self.instead(getattr(owner, name)))


def attack(
    attacker: Attacker,
    *,
    guard: str,
    without: str,
    stops: str,
    instead: Callable[[Any], Any],
) -> Callable[[Callable[[Stage], bool]], Attack]:
    """Make an attack of a function: its name is the attack's, its docstring the sentence."""

    def make(act: Callable[[Stage], bool]) -> Attack:
        name, sentence = act.__name__.replace("_", "-"), " ".join((act.__doc__ or "").split())
        return Attack(name, attacker, sentence, guard, without, stops, instead, act)

    return make


def nothing(_guard: object) -> Callable[..., None]:
    """Stand in for a check that raises or returns nothing."""
    return lambda *_, **__: None


def always(value: object) -> Callable[[object], Callable[..., object]]:
    """Stand in for a check that gives an answer."""
    return lambda _guard: lambda *_, **__: value
