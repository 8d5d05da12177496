"""Queries and sites' notes as bytes: the application's own messages.

A large public array, such as a basis, is named by its SHA-256 in the query and stored once next to
it for all rounds.
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np

from consortium.algorithms.base import Array, Query
from consortium.errors import ProtocolError
from consortium.study.plan import Plan

_INLINE = 16_384  # bytes; larger arrays are stored once and named by their digest
MOST_ARRAY = 1 << 31
MOST_QUERY = 1 << 20


class _Array(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="array"):
    shape: tuple[int, ...]
    data: bytes


class _Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="named"):
    shape: tuple[int, ...]
    digest: str


class _Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    stage: str
    statistic: str
    arguments: dict[str, _Array | _Named]


class SiteNote(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A site's note about its study, attached to its signed advertisement.

    ``grid`` is the digest of the study's mask and space as the site has them.
    """

    grid: str
    version: str


def encode_note(note: SiteNote) -> bytes:
    """Encode the note that a site adds to its answer."""
    return msgspec.msgpack.encode(note)


def decode_note(data: bytes, site: str) -> SiteNote:
    """Decode a site's note; raises ProtocolError if it is malformed."""
    try:
        return msgspec.msgpack.decode(data, type=SiteNote)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError(f"The note of {site} can't be read. Update that site.") from error


def encode_query(query: Query) -> tuple[bytes, dict[str, bytes]]:
    """Encode a query; returns its bytes and the arrays to store next to it, by digest."""
    arrays: dict[str, bytes] = {}
    arguments: dict[str, _Array | _Named] = {}
    for name, value in sorted(query.arguments.items()):
        data = np.ascontiguousarray(value, dtype="<f8").tobytes()
        if len(data) <= _INLINE:
            arguments[name] = _Array(value.shape, data)
        else:
            digest = hashlib.sha256(data).hexdigest()
            arrays[digest] = data
            arguments[name] = _Named(value.shape, digest)
    return msgspec.msgpack.encode(_Query(query.stage, query.statistic, arguments)), arrays


def sketch_query(data: bytes) -> Query:
    """Decode a query without its arrays, for checks before anything is fetched.

    Every array has its shape, is zero and uses no memory. Raises ProtocolError if the query is
    malformed.
    """
    body = _decode(data)
    arguments = {
        name: np.broadcast_to(np.float64(0.0), _sound_shape(value.shape))
        for name, value in body.arguments.items()
    }
    return Query(body.stage, body.statistic, arguments)


def decode_query(data: bytes, fetch: Callable[[str, int], bytes]) -> Query:
    """Decode a query of the centre.

    Raises ProtocolError if it is malformed, or an array is not the one that was named.

    Parameters
    ----------
    fetch : callable
        Returns the array of a digest, given the digest and the number of bytes.
    """
    body = _decode(data)
    arguments: dict[str, Array] = {}
    for name, value in body.arguments.items():
        size = _size(value.shape)
        content = value.data if isinstance(value, _Array) else fetch(value.digest, size)
        if isinstance(value, _Named) and hashlib.sha256(content).hexdigest() != value.digest:
            raise ProtocolError(f"The query's array '{name}' is not the one named. Discard it.")
        arguments[name] = _array(content, value.shape, name)
    return Query(body.stage, body.statistic, arguments)


def query_context(plan: Plan, number: int, data: bytes) -> bytes:
    """Return the 32-byte digest of a query: study, round and all its arguments."""
    label = f"consortium query 1|{plan.study.digest}|{number}|".encode()
    return hashlib.sha256(label + data).digest()


def _decode(data: bytes) -> _Query:
    try:
        return msgspec.msgpack.decode(data, type=_Query)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProtocolError("A query can't be read. Update the site or the centre.") from error


def _size(shape: tuple[int, ...]) -> int:
    return 8 * math.prod(_sound_shape(shape))


def _sound_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    size = 8 * math.prod(shape[:3])
    if len(shape) > 3 or min(shape, default=1) < 1 or size > MOST_ARRAY:
        raise ProtocolError(f"A query's array can't have the shape {shape[:4]}. Discard it.")
    return shape


def _array(content: bytes, shape: tuple[int, ...], name: str) -> Array:
    if len(content) != _size(shape):
        raise ProtocolError(f"The query's array '{name}' has the wrong length. Discard it.")
    array: Array = np.frombuffer(content, dtype="<f8").reshape(shape)
    if not bool(np.isfinite(array).all()):
        raise ProtocolError(
            f"The query's array '{name}' has other values than numbers. Discard it."
        )
    return array


def read_announcement(body: bytes) -> Mapping[str, Any]:
    """Parse the JSON object of an announcement; raises ProtocolError if it is not one."""
    try:
        value = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError("An announcement can't be read. Update the centre.") from error
    return value
