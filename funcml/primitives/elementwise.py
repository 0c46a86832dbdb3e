"""Operations that act on each element alone: the class, arithmetic, comparison, logic, selection, conversion.

A row of the table says everything: name, what dtypes it takes, and for each operand how a tangent passes.

    unary("sin", INEXACT, lambda t, ans, x: mul(t, cos(x)))

Operands have one shape and one dtype; a scalar literal may stand among them. Rules receive and give values, and
speak in the operations of this file: whoever traces records them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.ir import Literal, Primitive
from funcml.core.linear import Zero, is_undefined
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import broadcast_in_dim, expand_dims
from funcml.primitives.batching import spread_at_front
from funcml.primitives.tangents import scalar_of

PYTHON_SCALARS = (float, int, bool, complex)


class Accepts:
    """A set of dtypes with the words that errors use for it."""

    def __init__(self, words: str, test: Callable):
        self.words = words
        self.test = test


ANY = Accepts("any dtype", lambda d: not dtypes.is_key(d))
NUMERIC = Accepts("numbers", dtypes.is_numeric)
INEXACT = Accepts("floats or complex numbers", dtypes.is_inexact)
FLOAT = Accepts("floats", dtypes.is_float)
REAL = Accepts("real numbers or bool", lambda d: not dtypes.is_complex(d) and not dtypes.is_key(d))
COMPLEX = Accepts("complex numbers", dtypes.is_complex)
INTEGER = Accepts("integers", dtypes.is_integer)
BITS = Accepts("integers or bool", lambda d: dtypes.is_integer(d) or dtypes.is_bool(d))


class Elementwise(Primitive):
    """An elementwise primitive.

    `tangents[i](t, ans, *operands)` is what a tangent `t` of operand i contributes to that of the result; None
    means nothing. `transposes[i](ct, *operands)` is the cotangent of operand i where the operation is linear in it.
    `result` maps the operands' dtype to that of the result.
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
                    f"{self.name} expects operands of one dtype, got {_list(avals)}; convert them with `.astype`, or "
                    f"use the function of funcml.numpy, which promotes"
                )
            if a.shape != shape:
                if a.shape != () and shape != ():
                    raise TypeError(
                        f"{self.name} expects operands of one shape, got {_list(avals)}; broadcast them, or use the "
                        f"function of funcml.numpy, which does"
                    )
                shape = shape or a.shape
            weak = weak and a.weak_type
        if not self.accepts.test(dtype):
            raise TypeError(f"{self.name} expects {self.accepts.words}, got {_list(avals)}")
        out = dtype if self.result is None else self.result(dtype)
        return shaped(shape, out, weak and out == dtype)

    # T(f)(x, dx) = sum over i of (df/dx_i) dx_i
    def jvp_rule(self, primals, tangents, **params):
        ans = bind(self, primals, params)
        total = None
        for t, rule in zip(tangents, self.tangents, strict=True):
            if type(t) is not Zero and rule is not None:
                part = rule(t, ans, *primals, **params)
                total = part if total is None else add_any(total, part)
        if total is None:
            aval = aval_of(ans)
            return ans, Zero(aval.update(dtype=dtypes.tangent_dtype(aval.dtype)))
        return ans, total

    def transpose_rule(self, ct, *operands, **params):
        cts = []
        for x, rule in zip(operands, self.transposes, strict=True):
            if not is_undefined(x):
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
        if len(mapped) == 1 and all(d is not None or _is_literal(x) for x, d in zip(operands, dims, strict=True)):
            return bind(self, operands, params), mapped.pop()
        moved = [
            x if d is None and _is_literal(x) else spread_at_front(axis, x, d)
            for x, d in zip(operands, dims, strict=True)
        ]
        return bind(self, moved, params), 0


def _is_literal(x) -> bool:
    return type(x) is Literal or type(x) in PYTHON_SCALARS or isinstance(x, np.generic)


def _match_scalars(operands):
    dtype = next((aval_of(x).dtype for x in operands if type(x) not in PYTHON_SCALARS), None)
    if dtype is None:
        return operands
    return [dtype.type(x) if type(x) in PYTHON_SCALARS else x for x in operands]


def _list(avals) -> str:
    return ", ".join(str(a) for a in avals)


def unary(name, accepts, tangent=None, transpose=None, result=None) -> Elementwise:
    """A row of one operand."""
    return Elementwise(name, 1, accepts, tangents=(tangent,), transposes=(transpose,), result=result)


def binary(name, accepts, tangents=(None, None), transposes=(None, None), result=None) -> Elementwise:
    """A row of two operands."""
    return Elementwise(name, 2, accepts, tangents=tangents, transposes=transposes, result=result)


# ---- linear arithmetic ----------------------------------------------------------------------------------------

#: add: z' = x' + y'
add = binary(
    "add",
    NUMERIC,
    (lambda t, ans, x, y: t, lambda t, ans, x, y: t),
    (lambda ct, x, y: ct, lambda ct, x, y: ct),
)
#: the sum of two tangents or cotangents
add_any = add
#: sub: z' = x' - y'
sub = binary(
    "sub",
    NUMERIC,
    (lambda t, ans, x, y: t, lambda t, ans, x, y: neg(t)),
    (lambda ct, x, y: ct, lambda ct, x, y: neg(ct)),
)
neg = unary("neg", NUMERIC, lambda t, ans, x: neg(t), lambda ct, x: neg(ct))
#: mul: z' = x' y + x y'
mul = binary(
    "mul",
    NUMERIC,
    (lambda t, ans, x, y: mul(t, y), lambda t, ans, x, y: mul(x, t)),
    (lambda ct, x, y: mul(ct, y), lambda ct, x, y: mul(x, ct)),
)
#: div: z' = x' / y - (z / y) y'
div = binary(
    "div",
    NUMERIC,
    (lambda t, ans, x, y: div(t, y), lambda t, ans, x, y: neg(mul(t, div(ans, y)))),
    (lambda ct, x, y: div(ct, y), None),
)

# ---- comparison -----------------------------------------------------------------------------------------------


def _to_bool(dtype):
    return dtypes.bool_


eq = binary("eq", ANY, result=_to_bool)
ne = binary("ne", ANY, result=_to_bool)
lt = binary("lt", REAL, result=_to_bool)
le = binary("le", REAL, result=_to_bool)
gt = binary("gt", REAL, result=_to_bool)
ge = binary("ge", REAL, result=_to_bool)

# ---- logic on bits --------------------------------------------------------------------------------------------

and_ = binary("and", BITS)
or_ = binary("or", BITS)
xor = binary("xor", BITS)
not_ = unary("not", BITS)

# ---- selection ------------------------------------------------------------------------------------------------


class SelectN(Primitive):
    """select_n(which, *cases): the element of `cases[which]`; which is bool or int32, of their shape or a scalar."""

    makes_masks = True

    def type_rule(self, which, *cases):
        first = cases[0]
        if any(c.dtype != first.dtype or c.shape != first.shape for c in cases):
            raise TypeError(f"select_n expects cases of one type, got {_list(cases)}")
        if which.shape not in ((), first.shape):
            raise TypeError(f"select_n: the selector {which} must be a scalar or have the shape of the cases {first}")
        limit = 2 if dtypes.is_bool(which.dtype) else None
        if limit is None and which.dtype != np.dtype("int32"):
            raise TypeError(f"select_n: the selector must be bool or i32, got {which}")
        if limit is not None and len(cases) > limit:
            raise TypeError(f"select_n: a bool selector chooses between 2 cases, got {len(cases)}; use an i32 one")
        return shaped(first.shape, first.dtype, all(c.weak_type for c in cases))

    # out' = select(which, *cases')
    def jvp_rule(self, primals, tangents):
        which, *cases = primals
        out = bind(self, primals)
        if all(type(t) is Zero for t in tangents[1:]):
            return out, Zero(tangents[1].aval)
        some = next(aval_of(t) for t in tangents[1:] if type(t) is not Zero)
        filled = [_zeros(some) if type(t) is Zero else t for t in tangents[1:]]
        return out, bind(self, (which, *filled))

    # ct_i = ct where i is selected, structurally zero elsewhere
    def transpose_rule(self, ct, which, *cases):
        zero = _zeros(aval_of(ct))
        cts = [None]
        for i, case in enumerate(cases):
            chosen = [ct if j == i else zero for j in range(len(cases))]
            cts.append(bind(self, (which, *chosen)) if is_undefined(case) else None)
        return cts

    def transpose_mask(self, mask, index, operands):
        which, *cases = operands
        shape = aval_of(cases[0]).shape
        if dtypes.is_bool(aval_of(which).dtype):
            chosen = which if index == 2 else not_(which)
        else:
            chosen = eq(which, np.int32(index - 1))
        chosen = broadcast_in_dim(chosen, shape, tuple(range(aval_of(chosen).ndim)))
        return chosen if mask is None else and_(mask, chosen)

    def batch_rule(self, axis, operands, dims):
        which, *cases = operands
        spread = [spread_at_front(axis, c, d) for c, d in zip(cases, dims[1:], strict=True)]
        if dims[0] is None and aval_of(which).ndim == 0:
            return bind(self, (which, *spread)), 0
        which = spread_at_front(axis, which, dims[0])
        missing = aval_of(spread[0]).ndim - aval_of(which).ndim
        if missing:
            axes = tuple(range(1, 1 + missing))
            shape = aval_of(spread[0]).shape
            which = broadcast_in_dim(expand_dims(which, axes), shape, tuple(range(len(shape))))
        return bind(self, (which, *spread)), 0


def _zeros(aval):
    return broadcast_in_dim(scalar_of(aval, 0), aval.shape)


select_n_p = SelectN("select_n")


def select_n(which, *cases):
    """`cases[which]` element by element; `which` is bool (two cases: false first) or i32."""
    return bind(select_n_p, (which, *cases))


def select(condition, on_true, on_false):
    """`on_true` where `condition`, else `on_false`; all of one shape (`condition` may be a scalar)."""
    return bind(select_n_p, (condition, on_false, on_true))


# ---- conversion -----------------------------------------------------------------------------------------------


class Convert(Primitive):
    """x as another dtype. Linear between inexact dtypes; everything else has no derivative."""

    elementwise = True

    def type_rule(self, x, *, dtype, weak_type):
        if dtypes.is_key(x.dtype) or dtypes.is_key(dtype):
            raise TypeError(f"convert of {x}: keys are not numbers; use random.key_data and random.wrap_key_data")
        return shaped(x.shape, dtype, weak_type)

    def jvp_rule(self, primals, tangents, *, dtype, weak_type):
        (x,), (t,) = primals, tangents
        out = convert(x, dtype, weak_type)
        if type(t) is Zero or not dtypes.is_inexact(dtype):
            return out, Zero(aval_of(out).update(dtype=dtypes.tangent_dtype(dtype)))
        return out, convert(t, dtype, weak_type)

    def transpose_rule(self, ct, x, *, dtype, weak_type):
        return [convert(ct, x.aval.dtype, x.aval.weak_type)]

    def transpose_mask(self, mask, index, operands, **params):
        return mask

    def batch_rule(self, axis, operands, dims, **params):
        return bind(self, operands, params), dims[0]


convert_p = Convert("convert")


def convert(x, dtype, weak_type: bool = False):
    """`x` as `dtype` (an `np.dtype`); nothing is recorded where nothing changes. Complex to real drops the imaginary part."""
    aval = aval_of(x)
    if aval.dtype == dtype and aval.weak_type == weak_type and type(x) not in PYTHON_SCALARS:
        return x
    return bind(convert_p, (x,), {"dtype": dtype, "weak_type": weak_type})


# ---- a few functions that the transforms themselves need --------------------------------------------------------

exp = unary("exp", INEXACT, lambda t, ans, x: mul(t, ans))
log = unary("log", INEXACT, lambda t, ans, x: div(t, x))
sin = unary("sin", INEXACT, lambda t, ans, x: mul(t, cos(x)))
cos = unary("cos", INEXACT, lambda t, ans, x: neg(mul(t, sin(x))))
#: tanh' = 1 - tanh^2
tanh = unary("tanh", INEXACT, lambda t, ans, x: mul(t, sub(1.0, mul(ans, ans))))
