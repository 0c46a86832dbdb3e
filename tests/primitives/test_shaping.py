"""rev, pad, slice_, concatenate, split and iota against NumPy, under the transforms, and with bad input."""

import numpy as np
import pytest

import funcml as fm
from funcml import dtypes
from funcml.primitives.axes import reduce_sum
from funcml.primitives.elementwise import gt, mul, select
from funcml.primitives.powers import sqrt
from funcml.primitives.shaping import concatenate, iota, pad, rev, slice_, slice_in_dim, split
from tests.products import check_products

DTYPES = [
    np.float32,
    np.float64,
    np.float16,
    dtypes.bfloat16,
    np.complex64,
    np.int8,
    np.uint32,
    np.int64,
    np.bool_,
]


def padded(x, fill, config):
    """The oracle of `pad`: spread out, then extended and cut."""
    for axis, (low, high, interior) in enumerate(config):
        x = np.moveaxis(x, axis, 0)
        n = len(x)
        out = np.full((low + n + max(n - 1, 0) * interior + high, *x.shape[1:]), fill, x.dtype)
        for i in range(n):
            place = low + i * (interior + 1)
            if 0 <= place < len(out):
                out[place] = x[i]
        x = np.moveaxis(out, 0, axis)
    return x


PADDINGS = [
    ((1, 2, 0), (0, 0, 0)),
    ((0, 1, 2), (3, 0, 1)),
    ((-1, 0, 0), (0, -2, 0)),
    ((-2, 3, 1), (2, -3, 2)),
    ((-3, 5, 0), (-4, 4, 0)),
    ((5, -6, 1), (-1, -3, 0)),
    ((0, -1, 3), (-6, 7, 1)),
]
SLICES = [
    ((0, 0), (3, 4), (1, 1)),
    ((1, 0), (3, 4), (1, 2)),
    ((0, 1), (3, 4), (2, 3)),
    ((2, 2), (2, 4), (1, 1)),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_values_are_numpys(dtype, rng):
    x = (
        rng.integers(0, 2, (3, 4)).astype(dtype)
        if dtype is np.bool_
        else rng.integers(0, 9, (3, 4)).astype(dtype)
    )
    y = x[:2] if dtype is np.bool_ else (x[:2] + x[1:]).astype(dtype)
    fill = np.asarray(7, dtype)[()]

    @fm.jit
    def everything(x, y):
        return (
            [pad(x, fill, c) for c in PADDINGS],
            [slice_(x, *s) for s in SLICES],
            [rev(x, (0,)), rev(x, (0, -1)), rev(x, ())],
            [concatenate([x, y, x], 0), concatenate([x, x], -1), concatenate([y], 1)],
            [*split(x, (1, 0, 2)), *split(x, (3, 1), -1)],
        )

    bounds = [tuple(slice(*b) for b in zip(*s, strict=True)) for s in SLICES]
    want = (
        [padded(x, fill, c) for c in PADDINGS],
        [x[b] for b in bounds],
        [x[::-1], x[::-1, ::-1], x],
        [np.concatenate([x, y, x]), np.concatenate([x, x], 1), y],
        [x[:1], x[1:1], x[1:], x[:, :3], x[:, 3:]],
    )
    for found, wanted in zip(everything(x, y), want, strict=True):
        for a, b in zip(found, wanted, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_array_equal(np.asarray(a), b)


def test_empty_arrays_and_axes_of_one_element():
    empty, one = np.zeros((0, 3), np.float32), np.ones((1, 1), np.float32)
    np.testing.assert_array_equal(pad(empty, np.float32(2), ((1, 1, 5), (0, 0, 0))), np.full((2, 3), 2))
    assert concatenate([empty, empty], 0).shape == (0, 3)
    assert concatenate([empty, np.ones((2, 3), np.float32)], 0).shape == (2, 3)
    assert rev(empty, (0, 1)).shape == (0, 3) and slice_(empty, (0, 1), (0, 3)).shape == (0, 2)
    assert [p.shape for p in split(empty, (0, 0))] == [(0, 3), (0, 3)]
    np.testing.assert_array_equal(pad(one, np.float32(0), ((-1, 1, 3), (0, 1, 0))), np.zeros((1, 2)))
    np.testing.assert_array_equal(pad(np.float32(3), np.float32(0), ()), 3)


def test_iota_counts_along_one_axis():
    for dtype in (np.int32, np.uint8, np.float32, dtypes.bfloat16, np.complex64):
        found = iota(dtype, (2, 3), 1)
        assert found.dtype == dtype
        np.testing.assert_array_equal(np.asarray(found), np.broadcast_to(np.arange(3), (2, 3)).astype(dtype))
    np.testing.assert_array_equal(iota(np.int64, (2, 3), -2), [[0, 0, 0], [1, 1, 1]])
    assert iota(np.int32, (0,)).shape == (0,)


def test_products(rng):
    x, y, fill = rng.normal(size=(3, 4)), rng.normal(size=(2, 4)), np.float64(1.5)

    def structural(x, y, fill):
        squares = mul(x, x)
        pieces = split(squares, (1, 3), 1)
        return [
            *[mul(p, p) for p in [pad(squares, fill, c) for c in PADDINGS[1:5]]],
            slice_(squares, (0, 1), (3, 4), (2, 3)),
            mul(rev(squares, (1,)), x),
            concatenate([squares, mul(y, y), x], 0),
            mul(pieces[1], pieces[1]),
        ]

    check_products(structural, x, y, fill)


def test_products_of_complex(rng):
    z = rng.normal(size=(3, 2)) + 1j * rng.normal(size=(3, 2))
    check_products(lambda z: concatenate([pad(mul(z, z), 1j, ((1, -1, 1), (0, 0, 0))), rev(z, (0,))], 0), z)


def test_a_batch_of_fills(rng):
    x, fills = rng.normal(size=(4, 3)), rng.normal(size=5)
    found = fm.vmap(lambda f: pad(x, f, ((1, 0, 1), (0, 2, 0))))(fills)
    np.testing.assert_array_equal(found, [padded(x, f, ((1, 0, 1), (0, 2, 0))) for f in fills])
    both = fm.vmap(lambda v, f: pad(v, f, ((-1, 1, 0),)), in_axes=(1, 0))(x, fills[:3])
    np.testing.assert_array_equal(both, [padded(x[:, i], fills[i], ((-1, 1, 0),)) for i in range(3)])


def test_the_fill_has_no_part_in_what_is_cut_off_or_infinite():
    """The cotangent of the fill is the sum over the filled places only, even beside infinite ones."""

    def loss(x, fill):
        out = pad(x, fill, ((1, 1, 0),))
        return reduce_sum(mul(out, np.array([1.0, np.inf, 2.0, 3.0])), (0,))

    assert float(fm.grad(loss, 1)(np.array([1.0, 1.0]), np.float64(1))) == 4.0


def test_masks_move_with_the_cotangent():
    """No nan from lanes that `select` does not take, whatever moved them on the way."""
    x = np.array([0.0, 1.0, 4.0, 0.0])

    def moved(x):
        roots = sqrt(x)
        pieces = [
            rev(roots, (0,)),
            pad(roots, np.float64(0), ((0, 2, 1),)),
            slice_(roots, (1,), (4,), (2,)),
            concatenate([roots, rev(roots, (0,))], 0),
            split(roots, (2, 1, 1))[0],
        ]
        taken = [
            rev(x, (0,)),
            pad(x, np.float64(0), ((0, 2, 1),)),
            slice_in_dim(x, 1, 4, 2),
            concatenate([x, rev(x, (0,))], 0),
            slice_in_dim(x, 0, 2),
        ]
        kept = [select(gt(t, 0.0), p, np.zeros(p.shape)) for p, t in zip(pieces, taken, strict=True)]
        return reduce_sum(concatenate(kept, 0), (0,))

    np.testing.assert_allclose(fm.grad(moved)(x), [0, 3.0, 1.0, 0])


def test_nothing_is_recorded_where_nothing_changes():
    x = np.ones((2, 3), np.float32)
    jaxpr = fm.make_jaxpr(
        lambda x: slice_(pad(concatenate([rev(x, ())], 0), np.float32(0), ((0, 0, 0),) * 2), (0, 0), (2, 3))
    )(x)
    assert "rev" not in str(jaxpr) and "= " not in str(jaxpr).split("let")[1]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: rev(x, (2,)), ValueError, r"rev of f32\[2,3\]: expected an axis from -2 to 1, got 2"),
        (lambda x: rev(x, (0, -2)), ValueError, "distinct axes"),
        (
            lambda x: pad(x, np.int32(0), ((1, 1, 0),) * 2),
            TypeError,
            r"a scalar fill of the dtype of f32\[2,3\], got i32\[\]",
        ),
        (lambda x: pad(x, np.float32(0), ((1, 1, -1),) * 2), TypeError, "interior >= 0"),
        (lambda x: pad(x, np.float32(0), ((-2, -2, 0), (0, 0, 0))), TypeError, "cuts off more than there is"),
        (
            lambda x: slice_(x, (0, 0), (2, 4)),
            TypeError,
            r"axis 1 expects 0 <= start <= limit <= 3.* got 0:4:1",
        ),
        (lambda x: slice_(x, (0,), (2,)), TypeError, "2 starts, limits and strides"),
        (lambda x: concatenate([x, x], 2), ValueError, "expected an axis from -2 to 1, got 2"),
        (
            lambda x: concatenate([x, x.T], 0),
            TypeError,
            r"differ along axis 0 only, got f32\[2,3\], f32\[3,2\]",
        ),
        (lambda x: concatenate([x, x.astype("i4")], 0), TypeError, "one dtype"),
        (lambda x: concatenate([], 0), TypeError, "at least one operand"),
        (lambda x: split(x, (1, 2)), TypeError, r"sum to 2, got \(1, 2\)"),
        (lambda x: split(x, (1, 1), 5), ValueError, "expected an axis from -2 to 1, got 5"),
        (lambda x: iota(np.bool_, (3,)), TypeError, "counts in numbers"),
        (lambda x: iota(np.int32, ()), ValueError, "no axis"),
    ],
)
def test_errors_say_what_came_and_what_was_expected(call, error, words):
    with pytest.raises(error, match=words):
        call(np.ones((2, 3), np.float32))
