"""Inputs that nearly make sense: real ones with something wrong, as bytes and as trees."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

Make = Callable[[random.Random], bytes]
NUMBERS = (0, 1, 2, 7, 127, 128, 255, 256, 32767, 65535, 1 << 31, (1 << 32) - 1, 1 << 40)
WORDS = (
    *(b"\x00", b"\xff", b"\n", b"\t", b'"', b"\\", b"'", b"[", b"{", b": ", b"- ", b"#", b"*a"),
    *(b"&a", b"!!", b"<<: ", b"../../etc/passwd", b"\x1b[2J", b"\xed\xa0\x80", b"NaN", b"Infinity"),
    *(b"-1", b"1e999", b"9" * 400, b"1:1:1.5", b"2026-99-99", b"~", b"\xdf\xff\xff\xff\xff"),
    *(b"\xc6\xff\xff\xff\xff", b"\xdd\x7f\xff\xff\xff", b"[" * 400, b'{"a":' * 200, b"\x91" * 400),
)
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 255, 1 << 31, 1 << 32, (1 << 63) - 1, -(1 << 63), 10**12),
    *(0.0, -0.0, 1e308, 5e-324, float("nan"), float("inf"), -float("inf"), 0.1),
    *("", " ", "a" * 300, "\x00", "../../etc/passwd", "/dev/zero", "\x1b[2J", "[/x]", "é\u202e"),
    *("template", "centre", "north", "NaN", "0" * 64, "9" * 5000, [], {}, [[]], {"": {}}, [0] * 99),
)


@dataclass(frozen=True)
class Codec:
    """How a kind of input is read as a tree and written again."""

    read: Callable[[bytes], Any]
    write: Callable[[Any], bytes]
    odd: tuple[Any, ...] = ODD


def _json(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "replace")


JSON = Codec(json.loads, _json, (*ODD, 10**400))
MSGPACK = Codec(
    msgspec.msgpack.decode,
    msgspec.msgpack.encode,
    (*ODD, b"", bytes(31), bytes(32), bytes(33), bytes(300), (1 << 64) - 1),
)


def garble(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """Flip, cut, double, splice or overwrite; one to four times."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        _garble_once(found, others, rng)
    return bytes(found)


def _garble_once(found: bytearray, others: Sequence[bytes], rng: random.Random) -> None:
    start = rng.randrange(len(found) + 1)
    end = min(len(found), start + int(rng.expovariate(0.1)))
    match rng.randrange(8):
        case 0 | 1 if start < len(found):
            found[start] ^= 1 << rng.randrange(8)
        case 2 if start < len(found):
            found[start] = rng.choice((0, 1, 127, 128, 192, 255))
        case 3:
            del found[start : rng.choice((end, len(found)))]
        case 4:
            found[start:start] = found[start:end] * rng.choice((1, 1, 2, 50))
        case 5:
            other = rng.choice(others)
            cut = rng.randrange(len(other) + 1)
            found[start:end] = other[cut : cut + int(rng.expovariate(0.02))]
        case 6:
            found[start:end] = rng.choice(WORDS)
        case _:
            width, order = rng.choice((1, 2, 4, 8)), rng.choice(("little", "big"))
            number = rng.choice(NUMBERS) % (1 << 8 * width)
            found[start : start + width] = number.to_bytes(width, order)


def twist(tree: Any, codec: Codec, rng: random.Random) -> Any:
    """Return a tree of which one part is another: a value, a name, a length, a depth."""
    if isinstance(tree, dict) and tree and rng.random() < 0.8:
        return _twist_fields(tree, codec, rng)
    if isinstance(tree, list | tuple) and tree and rng.random() < 0.8:
        return _twist_items(list(tree), codec, rng)
    choice = rng.randrange(12)
    if choice == 0:
        return [tree]
    if choice == 1:
        return {"a": tree}
    if choice == 2 and isinstance(tree, int | float) and abs(tree) < 1 << 62:
        return tree + rng.choice((-1, 1, 0.5))
    if choice < 6 and isinstance(tree, str | bytes):
        return tree[: rng.randrange(len(tree) + 1)] * rng.choice((1, 1, 2))
    return rng.choice(codec.odd)


def _twist_fields(tree: dict[Any, Any], codec: Codec, rng: random.Random) -> dict[Any, Any]:
    found, name = dict(tree), rng.choice(list(tree))
    match rng.randrange(8):
        case 0:
            del found[name]
        case 1:
            found[rng.choice(("", "a", f"{name}x", "\x1b", "n" * 100))] = found[name]
        case 2:
            found[name] = found[rng.choice(list(found))]
        case _:
            found[name] = twist(found[name], codec, rng)
    return found


def _twist_items(found: list[Any], codec: Codec, rng: random.Random) -> list[Any]:
    place = rng.randrange(len(found))
    match rng.randrange(8):
        case 0:
            del found[place]
        case 1:
            found.insert(place, rng.choice(found))
        case 2:
            rng.shuffle(found)
        case 3:
            found *= rng.choice((2, 50))
        case _:
            found[place] = twist(found[place], codec, rng)
    return found


def mutant(corpus: Sequence[bytes], codec: Codec | None = None, trees: float = 0.5) -> Make:
    """Make inputs from a corpus: a share of ``trees`` of them sound in their outer form."""
    if codec is None:
        return lambda rng: garble(rng.choice(corpus), corpus, rng)
    read = [codec.read(data) for data in corpus]

    def make(rng: random.Random) -> bytes:
        if rng.random() >= trees:
            return garble(rng.choice(corpus), corpus, rng)
        tree = twist(rng.choice(read), codec, rng)
        while rng.random() < 0.3:
            tree = twist(tree, codec, rng)
        return codec.write(tree)

    return make
