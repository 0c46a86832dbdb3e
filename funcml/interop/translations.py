"""What each primitive of JAX is in funcml.

    translate : (eqn, operands) -> results

`TABLE[name]` is a function `(eqn, *operands, **params)`; parameters that are None, and those that say nothing of the values
(`IGNORED`), are left out. Programs within equations are in `programs` and `control_flow`, linear algebra in `matrices`, which
add their rows to the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from funcml.core.errors import MissingRuleError
from funcml.core.tracing import aval_of
from funcml.interop.jaxprs import aval_from_jax, dtype_from_jax, where
from funcml.primitives import bits, elementwise, identities, powers, special, transcendental
from funcml.primitives.axes import (
    broadcast_in_dim,
    expand_dims,
    reduce_or,
    reduce_sum,
    reshape,
    squeeze,
    transpose,
)
from funcml.primitives.contraction import dot_general
from funcml.primitives.gather_scatter import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    gather,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from funcml.primitives.indexing import dynamic_slice, dynamic_update_slice
from funcml.primitives.keys import random_unwrap, random_wrap
from funcml.primitives.random_bits import rng_bit_generator, threefry2x32
from funcml.primitives.reductions import (
    argmax,
    argmin,
    cumlogsumexp,
    cummax,
    cummin,
    cumprod,
    cumsum,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_prod,
    reduce_xor,
)
from funcml.primitives.rows import is_constant
from funcml.primitives.shaping import concatenate, iota, pad, rev, slice_, slice_in_dim, split
from funcml.primitives.sorting import sort, top_k
from funcml.random.bits import random_bits
from funcml.random.gammas import gamma_of, loggamma_of
from funcml.random.keys import fold_in, key, subkeys
from funcml.vectorise import vmap

__all__ = ["IGNORED", "TABLE", "UntranslatedPrimitiveError", "rule", "translate"]

#: parameters that say where and how well to compute, not what
IGNORED = frozenset({"sharding", "out_sharding", "accuracy", "unroll"})

TABLE: dict[str, Callable] = {}


class UntranslatedPrimitiveError(MissingRuleError):
    """A function of JAX uses an operation that funcml has no counterpart of."""


def rule(*names: str):
    """Enters a function into the table under these names."""

    def enter(function):
        TABLE.update(dict.fromkeys(names, function))
        return function

    return enter


def translate(eqn, operands) -> list:
    """The results of an equation of JAX on values of ours."""
    name = eqn.primitive.name.replace("-", "_")
    found = TABLE.get(name)
    if found is None:
        raise _untranslated(eqn, "funcml has no counterpart of it")
    params = {k: v for k, v in eqn.params.items() if v is not None and k not in IGNORED}
    try:
        results = found(eqn, *operands, **params)
    except Exception as error:
        if not hasattr(error, "__notes__") and not isinstance(error, UntranslatedPrimitiveError):
            error.add_note(f"in the JAX primitive `{name}`, from {where(eqn)}")
        raise
    results = list(results) if eqn.primitive.multiple_results else [results]
    return [_checked(eqn, x, v) for x, v in zip(results, eqn.outvars, strict=True)]


def _checked(eqn, x, var):
    expected, got = aval_from_jax(var.aval), aval_of(x)
    if got.shape != expected.shape or got.dtype != expected.dtype:
        raise TypeError(f"the translation of the JAX primitive `{eqn.primitive.name}` gives {got}, JAX gives {expected}")
    return x


def _untranslated(eqn, reason: str) -> UntranslatedPrimitiveError:
    params = ", ".join(f"{k}={_brief(v)}" for k, v in eqn.params.items() if v is not None)
    types = ", ".join(str(aval_from_jax(a.aval)) for a in eqn.invars)
    return UntranslatedPrimitiveError(
        f"from_jax: the JAX primitive `{eqn.primitive.name}` of {types} with parameters ({params}), from {where(eqn)}: {reason}. "
        "Write this part with funcml.numpy or funcml.lax, or run the function under jax.jit on the arrays (`np.asarray(x)`)."
    )


def _brief(value) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


# ---- elementwise -----------------------------------------------------------------------------------------------------


def _row(function):
    """An elementwise function; scalars that JAX leaves unbroadcast are broadcast."""

    def translated(eqn, *operands, **params):
        shape = tuple(eqn.outvars[0].aval.shape)
        return function(*[x if is_constant(x) else _spread(x, shape) for x in operands], **params)

    return translated


def _spread(x, shape):
    """`x` at this shape: a scalar, or of the same rank with axes of length 1."""
    return broadcast_in_dim(x, shape, tuple(range(aval_of(x).ndim)))


_ROWS = {
    elementwise: "sub neg mul div rem real imag complex eq ne lt le gt ge eq_to lt_to le_to is_finite xor max min abs sign floor "
    "ceil round nextafter",
    transcendental: "exp exp2 expm1 log log1p logistic pow sinh cosh tanh asinh acosh atanh sin cos tan asin acos atan atan2",
    powers: "sqrt rsqrt cbrt square integer_pow",
    special: "bessel_i0e bessel_i1e digamma erf erf_inv erfc lgamma polygamma zeta",
    bits: "population_count clz shift_left shift_right_logical shift_right_arithmetic reduce_precision",
    identities: "copy stop_gradient",
}
for _module, _names in _ROWS.items():
    for _name in _names.split():
        TABLE[_name] = _row(getattr(_module, _name))
TABLE.update({
    "add": _row(elementwise.add),
    "add_any": _row(elementwise.add_any),
    "and": _row(elementwise.and_),
    "or": _row(elementwise.or_),
    "not": _row(elementwise.not_),
    "copy_p": _row(identities.copy),
    "name": _row(identities.name),
    # 1 - x^2, and log x / log 2
    "one_minus_square": _row(
        lambda x: elementwise.mul(elementwise.sub(_one(x), x), elementwise.add(_one(x), x))
    ),
    "log2": _row(lambda x: elementwise.div(transcendental.log(x), aval_of(x).dtype.type(math.log(2)))),
})


def _one(x):
    return aval_of(x).dtype.type(1)


@rule("conj")
def _conj(eqn, x, *, input_dtype):
    return elementwise.conj(x)


# a_0 + x (a_1 + x (a_2 + ...))
@rule("polynomial")
def _polynomial(eqn, x, *coefficients):
    shape = tuple(eqn.outvars[0].aval.shape)
    x, *rest = [_spread(v, shape) for v in (x, *coefficients)]
    total = rest[-1]
    for a in reversed(rest[:-1]):
        total = elementwise.add(elementwise.mul(total, x), a)
    return total


@rule("select_n")
def _select_n(eqn, which, *cases):
    shape = tuple(eqn.outvars[0].aval.shape)
    return elementwise.select_n(which, *[_spread(c, shape) for c in cases])


@rule("clamp")
def _clamp(eqn, low, x, high):
    return elementwise.clamp(low, x, high)


@rule("convert_element_type")
def _convert(eqn, x, *, new_dtype, weak_type):
    return elementwise.convert(x, dtype_from_jax(new_dtype), bool(weak_type))


@rule("bitcast_convert_type")
def _bitcast(eqn, x, *, new_dtype):
    return bits.bitcast_convert(x, dtype_from_jax(new_dtype))


@rule("optimization_barrier")
def _barrier(eqn, *xs):
    return identities.optimization_barrier(xs)


# ---- axes ------------------------------------------------------------------------------------------------------------


@rule("broadcast_in_dim")
def _broadcast(eqn, x, *, shape, broadcast_dimensions):
    return broadcast_in_dim(x, tuple(shape), tuple(broadcast_dimensions))


@rule("reshape")
def _reshape(eqn, x, *, new_sizes, dimensions=None):
    return reshape(x if dimensions is None else transpose(x, dimensions), new_sizes)


@rule("squeeze")
def _squeeze(eqn, x, *, dimensions):
    return squeeze(x, dimensions)


@rule("expand_dims")
def _expand_dims(eqn, x, *, dimensions):
    return expand_dims(x, dimensions)


@rule("transpose")
def _transpose(eqn, x, *, permutation):
    return transpose(x, permutation)


@rule("rev")
def _rev(eqn, x, *, dimensions):
    return rev(x, dimensions)


@rule("pad")
def _pad(eqn, x, fill, *, padding_config):
    return pad(x, fill, padding_config)


@rule("slice")
def _slice(eqn, x, *, start_indices, limit_indices, strides=None):
    return slice_(x, start_indices, limit_indices, strides)


@rule("concatenate")
def _concatenate(eqn, *xs, dimension):
    return concatenate(xs, dimension)


@rule("split")
def _split(eqn, x, *, sizes, axis):
    return split(x, sizes, axis)


@rule("stack")
def _stack(eqn, *xs, axis):
    return concatenate([expand_dims(x, (axis,)) for x in xs], axis)


@rule("unstack")
def _unstack(eqn, x, *, axis):
    return [squeeze(slice_in_dim(x, i, i + 1, axis=axis), (axis,)) for i in range(aval_of(x).shape[axis])]


@rule("iota")
def _iota(eqn, *, dtype, shape, dimension):
    return iota(dtype_from_jax(dtype), shape, dimension)


@rule("empty")
def _empty(eqn, *, shape, dtype):
    dtype = dtype_from_jax(dtype)
    return broadcast_in_dim(dtype.type(0), tuple(shape))


# ---- reductions, sorting, products -----------------------------------------------------------------------------------

_REDUCTIONS = {
    "reduce_sum": reduce_sum,
    "reduce_prod": reduce_prod,
    "reduce_max": reduce_max,
    "reduce_min": reduce_min,
    "reduce_and": reduce_and,
    "reduce_or": reduce_or,
    "reduce_xor": reduce_xor,
}
TABLE.update({name: lambda eqn, x, *, axes, f=f: f(x, axes) for name, f in _REDUCTIONS.items()})

_RUNNING = {"cumsum": cumsum, "cumprod": cumprod, "cummax": cummax, "cummin": cummin, "cumlogsumexp": cumlogsumexp}
TABLE.update({name: lambda eqn, x, *, axis, reverse, f=f: f(x, axis, reverse) for name, f in _RUNNING.items()})


@rule("argmax")
def _argmax(eqn, x, *, axes, index_dtype):
    return argmax(x, axes[0], index_dtype)


@rule("argmin")
def _argmin(eqn, x, *, axes, index_dtype):
    return argmin(x, axes[0], index_dtype)


@rule("sort")
def _sort(eqn, *xs, dimension, is_stable, num_keys):
    return sort(xs, dimension, is_stable, num_keys)


@rule("top_k")
def _top_k(eqn, x, *, k, axis=-1, is_stable=True):
    return top_k(x, k, axis)


@rule("dot_general")
def _dot_general(eqn, x, y, *, dimension_numbers, precision=None, preferred_element_type=None):
    wanted = None if preferred_element_type is None else dtype_from_jax(preferred_element_type)
    if aval_of(x).dtype != aval_of(y).dtype:
        x, y = [elementwise.convert(v, dtype_from_jax(eqn.outvars[0].aval.dtype)) for v in (x, y)]
    return dot_general(x, y, dimension_numbers, precision, None if wanted == aval_of(x).dtype else wanted)


# ---- gather and scatter ----------------------------------------------------------------------------------------------


@rule("dynamic_slice")
def _dynamic_slice(eqn, x, *starts, slice_sizes):
    return dynamic_slice(x, starts, slice_sizes, allow_negative_indices=False)


@rule("dynamic_update_slice")
def _dynamic_update_slice(eqn, x, update, *starts):
    return dynamic_update_slice(x, update, starts, allow_negative_indices=False)


@rule("gather")
def _gather(eqn, x, indices, *, dimension_numbers, slice_sizes, mode, fill_value=None, **flags):
    numbers = GatherDimensionNumbers(*_fields(dimension_numbers, GatherDimensionNumbers))
    return gather(x, indices, numbers, slice_sizes, mode=_mode(mode), fill_value=fill_value, **flags)


_SCATTERS = {
    "scatter": scatter,
    "scatter_add": scatter_add,
    "scatter_sub": scatter_sub,
    "scatter_mul": scatter_mul,
    "scatter_min": scatter_min,
    "scatter_max": scatter_max,
}


def _scatter_with(function):
    def translated(eqn, x, indices, updates, *, dimension_numbers, mode, update_jaxpr=None, update_consts=(), **flags):
        numbers = ScatterDimensionNumbers(*_fields(dimension_numbers, ScatterDimensionNumbers))
        return function(x, indices, updates, numbers, mode=_mode(mode), **flags)

    return translated


TABLE.update({name: _scatter_with(f) for name, f in _SCATTERS.items()})


def _fields(numbers, kind) -> list[tuple[int, ...]]:
    return [tuple(getattr(numbers, field)) for field in kind._fields]


def _mode(mode: Any) -> GatherScatterMode:
    return GatherScatterMode[mode.name]


# ---- random bits -----------------------------------------------------------------------------------------------------


def _for_each_key(function, keys, *others):
    """`function(key, *others)` for an array of keys: the axes of the keys come first in the result."""
    shape = aval_of(keys).shape
    if not shape:
        return function(keys, *others)
    found = vmap(function)(*[reshape(x, (math.prod(shape),)) for x in (keys, *others)])
    return reshape(found, (*shape, *aval_of(found).shape[1:]))


def _as_value(x):
    return identities.copy(x) if is_constant(x) else x


@rule("random_wrap")
def _random_wrap(eqn, words, *, impl):
    return random_wrap(words, impl.name)


@rule("random_unwrap")
def _random_unwrap(eqn, key):
    return random_unwrap(key)


@rule("random_seed")
def _random_seed(eqn, seeds, *, impl):
    return _for_each_key(lambda seed: key(seed, impl=impl.name), _as_value(seeds))


@rule("random_split")
def _random_split(eqn, keys, *, shape):
    return _for_each_key(lambda k: subkeys(k, tuple(shape)), keys)


@rule("random_fold_in")
def _random_fold_in(eqn, keys, data):
    return _for_each_key(fold_in, keys, broadcast_in_dim(_as_value(data), aval_of(keys).shape))


@rule("random_bits")
def _random_bits(eqn, keys, *, bit_width, shape):
    return _for_each_key(lambda k: random_bits(k, tuple(shape), bit_width), keys)


@rule("random_clone")
def _random_clone(eqn, keys):
    return keys


_GENERATORS = ("default", "three_fry", "philox")


@rule("rng_bit_generator")
def _rng_bit_generator(eqn, state, *, shape, dtype, algorithm):
    return rng_bit_generator(state, shape, dtype_from_jax(dtype), _GENERATORS[int(algorithm)])


@rule("random_gamma")
def _random_gamma(eqn, keys, a, *, log_space):
    """One sample for each element of `a`; the axes of the keys are the first of it."""
    sample = loggamma_of if log_space else gamma_of
    shape, batch = aval_of(a).shape, aval_of(keys).shape
    if not batch:
        return sample(keys, _as_value(a))
    count = math.prod(batch)
    rows = reshape(a, (count, *shape[len(batch) :]))
    return reshape(vmap(sample)(reshape(keys, (count,)), rows), shape)


@rule("threefry2x32")
def _threefry(eqn, k1, k2, x1, x2):
    shape = tuple(eqn.outvars[0].aval.shape)
    return threefry2x32(*[_spread(x, shape) for x in (k1, k2, x1, x2)])
