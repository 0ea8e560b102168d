"""The compiled MurmurHash3 against known values, a slow twin and scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils import murmurhash3_32 as theirs

from polyfm.data._murmur import hash_text, murmur3_32

WORD = 0xFFFFFFFF


def slow(data, seed):
    """The definition, word by word."""

    def turned(x, r):
        return ((x << r) | (x >> (32 - r))) & WORD

    h = seed
    for at in range(0, len(data), 4):
        piece = data[at : at + 4]
        k = turned(int.from_bytes(piece, "little") * 0xCC9E2D51 & WORD, 15) * 0x1B873593 & WORD
        h ^= k
        if len(piece) == 4:
            h = (turned(h, 13) * 5 + 0xE6546B64) & WORD
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & WORD
    h = (h ^ h >> 13) * 0xC2B2AE35 & WORD
    return h ^ h >> 16


def hashes(strings, seed=0, offset_type=np.int64):
    offsets = np.cumsum([0, *map(len, strings)]).astype(offset_type)
    return murmur3_32(np.frombuffer(b"".join(strings), np.uint8), offsets, seed).tolist()


# Published test vectors of the algorithm.
@pytest.mark.parametrize(
    ("data", "seed", "expected"),
    [
        (b"", 0, 0),
        (b"", 1, 0x514E28B7),
        (b"", WORD, 0x81F16F39),
        (b"\xff\xff\xff\xff", 0, 0x76293B50),
        (b"!Ce\x87", 0, 0xF55B516B),
        (b"!Ce\x87", 0x5082EDEE, 0x2362F9DE),
        (b"!Ce", 0, 0x7E4A8634),
        (b"!C", 0, 0xA0F7B07A),
        (b"!", 0, 0x72661CF4),
        (b"\0\0\0\0", 0, 0x2362F9DE),
        (b"Hello, world!", 0x9747B28C, 0x24884CBA),
        (b"The quick brown fox jumps over the lazy dog", 0x9747B28C, 0x2FA826CD),
    ],
)
def test_known_values(data, seed, expected):
    assert hashes([data], seed) == [expected]
    assert slow(data, seed) == expected


@given(st.lists(st.binary(max_size=20), max_size=8), st.integers(0, WORD))
def test_twin(strings, seed):
    assert hashes(strings, seed) == [slow(s, seed) for s in strings]
    assert hashes(strings, seed, np.int32) == hashes(strings, seed)


@given(st.text(max_size=12), st.integers(0, WORD))
def test_scikit_learn(text, seed):
    assert hash_text(text, seed) == theirs(text, seed, positive=True)


def test_strings_may_start_inside_the_buffer():
    """Arrow slices share the buffer of the whole."""
    buffer = np.frombuffer(b"..abcd", np.uint8)
    assert murmur3_32(buffer, np.array([2, 3, 6], np.int32)).tolist() == hashes([b"a", b"bcd"])
