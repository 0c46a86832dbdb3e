"""Dtype, shape and weak type of each function's result: those of JAX, for every pair of dtypes that matter."""

import jax
import jax.numpy as jaxnp
import pytest

import funcml
import funcml.numpy as jnp
from funcml import dtypes
from funcml.core.config import enable_x64

NARROW = ["bool", "int8", "uint8", "int32", "uint32", "float16", "bfloat16", "float32", "complex64"]
SCALARS = [True, 2, 1.5, 1 + 2j]

UNARY = """abs sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp exp2 expm1 log log2 log10 log1p sqrt
    cbrt square reciprocal negative positive sign floor ceil trunc rint round fabs isnan isinf isfinite isposinf isneginf signbit
    real imag conj angle deg2rad rad2deg sinc logical_not invert nan_to_num bitwise_count modf frexp""".split()
BINARY = """add subtract multiply divide floor_divide remainder fmod power float_power maximum minimum fmax fmin logaddexp
    logaddexp2 arctan2 hypot copysign heaviside nextafter equal not_equal less less_equal greater greater_equal logical_and
    logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift isclose ldexp""".split()
REDUCTIONS = """sum prod max min mean var std all any argmax argmin ptp nansum nanprod nanmax nanmin nanmean nanvar nanstd
    nanargmax cumsum cumprod median count_nonzero sort argsort average""".split()

# Of these the weak type too; elsewhere JAX's is incidental, and funcml's is weak if all operands are.
WEAK = "abs sin exp sqrt negative sign floor ceil add subtract multiply divide floor_divide remainder maximum minimum".split()


def cases():
    for name in UNARY:
        yield from ((name, (d,)) for d in NARROW)
        yield from ((name, (s,)) for s in SCALARS)
    for name in BINARY:
        every = name in ("add", "divide", "power")  # the others promote in the same ways
        yield from ((name, (a, b)) for a in NARROW for b in (NARROW if every else [a]))
        yield from ((name, pair) for a in NARROW for s in (SCALARS if every else [1.5]) for pair in ((a, s), (s, a)))
    for name in REDUCTIONS:
        yield from ((name, (d,)) for d in NARROW)


def differs_on_purpose(name, args, wide) -> bool:
    if not wide and "uint32" in args and {"int8", "int32"} & set(args):
        return True  # they promote to int64, which JAX narrows
    if wide and name in ("rint", "angle") and not isinstance(args[0], float) and "float" not in str(args[0]):
        return True  # where JAX takes float64 for integers, and float32 in all of its other functions
    is_complex = "complex64" in args or 1 + 2j in args
    return (name == "arctan2" and is_complex) or (name == "round" and set(args) <= {"bool", True})  # JAX: yes, no; NumPy: no, yes


def types(module, struct, evaluate, name, args):
    """[(dtype, shape, weak)] of the results, or None if the function refuses."""
    structs = [struct((2, 3), dtypes.canonical(a)) for a in args if isinstance(a, str)]

    def function(*xs):
        rest = iter(xs)
        return getattr(module, name)(*[next(rest) if isinstance(a, str) else a for a in args])

    try:
        out = evaluate(function, *structs)
    except (TypeError, ValueError, NotImplementedError):
        return None
    return [(x.dtype, x.shape, name in WEAK and bool(x.weak_type)) for x in (out if isinstance(out, tuple | list) else [out])]


@pytest.mark.parametrize("wide", [False, True], ids=["32", "64"])
def test_types_are_those_of_jax(wide):
    found = []
    with enable_x64(wide), jax.enable_x64(wide):
        for name, args in cases():
            ours = types(jnp, funcml.ShapeDtypeStruct, funcml.eval_shape, name, args)
            theirs = types(jaxnp, jax.ShapeDtypeStruct, jax.eval_shape, name, args)
            if ours != theirs and not differs_on_purpose(name, args, wide):
                found.append(f"{name} {' '.join(map(str, args))}: {ours}, JAX {theirs}")
    assert not found, "\n".join(found)
