"""dot_general against einsum in many layouts and dtypes, under the transforms, and with bad input."""

import enum

import numpy as np
import pytest

import funcml as fm
from funcml import dtypes
from funcml.core.config import default_matmul_precision
from funcml.primitives.axes import reduce_sum, reshape
from funcml.primitives.contraction import canonical_precision, dot_general
from funcml.primitives.shaping import slice_in_dim
from tests.products import check_products

MATRIX = (((1,), (0,)), ((), ()))


def einsum(x, y, numbers):
    """The oracle: [batch, lhs free, rhs free]."""
    (lc, rc), (lb, rb) = numbers
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    left, right = [next(letters) for _ in x.shape], [next(letters) for _ in y.shape]
    for i, j in zip((*lc, *lb), (*rc, *rb), strict=True):
        right[j] = left[i]
    out = [left[i] for i in lb]
    out += [a for i, a in enumerate(left) if i not in (*lc, *lb)] + [
        a for j, a in enumerate(right) if j not in (*rc, *rb)
    ]
    return np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", x, y)


def layouts(rng, count, lengths=(1, 2, 3, 4)):
    """Random pairs of shapes with dimension numbers: up to two batch, two contracted and two free axes on each side."""
    for _ in range(count):
        batch, contracted = (rng.choice(lengths, rng.integers(0, 3)).tolist() for _ in range(2))
        shapes, axes = [], []
        for _ in range(2):
            free = rng.choice(lengths, rng.integers(0, 3)).tolist()
            order = rng.permutation(len(batch) + len(contracted) + len(free))
            place = np.argsort(order).tolist()
            shapes.append([[*batch, *contracted, *free][k] for k in order])
            axes.append((place[len(batch) : len(batch) + len(contracted)], place[: len(batch)]))
        yield shapes, ((axes[0][0], axes[1][0]), (axes[0][1], axes[1][1]))


def filled(rng, shape, dtype):
    x = rng.integers(-3, 4, shape)
    if dtypes.is_complex(np.dtype(dtype)):
        x = x + 1j * rng.integers(-3, 4, shape)
    return x.astype(dtype)


@pytest.mark.parametrize(
    "dtype",
    [np.float32, np.float64, np.float16, dtypes.bfloat16, np.complex64, np.int8, np.int32, np.uint16],
    ids=str,
)
def test_every_layout_is_einsums(dtype, rng):
    cases = list(layouts(rng, 12))
    xs, ys = ([filled(rng, shapes[i], dtype) for shapes, _ in cases] for i in range(2))

    @fm.jit
    def products(xs, ys):
        return [dot_general(x, y, numbers) for x, y, (_, numbers) in zip(xs, ys, cases, strict=True)]

    for found, x, y, (_, numbers) in zip(products(xs, ys), xs, ys, cases, strict=True):
        exact = (
            np.complex128
            if dtypes.is_complex(x.dtype)
            else np.float64
            if dtypes.is_float(x.dtype)
            else np.int64
        )
        want = einsum(x.astype(exact), y.astype(exact), numbers)
        assert found.dtype == dtype and found.shape == want.shape
        np.testing.assert_array_equal(np.asarray(found), want.astype(dtype))


def test_derivatives_and_batches_in_every_layout(rng):
    """All the layouts in one function, so that one program is compiled for each product of transforms."""
    cases = list(layouts(rng, 6, lengths=(1, 2, 3)))
    sizes = [[int(np.prod(s)) for s in shapes] for shapes, _ in cases]
    x, y = (rng.normal(size=sum(n[i] for n in sizes)) for i in range(2))

    def products(x, y):
        outs, at = [], [0, 0]
        for shapes, numbers in cases:
            parts = []
            for i, v in enumerate((x, y)):
                n = int(np.prod(shapes[i]))
                parts.append(reshape(slice_in_dim(v, at[i], at[i] + n), shapes[i]))
                at[i] += n
            outs.append(dot_general(*parts, numbers))
        return outs

    check_products(products, x, y)


@pytest.mark.parametrize(("left", "right"), [(0, 0), (2, 1), (None, 1), (1, None), (3, 3)])
def test_a_mapped_axis_anywhere_is_a_loop(left, right, rng):
    shapes, numbers = [[2, 3, 4], [4, 5, 2]], (((2,), (0,)), ((0,), (2,)))
    x, y = (
        rng.normal(size=s if d is None else [*s[:d], 6, *s[d:]])
        for s, d in zip(shapes, (left, right), strict=True)
    )
    found = fm.vmap(lambda a, b: dot_general(a, b, numbers), in_axes=(left, right))(x, y)
    rows = [
        einsum(*[v if d is None else v.take(i, d) for v, d in ((x, left), (y, right))], numbers)
        for i in range(6)
    ]
    np.testing.assert_allclose(found, np.stack(rows), rtol=1e-12)


def test_batching_makes_no_loop_and_moves_no_data():
    x, y = np.ones((5, 2, 3), np.float32), np.ones((3, 4), np.float32)
    text = str(fm.make_jaxpr(fm.vmap(lambda a: dot_general(a, y, MATRIX)))(x))
    assert text.count(" = ") == 1 and "dot_general" in text
    both = str(
        fm.make_jaxpr(fm.vmap(lambda a, b: dot_general(a, b, MATRIX), (1, 2)))(
            np.ones((2, 7, 3)), np.ones((3, 4, 7))
        )
    )
    assert both.count(" = ") == 1


def test_complex_derivatives(rng):
    x, y = (rng.normal(size=s) + 1j * rng.normal(size=s) for s in ((2, 3), (3, 2)))
    check_products(lambda x, y: dot_general(x, dot_general(y, x, MATRIX), MATRIX), x, y)


def test_empty_and_scalar_operands():
    for m, k, n in ((0, 3, 2), (2, 0, 3), (2, 3, 0), (0, 0, 0)):
        found = dot_general(np.ones((m, k), np.float32), np.ones((k, n), np.float32), MATRIX)
        np.testing.assert_array_equal(found, np.zeros((m, n)))
    grad = fm.grad(lambda x: reduce_sum(dot_general(x, np.ones((0, 3)), MATRIX), (0, 1)))
    assert grad(np.ones((2, 0))).shape == (2, 0)
    outer = dot_general(np.arange(3.0), np.arange(2.0), (((), ()), ((), ())))
    np.testing.assert_array_equal(outer, np.outer(np.arange(3.0), np.arange(2.0)))
    assert float(dot_general(np.float32(3), np.float32(4), (((), ()), ((), ())))) == 12


def test_infinite_and_nan_elements():
    x, y = np.array([[np.inf, 1.0], [np.nan, 2.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(dot_general(x, y, MATRIX), x @ y)


# ---- dtype of the result -----------------------------------------------------------------------------------


def test_a_wider_result_is_summed_in_its_dtype():
    big = np.full((1, 300), 100, np.int8)
    found = dot_general(big, big.T.copy(), MATRIX, preferred_element_type=np.int32)
    assert found.dtype == np.int32 and int(np.asarray(found)[0, 0]) == 3_000_000
    ones = np.ones((1, 1000), dtypes.bfloat16)
    found = dot_general(ones, ones.T.copy(), MATRIX, preferred_element_type=np.float32)
    assert found.dtype == np.float32 and float(np.asarray(found)[0, 0]) == 1000.0


def test_cotangents_come_back_in_the_dtype_of_the_operand(rng):
    x, y = rng.normal(size=(2, 3)).astype(dtypes.bfloat16), rng.normal(size=(3, 4)).astype(dtypes.bfloat16)

    def product(x, y):
        return dot_general(x, y, MATRIX, preferred_element_type=np.float32)

    out, pullback = fm.vjp(product, x, y)
    ct = rng.normal(size=(2, 4)).astype(np.float32)
    dx, dy = pullback(ct)
    assert out.dtype == np.float32 and dx.dtype == x.dtype and dy.dtype == y.dtype
    wide_x, wide_y = x.astype(np.float32), y.astype(np.float32)
    np.testing.assert_allclose(np.asarray(dx).astype(np.float32), ct @ wide_y.T, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(np.asarray(dy).astype(np.float32), wide_x.T @ ct, rtol=1e-2, atol=1e-2)
    tangent = fm.jvp(product, (x, y), (x, y))[1]
    assert tangent.dtype == np.float32
    np.testing.assert_allclose(tangent, 2 * (wide_x @ wide_y), rtol=1e-5)


# ---- precision ---------------------------------------------------------------------------------------------


class Precision(enum.Enum):
    HIGHEST = 2


def test_precisions_and_their_names(rng):
    assert canonical_precision(None) is None
    assert canonical_precision(Precision.HIGHEST) == canonical_precision("float32") == ("highest", "highest")
    assert canonical_precision((None, "tensorfloat32")) == ("default", "high")
    assert canonical_precision("tf32_tf32_f32_x3") == "TF32_TF32_F32_X3"
    with default_matmul_precision("bfloat16"):
        assert canonical_precision(None) == ("default", "default") and canonical_precision("high") == (
            "high",
            "high",
        )
    x, y = (rng.normal(size=(3, 3)).astype(np.float32) for _ in range(2))
    text = fm.jit(lambda x, y: dot_general(x, y, MATRIX, Precision.HIGHEST)).lower(x, y).as_text()
    assert "precision = [HIGHEST, HIGHEST]" in text
    with default_matmul_precision("F32_F32_F32"):
        text = fm.jit(lambda x, y: dot_general(x, y, MATRIX)).lower(x, y).as_text()
    assert "accumulation_type = f32" in text


@pytest.mark.parametrize("name", [n for n in default_matmul_precision.choices if n.isupper()])
def test_dot_algorithms_compile_and_multiply(name, rng):
    dtype = dtypes.float8_e4m3fn if "F8" in name else np.float32
    x, y = (rng.normal(size=(3, 3)).astype(dtype) for _ in range(2))
    preferred = np.float32 if "F8" in name else None
    found = dot_general(x, y, MATRIX, name, preferred)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, x.astype(np.float32) @ y.astype(np.float32), rtol=0.05, atol=0.1)


def test_the_precision_is_kept_by_derivatives():
    x = np.ones((2, 2), np.float32)
    text = str(fm.make_jaxpr(fm.grad(lambda x: reduce_sum(dot_general(x, x, MATRIX, "highest"), (0, 1))))(x))
    assert text.count("dot_general") == text.count("precision=(highest,highest)") >= 2


# ---- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda x, y: dot_general(x, x, MATRIX),
            TypeError,
            r"contracted axes of equal lengths.*\(1,\) of f32\[2,3\].*\[3\].*\[2\]",
        ),
        (
            lambda x, y: dot_general(x, y, (((1,), (0, 1)), ((), ()))),
            TypeError,
            "contracted axes of equal lengths",
        ),
        (
            lambda x, y: dot_general(x, y, (((1,), (0,)), ((0,), (1,)))),
            TypeError,
            "batch axes of equal lengths",
        ),
        (
            lambda x, y: dot_general(x, y, (((2,), (0,)), ((), ()))),
            ValueError,
            "left operand of f32.*from -2 to 1, got 2",
        ),
        (
            lambda x, y: dot_general(x, y, (((1,), (0,)), ((1,), (1,)))),
            ValueError,
            r"distinct axes, got \(1, 1\)",
        ),
        (
            lambda x, y: dot_general(x, y, ((1,), (0,))),
            TypeError,
            r"must be \(\(lhs contracted, rhs contracted\)",
        ),
        (
            lambda x, y: dot_general(x, y.astype("f8"), MATRIX),
            TypeError,
            r"one numeric dtype, got f32\[2,3\] and f64\[3,4\]",
        ),
        (lambda x, y: dot_general(x > 0, y > 0, MATRIX), TypeError, "one numeric dtype, got bool"),
        (lambda x, y: dot_general(x, y, MATRIX, "precise"), ValueError, "got 'precise'"),
        (lambda x, y: dot_general(x, y, MATRIX, ("high", 3)), ValueError, r"got \('high', 3\)"),
        (lambda x, y: dot_general(x, y, MATRIX, None, np.float16), TypeError, "not narrower, got float16"),
        (lambda x, y: dot_general(x, y, MATRIX, None, np.int32), TypeError, "of the kind of the operands"),
    ],
)
def test_errors_say_what_came_and_what_was_expected(call, error, words):
    with pytest.raises(error, match=words):
        call(np.ones((2, 3), np.float32), np.ones((3, 4), np.float32))
