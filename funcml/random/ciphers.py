"""Block ciphers as generators: E_k(x), the words of a counter x under the words of a key k, element by element.

    threefry4x32 : ([k1, k2, k3, k4], [x1, x2, x3, x4]) -> [y1, y2, y3, y4]      20 rounds
    philox2x32   : ([k1], [x1, x2]) -> [y1, y2]                                  10 rounds
    philox4x32   : ([k1, k2], [x1, x2, x3, x4]) -> [y1, y2, y3, y4]              10 rounds

All words are u32 of one shape. Threefry of two words is a primitive (`primitives.random_bits`).

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
"""

from __future__ import annotations

from funcml import dtypes
from funcml.primitives import elementwise as ew
from funcml.primitives.bits import shift_left, shift_right_logical

__all__ = ["philox2x32", "philox4x32", "threefry4x32"]

# ---- threefry --------------------------------------------------------------------------------------------------

_PARITY = 0x1BD11BDA
_ROTATIONS = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))


# One mix: a += b; b = (b <<< r) ^ a. Rounds mix the pairs (1, 2), (3, 4) and (1, 4), (3, 2) in turn; after every four the
# key words are added, which move on by one, and the number of the group.
def threefry4x32(key, counter) -> list:
    """The four words of the cipher's result."""
    parity = ew.xor(ew.xor(ew.xor(key[0], key[1]), ew.xor(key[2], key[3])), _PARITY)
    keys = [*key, parity]
    y = [ew.add(x, k) for x, k in zip(counter, keys, strict=False)]
    for i in range(20):
        partners = (1, 3) if i % 2 == 0 else (3, 1)
        for a, b, r in zip((0, 2), partners, _ROTATIONS[i % 8], strict=True):
            y[a] = ew.add(y[a], y[b])
            y[b] = ew.xor(_rotate_left(y[b], r), y[a])
        if i % 4 == 3:
            group = i // 4 + 1
            y = [ew.add(word, keys[(group + j) % 5]) for j, word in enumerate(y)]
            y[3] = ew.add(y[3], group)
    return y


def _rotate_left(x, n: int):
    return ew.or_(shift_left(x, n), shift_right_logical(x, 32 - n))


# ---- philox ----------------------------------------------------------------------------------------------------

_MULTIPLIER = 0xD256D193
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)


def _halves_of_product(x, factor: int):
    """The high and the low 32 bits of the product of 64."""
    product = ew.mul(ew.convert(x, dtypes.uint64), factor)
    return ew.convert(shift_right_logical(product, 32), dtypes.uint32), ew.convert(product, dtypes.uint32)


# (x, y) -> (high(M x) ^ k ^ y, low(M x)), the key growing by a constant between the rounds
def philox2x32(key, counter) -> list:
    """The two words of the cipher's result."""
    (k,), (x, y) = key, counter
    for i in range(10):
        k = ew.add(k, _WEYL[0]) if i else k
        high, low = _halves_of_product(x, _MULTIPLIER)
        x, y = ew.xor(ew.xor(high, y), k), low
    return [x, y]


def philox4x32(key, counter) -> list:
    """The four words of the cipher's result."""
    (k1, k2), (x1, y1, x2, y2) = key, counter
    for i in range(10):
        if i:
            k1, k2 = ew.add(k1, _WEYL[0]), ew.add(k2, _WEYL[1])
        (high1, low1), (high2, low2) = (_halves_of_product(x, m) for x, m in zip((x1, x2), _MULTIPLIERS, strict=True))
        x1, y1, x2, y2 = ew.xor(ew.xor(high2, y1), k1), low2, ew.xor(ew.xor(high1, y2), k2), low1
    return [x1, y1, x2, y2]
