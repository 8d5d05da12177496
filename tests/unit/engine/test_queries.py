"""Queries as bytes: an inverse, and refusals of everything that is not one."""

import hashlib
from contextlib import suppress

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from consortium.algorithms.base import Query
from consortium.engine.queries import (
    SiteNote,
    decode_note,
    decode_query,
    encode_note,
    encode_query,
    query_context,
    read_announcement,
)
from consortium.errors import ProtocolError
from consortium.study.plan import make_plan
from tests.support.cases import make_sites, make_study, shape_of

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
ARRAYS = arrays(np.float64, array_shapes(max_dims=3, max_side=5), elements=NUMBERS)
QUERIES = st.builds(
    Query,
    st.text(max_size=20),
    st.text(max_size=20),
    st.dictionaries(st.text(max_size=10), ARRAYS, max_size=4),
)


def nothing_beside(digest, size):
    raise AssertionError("no array lies beside this query")


def same(one, other):
    assert (one.stage, one.statistic) == (other.stage, other.statistic)
    assert one.arguments.keys() == other.arguments.keys()
    for name, value in one.arguments.items():
        assert type(value) is type(other.arguments[name])
        assert np.array_equal(value, other.arguments[name])
        assert np.shape(value) == np.shape(other.arguments[name])


def raw(**changes):
    """Bytes of a query with one array whose fields are as told."""
    array = {"type": "array", "shape": [2], "data": bytes(16), **changes}
    content = {"stage": "ica", "statistic": "rotation", "arguments": {"x": array}}
    return msgspec.msgpack.encode(content)


@given(QUERIES)
def test_decoding_undoes_encoding(query):
    body, beside = encode_query(query)
    same(decode_query(body, lambda digest, size: beside[digest]), query)
    assert encode_query(query) == (body, beside)


def test_a_large_array_is_stored_once_and_named():
    basis = np.random.default_rng(0).standard_normal((700, 5))
    first, beside = encode_query(Query("ica", "rotation", {"whitening": basis, "step": np.ones(1)}))
    second, again = encode_query(
        Query("ica", "rotation", {"whitening": basis, "step": np.zeros(1)})
    )
    assert beside == again
    assert beside == {hashlib.sha256(basis.tobytes()).hexdigest(): basis.tobytes()}
    assert len(first) < 200
    assert first != second

    def fetch(digest, size):
        assert size == basis.nbytes
        return beside[digest]

    same(
        decode_query(first, fetch),
        Query("ica", "rotation", {"whitening": basis, "step": np.ones(1)}),
    )


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_order_and_precision_do_not_show(order):
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
    stored = np.asarray(matrix, order=order)
    body, _ = encode_query(Query("s", "t", {"x": stored}))
    assert np.array_equal(decode_query(body, nothing_beside).arguments["x"], matrix)
    assert body == encode_query(Query("s", "t", {"x": matrix}))[0]


def test_an_array_that_is_not_the_one_named_is_refused():
    basis = np.ones((700, 5))
    body, (beside,) = encode_query(Query("ica", "rotation", {"whitening": basis}))
    assert len(beside) == 64
    for forged in (np.zeros((700, 5)).tobytes(), basis.tobytes()[:-8], b""):
        with pytest.raises(ProtocolError, match="whitening"):
            decode_query(body, lambda digest, size, data=forged: data)


@pytest.mark.parametrize(
    "changes",
    [
        {"data": bytes(15)},
        {"data": bytes(24)},
        {"data": b""},
        {"shape": [0], "data": b""},
        {"shape": [-1]},
        {"shape": [-1], "data": b""},
        {"shape": [-1, -2]},
        {"shape": [-1, -1], "data": b""},
        {"shape": [0, 2**62], "data": b""},
        {"shape": [2**40]},
        {"shape": [2**32, 2**32]},
        {"shape": [2**63, 2]},
        {"shape": [1, 1, 1, 2]},
        {"shape": [1] * 1000},
        {"data": np.array([1.0, np.nan]).tobytes()},
        {"data": np.array([np.inf, 1.0]).tobytes()},
        {"shape": "2"},
        {"shape": [2.5]},
        {"type": "object"},
        {"extra": 1},
    ],
)
def test_malformed_oversized_and_unreal_arrays_are_refused(changes):
    assert np.array_equal(decode_query(raw(), nothing_beside).arguments["x"], np.zeros(2))
    with pytest.raises(ProtocolError):
        decode_query(raw(**changes), nothing_beside)


def test_a_large_named_array_is_refused_before_it_is_fetched():
    array = {"type": "named", "shape": [2**20, 2**20], "digest": "0" * 64}
    content = {"stage": "s", "statistic": "t", "arguments": {"x": array}}
    with pytest.raises(ProtocolError, match="shape"):
        decode_query(msgspec.msgpack.encode(content), nothing_beside)


@given(st.binary(max_size=200))
def test_noise_is_refused(data):
    for read in (lambda d: decode_query(d, nothing_beside), lambda d: decode_note(d, "north")):
        with pytest.raises(ProtocolError):
            read(data)
    with suppress(ProtocolError):
        assert isinstance(read_announcement(data), dict)


@given(st.binary(min_size=1, max_size=3), st.integers(0, 60))
def test_altered_queries_are_refused_or_are_queries(patch, place):
    body = bytearray(raw())
    body[place : place + len(patch)] = patch
    with suppress(ProtocolError):
        assert isinstance(decode_query(bytes(body), nothing_beside), Query)


@given(st.text(max_size=70), st.text(max_size=9))
def test_notes_are_undone(grid, version):
    note = SiteNote(grid, version)
    assert decode_note(encode_note(note), "north") == note


@pytest.mark.parametrize("note", [b"", {"subjects": 3, "samples": 60, "grid": "", "version": "1"}])
def test_a_note_that_states_a_number_is_refused_and_its_sender_named(note):
    with pytest.raises(ProtocolError, match="north"):
        decode_note(msgspec.msgpack.encode(note), "north")


def test_the_context_binds_study_round_and_arguments():
    plans = [
        make_plan(make_study(epsilon=epsilon), shape_of(make_sites())) for epsilon in (8.0, 8.5)
    ]
    contexts = {
        query_context(plan, number, body)
        for plan in plans
        for number in (1, 11)
        for body in (b"", b"1", b"|1")
    }
    assert len(contexts) == 12
    assert all(len(context) == 32 for context in contexts)


@pytest.mark.parametrize("body", [b"[1]", b"1", b"", b"{", b"[" * 100_000, b'{"a":1}{', b"\xff"])
def test_an_announcement_is_a_json_object(body):
    with pytest.raises(ProtocolError, match="announcement"):
        read_announcement(body)
