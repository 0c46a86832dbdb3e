"""What random programs mean: NumPy, one operation after the other, and Python's own loops and branches.

Random programs are written with two names: `xp` for the operations and `lib` for control flow and the like. Here both are
plain NumPy and Python. `Watched` measures how near each operation came to a jump or a kink; a program that comes too near means
nothing, since a rounding error decides there.
"""

from __future__ import annotations

import numpy as np


class Watched:
    """NumPy, whose `gap` is the least distance of an operand to a jump or a kink of what was computed of it."""

    def __init__(self) -> None:
        self.gap = np.inf

    def __getattr__(self, name):
        return getattr(np, name)

    def near(self, distances) -> None:
        """Takes distances into account; those of exact values (integers, booleans) are not any."""
        distances = np.asarray(distances)
        if distances.dtype.kind == "f" and distances.size:
            self.gap = min(self.gap, float(np.min(np.abs(distances))))

    def near_whole(self, x) -> None:
        """Jumps at whole numbers."""
        self.near(x - np.round(x))

    def near_ties(self, x, axis) -> None:
        """Jumps where two elements along an axis are equal."""
        self.near(np.diff(np.sort(x, axis), axis=-1 if axis is None else axis))

    def _at_zero(name):
        def function(self, x):
            self.near(x)
            return getattr(np, name)(x)

        return function

    sign, abs, sqrt, log, reciprocal = map(_at_zero, ("sign", "abs", "sqrt", "log", "reciprocal"))

    def divide(self, x, y):
        self.near(y)
        return np.divide(x, y)

    def power(self, x, y):
        self.near(x)
        return np.power(x, y)

    def floor(self, x):
        self.near_whole(x)
        return np.floor(x)

    def ceil(self, x):
        self.near_whole(x)
        return np.ceil(x)

    def round(self, x):
        self.near_whole(x - 0.5)
        return np.round(x)

    def remainder(self, x, y):
        if np.asarray(x).dtype.kind == "f":
            self.near_whole(x / y)
        return np.remainder(x, y)

    def clip(self, x, low, high):
        self.near(x - low)
        self.near(x - high)
        return np.clip(x, low, high)

    def _comparison(name):
        def compare(self, x, y):
            self.near(np.subtract(x, y, dtype=float) if np.result_type(x, y).kind == "f" else 1)
            return getattr(np, name)(x, y)

        return compare

    less, greater_equal, maximum, minimum = map(_comparison, ("less", "greater_equal", "maximum", "minimum"))

    def _ordering(name):
        def ordering(self, x, axis=None, **options):
            self.near_ties(x, axis)
            if name == "argsort":
                options["kind"] = "stable"
            return getattr(np, name)(x, axis=axis, **options)

        return ordering

    sort, argsort, max, min, argmax, argmin = map(_ordering, ("sort", "argsort", "max", "min", "argmax", "argmin"))


class Loops:
    """Control flow as Python has it, with the signatures of `funcml.lax`."""

    @staticmethod
    def cond(predicate, true_fn, false_fn, *operands):
        return true_fn(*operands) if predicate else false_fn(*operands)

    @staticmethod
    def scan(body, carry, xs, reverse=False, unroll=1):
        order = range(len(xs))[::-1] if reverse else range(len(xs))
        ys = [None] * len(xs)
        for i in order:
            carry, ys[i] = body(carry, xs[i])
        return carry, np.stack(ys)

    @staticmethod
    def fori_loop(lower, upper, body, carry):
        for i in range(int(lower), int(upper)):
            carry = body(np.int32(i), carry)
        return carry

    @staticmethod
    def while_loop(going, body, carry):
        while going(carry):
            carry = body(carry)
        return carry

    @staticmethod
    def mapped(body, *arrays):
        return np.stack([body(*row) for row in zip(*arrays, strict=True)])

    @staticmethod
    def put(x, index, how, value):
        x = np.array(x)
        if how == "set":
            x[index] = value
        elif how == "add":
            np.add.at(x, index, value)
        else:
            np.multiply.at(x, index, value)
        return x

    @staticmethod
    def called(body, *operands):
        return body(*operands)

    jitted = checkpointed = called
