"""What a row is: an operation that acts on each element alone, with all its rules on one line.

    unary("sin", INEXACT, lambda t, ans, x: mul(t, cos(x)))

A row gives the name, the dtypes taken, and for each operand how a tangent passes. Operands have one shape and one
dtype; a scalar literal may stand among them. Rules receive and give values, and speak in operations: whoever traces
records them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.ir import Literal, Primitive
from funcml.core.linear import UndefinedPrimal, Zero
from funcml.core.tracing import aval_of, bind
from funcml.primitives.batching import spread_at_front

__all__ = [
    "ALL", "ANY", "BITS", "COMPLEX", "FLOAT", "INEXACT", "INTEGER", "NUMERIC", "REAL",
    "Accepts", "Elementwise", "PYTHON_SCALARS", "add", "binary", "is_constant", "list_of", "ternary", "unary",
]

PYTHON_SCALARS = (float, int, bool, complex)


class Accepts:
    """A set of dtypes with the words that errors use for it."""

    def __init__(self, words: str, test: Callable):
        self.words = words
        self.test = test


ALL = Accepts("any dtype", lambda d: True)
ANY = Accepts("any dtype but keys", lambda d: not dtypes.is_key(d))
NUMERIC = Accepts("numbers", dtypes.is_numeric)
INEXACT = Accepts("floats or complex numbers", dtypes.is_inexact)
FLOAT = Accepts("floats", dtypes.is_float)
REAL = Accepts("real numbers or bool", lambda d: not dtypes.is_complex(d) and not dtypes.is_key(d))
COMPLEX = Accepts("complex numbers", dtypes.is_complex)
INTEGER = Accepts("integers", dtypes.is_integer)
BITS = Accepts("integers or bool", lambda d: dtypes.is_integer(d) or dtypes.is_bool(d))


class Elementwise(Primitive):
    """An elementwise primitive.

    `tangents[i](t, ans, *operands)` is what a tangent `t` of operand i contributes to that of the result; None, or a
    `Zero` that it gives, means nothing. `transposes[i](ct, *operands)` is the cotangent of operand i where the
    operation is linear in it. `result` maps the operands' dtype to that of the result.
    """

    elementwise = True

    def __init__(self, name: str, arity: int, accepts: Accepts, *, tangents=None, transposes=None, result=None):
        super().__init__(name)
        self.arity = arity
        self.accepts = accepts
        self.tangents = tangents if tangents is not None else (None,) * arity
        self.transposes = transposes if transposes is not None else (None,) * arity
        self.result = result

    def __call__(self, *operands, **params):
        for x in operands:
            if type(x) in PYTHON_SCALARS:
                operands = _match_scalars(operands)
                break
        return bind(self, operands, params)

    def type_rule(self, *avals, **params):
        first = avals[0]
        shape, dtype, weak = first.shape, first.dtype, first.weak_type
        if len(avals) != self.arity:
            raise TypeError(f"{self.name} takes {self.arity} operands, got {len(avals)}")
        for a in avals[1:]:
            if a.dtype != dtype:
                raise TypeError(
                    f"{self.name} requires arguments to have the same dtypes, got {list_of(avals)}; convert them with "
                    f"`.astype`, or use the function of funcml.numpy, which promotes"
                )
            if a.shape != shape:
                if a.shape != () and shape != ():
                    raise TypeError(
                        f"{self.name} expects operands of one shape, got {list_of(avals)}; broadcast them, or use the "
                        f"function of funcml.numpy, which does"
                    )
                shape = shape or a.shape
            weak = weak and a.weak_type
        if not self.accepts.test(dtype):
            raise TypeError(
                f"{self.name} expects {self.accepts.words}, got {list_of(avals)}: {self.name} does not accept dtype {dtype}"
            )
        out = dtype if self.result is None else self.result(dtype)
        return shaped(shape, out, weak and not dtypes.is_bool(out))

    # T(f)(x, dx) = sum over i of (df/dx_i) dx_i
    def jvp_rule(self, primals, tangents, **params):
        ans = bind(self, primals, params)
        total = None
        for t, rule in zip(tangents, self.tangents, strict=True):
            if type(t) is not Zero and rule is not None:
                part = rule(t, ans, *primals, **params)
                if type(part) is not Zero:
                    total = part if total is None else add(total, part)
        if total is None:
            aval = aval_of(ans)
            return ans, Zero(aval.update(dtype=dtypes.tangent_dtype(aval.dtype)))
        return ans, total

    def transpose_rule(self, ct, *operands, **params):
        cts = []
        for x, rule in zip(operands, self.transposes, strict=True):
            if type(x) is not UndefinedPrimal:
                cts.append(None)
            elif rule is None:
                raise self.missing("transpose_rule", "reverse-mode differentiation")
            else:
                cts.append(rule(ct, *operands, **params))
        return cts

    def transpose_mask(self, mask, index, operands, **params):
        return mask

    def batch_rule(self, axis, operands, dims, **params):
        mapped = {d for d in dims if d is not None}
        if len(mapped) == 1 and all(d is not None or is_constant(x) for x, d in zip(operands, dims, strict=True)):
            return bind(self, operands, params), mapped.pop()
        moved = [
            x if d is None and is_constant(x) else spread_at_front(axis, x, d)
            for x, d in zip(operands, dims, strict=True)
        ]
        return bind(self, moved, params), 0


def is_constant(x) -> bool:
    """Whether an operand is a scalar that stands in the program itself."""
    return type(x) is Literal or type(x) in PYTHON_SCALARS or isinstance(x, np.generic)


def _match_scalars(operands):
    for x in operands:
        if type(x) not in PYTHON_SCALARS:
            to = aval_of(x).dtype.type
            return [to(y) if type(y) in PYTHON_SCALARS else y for y in operands]
    return operands


def list_of(avals) -> str:
    """Types in the words of an error: `f32[3], f32[4]`."""
    return ", ".join(str(a) for a in avals)


def unary(name, accepts, tangent=None, transpose=None, result=None) -> Elementwise:
    """A row of one operand."""
    return Elementwise(name, 1, accepts, tangents=(tangent,), transposes=(transpose,), result=result)


def binary(name, accepts, tangents=(None, None), transposes=(None, None), result=None) -> Elementwise:
    """A row of two operands."""
    return Elementwise(name, 2, accepts, tangents=tangents, transposes=transposes, result=result)


def ternary(name, accepts, tangents=(None, None, None), transposes=(None, None, None), result=None) -> Elementwise:
    """A row of three operands."""
    return Elementwise(name, 3, accepts, tangents=tangents, transposes=transposes, result=result)


#: add: z' = x' + y'. It stands here because every `jvp_rule` adds its parts with it.
add = binary(
    "add",
    NUMERIC,
    (lambda t, ans, x, y: t, lambda t, ans, x, y: t),
    (lambda ct, x, y: ct, lambda ct, x, y: ct),
)
