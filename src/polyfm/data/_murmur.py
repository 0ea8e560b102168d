"""MurmurHash3, the variant for x86 of 32 bits, of many byte strings at once.

The algorithm is Austin Appleby's, which is in the public domain. Bytes are read in the order of
little-endian machines on every machine, so that a hash is the same everywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polyfm._jit import jit, prefetch
from polyfm._jit.words import load_word

# Distinct hashes are counted by the least one in each of 2^10 parts: within 3 %.
COUNT_BITS = 10
_BYTES_AHEAD = 2048
_C1 = np.uint32(0xCC9E2D51)
_C2 = np.uint32(0x1B873593)
_M1 = np.uint32(0x85EBCA6B)
_M2 = np.uint32(0xC2B2AE35)
_ADDED = np.uint32(0xE6546B64)


@jit
def _rotated(x, r):
    return np.uint32((x << np.uint32(r)) | (x >> np.uint32(32 - r)))


@jit
def _scrambled(k):
    return np.uint32(_rotated(np.uint32(k * _C1), 15) * _C2)


@jit
def _finished(h, length):
    h = np.uint32(h ^ np.uint32(length))
    h = np.uint32((h ^ (h >> np.uint32(16))) * _M1)
    h = np.uint32((h ^ (h >> np.uint32(13))) * _M2)
    return np.uint32(h ^ (h >> np.uint32(16)))


@jit
def _mixed(h, k):
    h = _rotated(np.uint32(h ^ _scrambled(np.uint32(k))), 13)
    return np.uint32(h * np.uint32(5) + _ADDED)


@jit
def _last_word(buffer, at, stop):
    """Return the last bytes of a string, fewer than eight, as one word."""
    if at + 8 <= buffer.size:
        return load_word(buffer, at) & ((np.uint64(1) << np.uint64(8 * (stop - at))) - np.uint64(1))
    word = np.uint64(0)
    for place in range(stop - at):
        word |= np.uint64(buffer[at + place]) << np.uint64(8 * place)
    return word


@jit
def hash_bytes(buffer, start, stop, seed):
    """Return the hash, a ``uint32``, of ``buffer[start:stop]``, an array of ``uint8``."""
    h = np.uint32(seed)
    half = np.uint64(32)
    at = start
    while at + 8 <= stop:
        word = load_word(buffer, at)
        h = _mixed(_mixed(h, word), word >> half)
        at += 8
    if at < stop:
        word = _last_word(buffer, at, stop)
        if at + 4 <= stop:
            h = _mixed(h, word)
            word >>= half
        h = np.uint32(h ^ _scrambled(np.uint32(word)))
    return _finished(h, stop - start)


@jit
def hash_all(buffer, offsets, seed, out):
    """Hash the strings ``buffer[offsets[i]:offsets[i + 1]]`` into ``out``, of ``uint32``."""
    for i in range(offsets.size - 1):
        if i & 7 == 0:
            # Left to itself, the processor is too late with columns beyond its cache: 3x slower.
            prefetch(buffer, offsets[i] + _BYTES_AHEAD)
            prefetch(offsets, i + _BYTES_AHEAD // 8)
        out[i] = hash_bytes(buffer, offsets[i], offsets[i + 1], seed)


def murmur3_32(
    buffer: NDArray[np.uint8], offsets: NDArray[np.integer], seed: int = 0
) -> NDArray[np.uint32]:
    """Return the hashes of byte strings that lie one after the other in a buffer.

    Parameters
    ----------
    buffer : ndarray of uint8
        The bytes of all strings.
    offsets : ndarray of int32 or int64 of shape (n + 1,)
        String i is ``buffer[offsets[i]:offsets[i + 1]]``.
    seed : int, default=0
        A number of 32 bits.

    Returns
    -------
    ndarray of uint32 of shape (n,)
        The same numbers as ``sklearn.utils.murmurhash3_32(text, seed, positive=True)``.
    """
    out = np.empty(len(offsets) - 1, dtype=np.uint32)
    hash_all(buffer, offsets, np.uint32(seed), out)
    return out


def hash_text(text: str, seed: int = 0) -> int:
    """Return the hash of one text, as an int of 32 bits."""
    buffer = np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)
    return int(murmur3_32(buffer, np.array([0, len(buffer)]), seed)[0])


@jit
def fold(hashes, gone, n_bits, cols, least):
    """Take columns from the low bits of hashes, and keep for a count the least per high bits.

    Parameters
    ----------
    hashes : ndarray of uint32
        Of the cells.
    gone : ndarray of bool
        Cells without a value, whose column is -1; of size 0 if there are none.
    n_bits : int
        Of a column's number.
    cols : ndarray of int32
        Is filled.
    least : ndarray of uint32
        Of each of the parts that the high bits tell apart, the least of the other bits so far; of
        size 0 if nothing is to be counted.
    """
    low = np.uint32((1 << n_bits) - 1)
    for i in range(hashes.size):
        if gone.size and gone[i]:
            cols[i] = -1
            continue
        h = hashes[i]
        cols[i] = h & low
        if least.size:
            part = h >> np.uint32(32 - COUNT_BITS)
            rest = h & np.uint32((1 << (32 - COUNT_BITS)) - 1)
            if rest < least[part]:
                least[part] = rest
