import hashlib
import hmac

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from consortium.errors import ProtocolError, SignatureError
from consortium.secagg import crypto, keystream
from tests.support.secagg_wire import ring

PRIME = 2**255 - 19


def hkdf(key: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    """RFC 5869, written out."""
    extracted = hmac.digest(salt or bytes(32), key, "sha256")
    block, stream = b"", b""
    while len(stream) < length:
        block = hmac.digest(extracted, block + info + bytes([len(stream) // 32 + 1]), "sha256")
        stream += block
    return stream[:length]


def test_hkdf_rfc_5869_case_1() -> None:
    expected = (
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
    )
    key, salt = bytes([11] * 22), bytes(range(13))
    assert hkdf(key, salt, bytes(range(0xF0, 0xFA)), 42).hex() == expected


@given(st.binary(min_size=31, max_size=32), st.binary(max_size=32), st.integers(1, 100))
def test_derive_is_hkdf_of_the_packed_info(key: bytes, salt: bytes, length: int) -> None:
    info = ("label", b"\x00", 7)
    expected = hkdf(key, salt, crypto.pack_tuple(*info), length)
    assert crypto.derive(key, *info, length=length, salt=salt) == expected


def test_x25519_rfc_7748_section_6_1() -> None:
    bob = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
    alice_public = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
    shared = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"
    private = X25519PrivateKey.from_private_bytes(bob)
    assert crypto.shared_secret(private, bytes.fromhex(alice_public)).hex() == shared


def test_aes_ctr_nist_sp_800_38a_f_5_1() -> None:
    key = bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c")
    counter = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
    plaintext = bytes.fromhex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51")
    ciphertext = "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff"
    stream = keystream.key_stream(key + counter, 32)
    assert bytes(a ^ b for a, b in zip(plaintext, stream, strict=True)).hex() == ciphertext


LOW_ORDER = [
    0,
    1,
    PRIME - 1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
    PRIME,
    PRIME + 1,
]


@pytest.mark.parametrize("u", LOW_ORDER)
@pytest.mark.parametrize("top", [0, 1 << 255])
def test_low_order_keys_are_refused_as_the_library_does(u: int, top: int) -> None:
    public = (u + top).to_bytes(32, "little")
    private = X25519PrivateKey.from_private_bytes(bytes(range(32)))
    with pytest.raises(ValueError):
        private.exchange(X25519PublicKey.from_public_bytes(public))
    with pytest.raises(ProtocolError):
        crypto.shared_secret(private, public)


@given(st.lists(st.text(max_size=3), max_size=3), st.lists(st.text(max_size=3), max_size=3))
def test_packing_is_unambiguous(one: list[str], other: list[str]) -> None:
    assert (crypto.pack_tuple(*one) == crypto.pack_tuple(*other)) == (one == other)


@given(st.binary(max_size=100))
def test_decrypt_undoes_encrypt(plaintext: bytes) -> None:
    sealed = crypto.encrypt(b"k" * 32, plaintext)
    assert len(sealed) == len(plaintext) + crypto.SEALED_OVERHEAD
    assert crypto.decrypt(b"k" * 32, sealed, "It") == plaintext
    assert sealed == crypto.encrypt(b"k" * 32, plaintext)


@given(st.integers(0, 8 * (48 + 20) - 1))
def test_any_flipped_bit_is_noticed(bit: int) -> None:
    sealed = bytearray(crypto.encrypt(b"k" * 32, b"p" * 20))
    sealed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(SignatureError):
        crypto.decrypt(b"k" * 32, bytes(sealed), "It")


def test_a_wrong_key_or_a_short_message_is_noticed() -> None:
    sealed = crypto.encrypt(b"k" * 32, b"p" * 20)
    for key, data in ((b"j" * 32, sealed), (b"k" * 32, sealed[:40]), (b"k" * 32, b"")):
        with pytest.raises(SignatureError):
            crypto.decrypt(key, data, "It")


def test_two_plaintexts_under_one_key_never_share_a_key_stream() -> None:
    """With a fixed key and nonce, the difference of ciphertexts would be that of plaintexts."""
    one, other = (crypto.encrypt(b"k" * 32, bytes([b]) * 64)[32:96] for b in (0, 1))
    difference = {a ^ b for a, b in zip(one, other, strict=True)}
    assert len(difference) > 20


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("entries", [0, 1, 7, 32768, 32769, 70001])
def test_streams_in_chunks_are_the_whole_stream(bits: int, entries: int) -> None:
    keys = [hashlib.sha256(bytes([i])).digest() for i in range(3)]
    before = ring(np.arange(entries), bits)
    streams = [keystream.key_stream(key, before.nbytes) for key in keys]
    one, two, three = (ring(np.frombuffer(s, before.dtype), bits) for s in streams)
    total = before.copy()
    keystream.add_streams(total, keys[:2], keys[2:])
    assert np.array_equal(total, before + one + two - three)
    keystream.add_streams(total, keys[2:], keys[:2])
    assert np.array_equal(total, before)
