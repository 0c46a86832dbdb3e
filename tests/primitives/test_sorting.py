"""sort and top_k against NumPy, under the transforms, with nan, signed zeros, several keys and bad input."""

import numpy as np
import pytest

import funcml as fm
from funcml import dtypes
from funcml.core.avals import shaped
from funcml.core.tracing import trace
from funcml.lowering import pjrt
from funcml.lowering.array import asarray
from funcml.lowering.emit import to_stablehlo
from funcml.primitives.axes import reduce_sum
from funcml.primitives.elementwise import gt, mul, select
from funcml.primitives.powers import sqrt
from funcml.primitives.sorting import sort, top_k
from tests.products import check_products

inf, nan = np.inf, np.nan
DTYPES = [
    np.float32,
    np.float64,
    np.float16,
    dtypes.bfloat16,
    np.int8,
    np.int64,
    np.uint32,
    np.bool_,
    np.complex64,
]


def wide(x):
    """`x` in a dtype that NumPy knows how to order and compare."""
    return x.astype(np.float32) if x.dtype == dtypes.bfloat16 else x


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_values_are_numpys(dtype, rng):
    x = rng.integers(0, 2 if dtype is np.bool_ else 6, (3, 5, 2)).astype(dtype)
    if dtypes.is_complex(x.dtype):
        x = x + (1j * rng.integers(-3, 3, x.shape)).astype(dtype)
    places = np.broadcast_to(np.arange(5)[None, :, None], x.shape).astype(np.int32)

    @fm.jit
    def found(x, places):
        return (
            [sort(x, a) for a in (0, 1, -1)],
            sort((x, places), 1),
            None if "complex" in str(x.dtype) else top_k(x, 3, 1),
        )

    alone, paired, top = found(x, places)
    for y, a in zip(alone, (0, 1, -1), strict=True):
        assert y.dtype == dtype
        np.testing.assert_array_equal(wide(np.asarray(y)), np.sort(wide(x), a))
    order = np.argsort(wide(x), 1, kind="stable")
    np.testing.assert_array_equal(paired[1], order)
    np.testing.assert_array_equal(np.asarray(paired[0]), np.take_along_axis(x, order, 1))
    if top is not None:
        values, indices = top
        first = np.argsort(-wide(x).astype(np.float64), 1, kind="stable")[:, :3]
        assert values.dtype == dtype and indices.dtype == np.int32
        np.testing.assert_array_equal(indices, first)
        np.testing.assert_array_equal(np.asarray(values), np.take_along_axis(x, first, 1))


def test_nan_is_last_and_zeros_are_equal():
    x = np.array([[3.0, nan, -0.0, 0.0, -inf, inf, -nan, 2.0], [0.0, -0.0, 0.0, -0.0, inf, nan, inf, nan]])
    for dtype in (np.float64, np.float32, dtypes.bfloat16):
        y = x.astype(dtype)
        want = np.sort(x, kind="stable")
        for found in (sort(y), sort((y, x))[0]):
            np.testing.assert_array_equal(wide(np.asarray(found)), want)
            np.testing.assert_array_equal(
                np.signbit(wide(np.asarray(found)))[want == 0], np.signbit(want)[want == 0]
            )
    np.testing.assert_array_equal(sort((x, np.tile(np.arange(8), (2, 1))))[1], np.argsort(x, kind="stable"))
    everything_nan = np.array([nan, nan], np.float32)
    assert np.isnan(sort(everything_nan)).all()


def test_complex_numbers_are_in_lexicographic_order():
    z = np.array(
        [1 + 2j, 1 + 1j, 0, complex(nan, 1), complex(1, nan), complex(nan, 0), -1 + 5j, complex(nan, nan)]
    )
    np.testing.assert_array_equal(sort(z), np.sort(z))


def test_several_keys(rng):
    a, b = rng.integers(0, 3, 30), rng.integers(0, 3, 30).astype(np.float32)
    b[::7] = nan
    c = np.arange(30)
    for keys in (1, 2, 3):
        want = np.lexsort([np.arange(30), *[a, b, c][:keys][::-1]])
        for y, v in zip(sort((a, b, c), num_keys=keys), (a, b, c), strict=True):
            np.testing.assert_array_equal(y, v[want])
    assert isinstance(sort([a, b]), tuple) and isinstance(sort([a]), tuple)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, dtypes.bfloat16, np.int8, np.int32, np.uint32, np.bool_], ids=str)
def test_long_axes_with_what_follows_them(dtype, rng):
    x = rng.integers(0, 2**32, (2, 700), np.uint64).astype(np.uint32).view(np.int32)
    if dtypes.is_float(np.dtype(dtype)):
        x = np.where(x % 7 == 0, nan, np.where(x % 5 == 0, -0.0, np.where(x % 3 == 0, inf, x / 1e5)))
        x[:, ::11] = 0.0
        x[:, ::97] = -nan
    x = x.astype(dtype)
    followers = np.arange(1400.0).reshape(2, 700), x
    for axis in (0, 1):
        turned = x if axis == 1 else x.T.copy()
        order = np.argsort(wide(turned), axis, kind="stable")
        rest = [v if axis == 1 else v.T.copy() for v in followers]
        keys, first, second = sort((turned, *rest), axis)
        np.testing.assert_array_equal(first, np.take_along_axis(rest[0], order, axis))
        for found in (keys, second):
            np.testing.assert_array_equal(wide(np.asarray(found)), np.take_along_axis(wide(turned), order, axis))
            assert found.dtype == dtype


def test_top_k_puts_nan_first_and_ties_by_place():
    x = np.array([[1, nan, 3, -inf], [0, 2, 2, 2]], np.float32)
    values, indices = top_k(x, 3)
    np.testing.assert_array_equal(values, [[nan, 3, 1], [2, 2, 2]])
    np.testing.assert_array_equal(indices, [[1, 2, 0], [1, 2, 3]])
    values, indices = top_k(x, 1, axis=0)
    np.testing.assert_array_equal(values, [[1, nan, 3, 2]])
    np.testing.assert_array_equal(indices, [[0, 0, 0, 1]])


def test_empty_arrays_and_axes_of_one_element():
    empty = np.zeros((0, 3), np.float32)
    assert sort(empty, 0).shape == (0, 3) and sort(empty, 1).shape == (0, 3)
    assert [v.shape for v in top_k(empty, 0, 0)] == [(0, 3), (0, 3)] and [
        v.shape for v in top_k(empty, 2)
    ] == [(0, 2)] * 2
    assert [v.shape for v in top_k(np.ones((2, 3)), 0)] == [(2, 0)] * 2
    np.testing.assert_array_equal(sort(np.full((1, 1), 4)), [[4]])
    assert fm.grad(lambda x: reduce_sum(sort(x), (0,)))(np.zeros(0)).shape == (0,)
    assert fm.grad(lambda x: reduce_sum(top_k(x, 0)[0], (0,)))(np.ones(3)).shape == (3,)


def test_products(rng):
    x, y = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))

    def ordered(x, y):
        squares = mul(x, x)
        values, indices = top_k(mul(x, y), 2, axis=0)
        return [
            mul(sort(squares), y),
            *sort((y, squares, x), 0),
            *sort((x, mul(y, y)), 1, num_keys=2),
            mul(values, values),
            indices,
        ]

    check_products(ordered, x, y)


def test_products_of_complex(rng):
    z = rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))
    check_products(lambda z: sort(mul(z, z), 1), z)


def test_only_the_operands_that_move_have_tangents():
    keys, x = np.array([2, 0, 1]), np.array([5.0, 6.0, 7.0])
    jacobian = fm.jacrev(lambda v: sort((keys, v))[1])(x)
    np.testing.assert_array_equal(jacobian, np.eye(3)[[1, 2, 0]])
    out, tangents = fm.jvp(lambda v: tuple(sort((keys, v))), (x,), (x,))
    assert tangents[0].dtype == dtypes.float0
    np.testing.assert_array_equal(tangents[1], [6, 7, 5])


def test_equal_elements_keep_their_place_in_derivatives():
    x = np.array([1.0, 0.0, 1.0, 0.0])
    np.testing.assert_array_equal(fm.jacfwd(sort)(x), np.eye(4)[[1, 3, 0, 2]])
    np.testing.assert_array_equal(fm.jacrev(sort)(x), np.eye(4)[[1, 3, 0, 2]])
    np.testing.assert_array_equal(
        fm.hessian(lambda v: reduce_sum(mul(sort(v), v), (0,)))(np.array([2.0, 1.0])), [[0, 2], [2, 0]]
    )


def test_no_nan_from_elements_that_select_does_not_take():
    def loss(x):
        return reduce_sum(select(gt(x, 0.0), sqrt(sort(x)), np.zeros(3)), (0,))

    np.testing.assert_allclose(fm.grad(loss)(np.array([0.0, 4.0, 1.0])), [0, 0.25, 0.5])


def test_what_other_platforms_run_orders_alike(rng):
    """The text for a GPU has no special case for floats; it runs on this machine too."""
    x = np.array([[3.0, nan, -0.0, 0.0, -inf, inf, -nan, 2.0]], np.float32)
    jaxpr, _ = trace(lambda x: [sort(x), sort(x, 0)], [shaped(x.shape, x.dtype)])
    text = to_stablehlo(jaxpr, platform="gpu")
    assert text.count("stablehlo.reduce") == 0 < to_stablehlo(jaxpr).count("stablehlo.reduce")
    executable = pjrt.compile(text, [(v.aval.shape, v.aval.dtype) for v in jaxpr.outs], pjrt.default_device())
    for found, axis in zip(executable.run([asarray(x)._buffer]), (1, 0), strict=True):
        np.testing.assert_array_equal(np.asarray(found), np.sort(x, axis))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: sort(x, 2), ValueError, r"sort of f32\[2,3\]: expected an axis from -2 to 1, got 2"),
        (lambda x: sort(np.float32(1)), ValueError, "no axis"),
        (lambda x: sort(()), TypeError, "at least one operand"),
        (lambda x: sort((x, x[:1])), TypeError, r"of one shape, got f32\[2,3\], f32\[1,3\]"),
        (lambda x: sort((x, x), num_keys=3), TypeError, "num_keys must be from 1 to 2, got 3"),
        (lambda x: sort(x, num_keys=0), TypeError, "num_keys must be from 1 to 1, got 0"),
        (
            lambda x: top_k(x, 4),
            ValueError,
            r"top_k of f32\[2,3\]: k must be from 0 to the 3 elements of axis 1, got 4",
        ),
        (lambda x: top_k(x, -1), ValueError, "got -1"),
        (lambda x: top_k(x, 1, 2), ValueError, "expected an axis from -2 to 1, got 2"),
        (lambda x: top_k(x + 1j, 1), TypeError, r"real numbers or bool, got c64\[2,3\]"),
    ],
)
def test_errors_say_what_came_and_what_was_expected(call, error, words):
    with pytest.raises(error, match=words):
        call(np.ones((2, 3), np.float32))
