"""A second implementation of the checks of rounds, answers and attestations, from protocol.md.

It shares no code with the package: whoever doubts that one can read this one. What it needs is
SHA-256, Ed25519, X25519, HKDF-SHA256, AES-128-CTR, MessagePack, and addition of integers.

``python -m tests.vectors.verifier FILE.json ...`` prints what it finds of each vector.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from msgspec import msgpack

CHUNK = 1 << 20
FIELDS = {
    "keys": "channel 32, advertisements [bytes]",
    "advertise": "session 32, channel 32, masks [32], commitments [32], note bytes, holders? [int]",
    "unmask": "context 32, survivors [str], lost [str], manifests [bytes]",
    "manifest": "context 32, bits int, masked int, size int, chunks [32], opened? bytes, heard? "
    "[list]",
    "release": "context 32, survivors [str], lost [str], request bytes, bits int, chunks [32], "
    "seeds [31], manifests? [bytes]",
    "broadcast": "context 32, vector bytes",
    "attestation": "announcement 32, keys 32, plan 32, records [32], checked [int], "
    "refuted [list], missed [int], earlier [str]",
}
FORMS = {"31": 31, "32": 32, "bytes": bytes, "int": int, "str": str, "list": list}


class Bad(Exception):  # noqa: N818 - a finding, no mishap
    """A vector that must not be believed."""


def need(true: bool, why: str) -> None:
    if not true:
        raise Bad(why)


def sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def pack(*parts: Any) -> bytes:
    return msgpack.encode(parts)


def digest(*parts: Any) -> bytes:
    return sha(pack(*parts))


def derive(key: bytes, *info: Any) -> bytes:
    return HKDF(SHA256(), 32, b"", pack(*info)).derive(key)


def chunks(data: bytes) -> list[bytes]:
    return [sha(data[at : at + CHUNK]) for at in range(0, len(data), CHUNK)]


def unseal(case: Any, data: bytes, kind: str, sender: str, number: int) -> dict[str, Any]:
    """Take a message out of its envelope; gives its fields."""
    return fields(envelope(case, data, kind, sender, number), kind)


def envelope(case: Any, data: bytes, kind: str, sender: str, number: int) -> bytes:
    try:
        parts = msgpack.decode(data)
    except (ValueError, msgspec.DecodeError) as error:
        raise Bad("not MessagePack") from error
    need(isinstance(parts, list) and len(parts) == 7, "not an envelope")
    need(msgpack.encode(parts) == data, "not the one encoding")
    label, run, who, what, j, body, signature = parts
    need(label == "consortium envelope 1", "label")
    need((run, who, what, j) == (case["run"], sender, kind, number), "header")
    check_signature(case, sender, signature, pack(label, run, who, what, j, sha(body)))
    return bytes(body)


def check_signature(case: Any, who: str, signature: bytes, text: bytes) -> None:
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(case["keys"][who]))
        key.verify(signature, text)
    except (InvalidSignature, TypeError) as error:
        raise Bad("signature") from error


def fields(body: bytes, kind: str) -> dict[str, Any]:
    try:
        found = msgpack.decode(body)
    except (ValueError, msgspec.DecodeError) as error:
        raise Bad("body is not MessagePack") from error
    need(isinstance(found, dict), "fields")
    for field in FIELDS[kind].split(", "):
        name, form = field.replace("?", "").split()
        default: Any = [] if form[0] == "[" else b""
        values = found.setdefault(name, default) if "?" in field else found.get(name)
        need(form[0] != "[" or isinstance(values, list), name)
        one = FORMS[form.strip("[]")]
        for value in values if form[0] == "[" else [values]:
            if isinstance(one, int):
                need(isinstance(value, bytes) and len(value) == one, name)
            else:
                need(isinstance(value, one) and type(value) is not bool, name)
    need(len(found) == len(FIELDS[kind].split(", ")), "fields")
    return found


class SetUp:
    """What a bundle of keys says: sessions, keys, commitments, neighbours."""

    def __init__(self, case: Any) -> None:
        self.sites: list[str] = case["sites"]
        keys = b"".join(bytes.fromhex(case["keys"][name]) for name in (*self.sites, "centre"))
        numbers = [case["threshold"], case["minimum"], case["rounds"]]
        numbers += [case["holders"]] if case["holders"] else []
        self.session = digest("consortium session 1", case["run"], *numbers, keys, *self.sites)
        body = envelope(case, bytes.fromhex(case["bundle"]), "keys", "centre", 0)
        bundle = fields(body, "keys")
        self.transcript = digest("consortium keys 1", self.session, body)
        need(len(bundle["advertisements"]) == len(self.sites), "one advertisement a site")
        self.said = {
            site: unseal(case, data, "advertise", site, 0)
            for site, data in zip(self.sites, bundle["advertisements"], strict=True)
        }
        everything = [bundle["channel"]]
        for site, said in self.said.items():
            need(said["session"] == self.session, "another session")
            need(len(said["masks"]) == len(said["commitments"]) == case["rounds"], "rounds")
            drawn = said["holders"]
            own = self.sites.index(site) + 1
            sound = drawn == sorted(set(drawn)) and own not in drawn
            need(sound and len(drawn) == case["holders"], "holders")
            need(all(1 <= point <= len(self.sites) for point in drawn), "holders")
            everything += [said["channel"], *said["masks"]]
        need(len(set(everything)) == len(everything), "a key twice")
        for key in everything:
            agree(X25519PrivateKey.from_private_bytes(bytes(range(32))), key)

    def near(self, site: str) -> list[str]:
        """Sites that have a mask in common with this one."""
        if not any(said["holders"] for said in self.said.values()):
            return [other for other in self.sites if other != site]
        point = self.sites.index(site) + 1
        drawn = {self.sites[n - 1] for n in self.said[site]["holders"]}
        drew = {other for other in self.sites if point in self.said[other]["holders"]}
        return [other for other in self.sites if other in drawn | drew]


def agree(private: X25519PrivateKey, public: bytes) -> bytes:
    try:
        return private.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError as error:
        raise Bad("a key of low order") from error


def ring(bits: int) -> Any:
    return np.dtype("<u2" if bits <= 16 else "<u4" if bits <= 32 else "<u8")


def stream(key: bytes, entries: int, bits: int) -> Any:
    cipher = Cipher(algorithms.AES128(key[:16]), modes.CTR(key[16:])).encryptor()
    return np.frombuffer(cipher.update(bytes(entries * ring(bits).itemsize)), ring(bits))


def unpacked(data: bytes, entries: int, bits: int) -> Any:
    whole = int.from_bytes(data, "little")
    need(whole < 1 << (entries * bits), "a bit behind the last number")
    numbers = [whole >> (place * bits) & ((1 << bits) - 1) for place in range(entries)]
    return np.array(numbers, ring(bits))


def check_round(case: Any) -> None:
    """Raise `Bad` unless the released numbers are the sum of what the sites signed."""
    keys, j, bits = SetUp(case), case["number"], case["bits"]
    message = bytes.fromhex(case["request"])
    release = unseal(case, bytes.fromhex(case["release"]), "release", "centre", j)
    request = unseal(case, message, "unmask", "centre", j)
    need(release["request"] == sha(message), "another request")
    alive, lost, context = release["survivors"], release["lost"], release["context"]
    need([s for s in keys.sites if s in alive] == alive, "order of survivors")
    need([s for s in keys.sites if s not in alive] == lost, "order of the lost")
    need(len(alive) >= case["minimum"], "too few survivors")
    told = (request["context"], request["survivors"], request["lost"])
    need(told == (context, alive, lost), "request and release differ")
    need(context.hex() == case["context"] and release["bits"] == bits, "question or ring")
    need(len(request["manifests"]) == len(alive), "one manifest a survivor")
    seeds = release["seeds"]
    need(len(seeds) == len(keys.sites), "one seed a site")
    total = np.zeros(case["entries"], ring(bits))
    for site, data in zip(alive, request["manifests"], strict=True):
        manifest = unseal(case, data, "manifest", site, j)
        total += vector(case, manifest, bytes.fromhex(case["objects"].get(site, "")), context)
    for site, seed in zip(keys.sites, seeds, strict=True):
        total += correction(case, keys, site, seed, alive, context)
    released = bytes.fromhex(case["released"])
    need(chunks(released) == release["chunks"], "other numbers than the release's")
    total = (-total if case["open"] else total) & total.dtype.type((1 << bits) - 1)
    need(total.tobytes() == released, "not the sum")


def vector(case: Any, manifest: dict[str, Any], found: bytes, context: bytes) -> Any:
    entries, bits = case["entries"], case["bits"]
    size = -(-entries * bits // 8)
    need(manifest["context"] == context and manifest["bits"] == case["bits"], "manifest")
    least = 2 * size if case["open"] else size
    need(manifest["masked"] == size and least <= manifest["size"], "manifest's size")
    data = found[: manifest["size"]]
    need(len(data) == manifest["size"] and chunks(data) == manifest["chunks"], "object altered")
    masked = unpacked(data[:size], entries, bits)
    return masked - unpacked(data[size:least], entries, bits) if case["open"] else masked


def correction(
    case: Any, keys: SetUp, site: str, seed: bytes, alive: list[str], context: bytes
) -> Any:
    """What takes the masks of one seed off the sum."""
    j, entries, bits = case["number"], case["entries"], case["bits"]
    said, session = keys.said[site], keys.session
    if site in alive:
        due = said["commitments"][j - 1]
        need(derive(seed, "self commitment", session, site, j) == due, "commitment")
        key = derive(seed, "self mask", keys.transcript, j, context, site)
        return np.zeros(entries, ring(bits)) - stream(key, entries, bits)
    private = X25519PrivateKey.from_private_bytes(derive(seed, "mask key", session, site, j))
    need(private.public_key().public_bytes_raw() == said["masks"][j - 1], "public key")
    total = np.zeros(entries, ring(bits))
    for peer in keys.near(site):
        if peer in alive:
            shared = agree(private, keys.said[peer]["masks"][j - 1])
            first, second = sorted((site, peer), key=keys.sites.index)
            key = derive(shared, "pair mask", keys.transcript, j, context, first, second)
            mask = stream(key, entries, bits)
            total = total + mask if first == site else total - mask
    return total


# -- attestations ----------------------------------------------------------------------------


def check_attestations(case: Any) -> None:
    """Raise `Bad` unless every round is shown, and the run can have no second such result."""
    own = [bytes.fromhex(case[name]) for name in ("announcement", "bundle_digest", "plan")]
    records = [sha(bytes.fromhex(release)) for release in case["releases"]]
    colluding, agreeing = case["colluding"], []
    for site, data in case["attestations"].items():
        said = unseal(case, bytes.fromhex(data), "attestation", site, 0)
        same = [said["announcement"], said["keys"], said["plan"]] == own
        if same and said["records"] == records and not said["refuted"]:
            agreeing.append(said)
    for j in range(1, len(records) + 1):
        need(sum(j in said["checked"] for said in agreeing) > colluding, f"round {j} not shown")
    count = len(case["sites"])
    answers = case["minimum"] if case["holders"] else case["threshold"]
    need(len(agreeing) >= max(answers, (count + colluding) // 2 + 1), "perhaps not the only one")


# -- answers among neighbours ----------------------------------------------------------------


def check_tongues(case: Any) -> None:
    """Raise `Bad` unless each site signed, of each round, the one answer that is published."""
    said: dict[Any, set[bytes]] = {}
    for told in case["told"]:
        j, rows = told["number"], told["rows"]
        release = unseal(case, bytes.fromhex(told["release"]), "release", "centre", j)
        need(release["survivors"] == list(rows), "survivors")
        need(len(release["manifests"]) == len(rows), "one manifest a survivor")
        for (site, row), data in zip(rows.items(), release["manifests"], strict=True):
            manifest = unseal(case, data, "manifest", site, j)
            need(manifest["context"] == release["context"], "manifest")
            body = {"context": release["context"], "vector": bytes.fromhex(row)}
            need(manifest["opened"] == sha(msgpack.encode(body)), "not what its site signed")
            said.setdefault((site, j), set()).add(manifest["opened"])
            for heard in manifest["heard"]:
                need(len(heard) == 4 and heard[0] in case["sites"], "heard of nobody")
                who, number, answer, signature = heard
                signed = ("consortium envelope 1", case["run"], who, "broadcast", number, answer)
                check_signature(case, who, signature, pack(*signed))
                said.setdefault((who, number), set()).add(answer)
    need(all(len(answers) == 1 for answers in said.values()), "two tongues")


KINDS = {"round": check_round, "attestations": check_attestations, "tongues": check_tongues}


def fault(case: Any) -> str:
    """What is wrong with a vector; empty if nothing is."""
    try:
        KINDS[case["kind"]](case)
    except Bad as bad:
        return str(bad)
    return ""


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for case in json.loads(Path(name).read_text(encoding="utf-8")):
            print(case["name"], fault(case) or "good")  # noqa: T201
