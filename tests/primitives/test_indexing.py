"""dynamic_slice, dynamic_update_slice, gather and the scatters against NumPy, under the transforms, and with bad input."""

import numpy as np
import pytest

import funcml as fm
from funcml import dtypes
from funcml.core.tracing import trace
from funcml.lowering.emit import to_stablehlo
from funcml.primitives import indexing as ix
from funcml.primitives.axes import reduce_sum
from funcml.primitives.elementwise import gt, mul, select, sub
from funcml.primitives.gather_scatter import scatter_last
from funcml.primitives.indexing import GatherDimensionNumbers, ScatterDimensionNumbers
from funcml.primitives.powers import sqrt
from funcml.primitives.shaping import slice_
from tests.products import check_products

DTYPES = [np.float32, np.float64, np.float16, dtypes.bfloat16, np.complex64, np.int8, np.uint32, np.int64, np.bool_]
MODES = ["clip", "fill", "promise_in_bounds"]
X = np.arange(1.0, 25.0).reshape(2, 3, 4) / 7

#: rows of an array
ROWS = GatherDimensionNumbers((1, 2), (0,), (0,))
#: windows [2, 4] of the last two axes, at the places of axes 2 and 1 that the indices [5, 2] name
WINDOWS = GatherDimensionNumbers((0, 2), (0,), (2, 0))
#: one place along the last axis for each of the others
ALONG = GatherDimensionNumbers((), (2,), (2,), (0, 1), (0, 1))


def windows(x, indices, numbers, sizes, mode):
    """The start of each window of a gather, moved inside the operand or None; by loops."""
    d = GatherDimensionNumbers(*numbers)
    for row in np.ndindex(*indices.shape[:-1]):
        start = np.zeros(x.ndim, int)
        start[list(d.start_index_map)] = indices[row]
        for axis, other in zip(d.operand_batching_dims, d.start_indices_batching_dims):
            start[axis] = row[other]
        limit = np.array(x.shape) - sizes
        inside = np.clip(start, 0, limit)
        if mode == "fill" and (start != inside).any():
            inside = None
        yield row, inside


def placed(d, row, window, ndim):
    """The place in the result of a gather: the row of the indices, and all of the window."""
    rest = iter(row)
    return tuple(slice(None) if i in d.offset_dims else next(rest) for i in range(ndim))


def gathered(x, indices, numbers, sizes, mode, fill):
    """The oracle of `gather`."""
    d = GatherDimensionNumbers(*numbers)
    dropped = d.collapsed_slice_dims + d.operand_batching_dims
    kept = [n for i, n in enumerate(sizes) if i not in dropped]
    ndim = indices.ndim - 1 + len(kept)
    lengths, rows = iter(kept), iter(indices.shape[:-1])
    out = np.empty([next(lengths) if i in d.offset_dims else next(rows) for i in range(ndim)], x.dtype)
    for row, start in windows(x, indices, numbers, sizes, mode):
        window = fill
        if start is not None:
            window = x[tuple(slice(s, s + n) for s, n in zip(start, sizes))].reshape(kept)
        out[placed(d, row, kept, ndim)] = window
    return out


def scattered(x, indices, updates, numbers, sizes, mode, combine):
    """The oracle of the scatters: `combine(old, new)` window by window, in order."""
    d, out = GatherDimensionNumbers(*numbers), x.copy()
    for row, start in windows(x, indices, numbers, sizes, mode):
        if start is not None:
            window = tuple(slice(s, s + n) for s, n in zip(start, sizes))
            new = updates[placed(d, row, None, updates.ndim)].reshape(sizes)
            out[window] = combine(out[window], new)
    return out


SCATTERS = {
    ix.scatter: lambda old, new: new,
    ix.scatter_add: np.add,
    ix.scatter_sub: lambda old, new: old - new,
    ix.scatter_mul: np.multiply,
    ix.scatter_min: np.minimum,
    ix.scatter_max: np.maximum,
}

#: (numbers, window sizes, indices): in bounds and outside, with repeats
LAYOUTS = {
    "rows": (ROWS, (1, 3, 4), np.array([[1], [0], [1], [5], [-1]])),
    "windows": (WINDOWS, (1, 2, 3), np.array([[0, 0], [1, 1], [1, 1], [2, 0], [-2, 1], [0, 7]])),
    "along": (ALONG, (1, 1, 1), np.array([[0, 3, 3], [1, 4, -1]])[..., None]),
    "scalar": (ROWS._replace(offset_dims=(0, 1)), (1, 3, 4), np.array([1])),
    "windows that overlap": (GatherDimensionNumbers((1, 2, 3), (), (1, 2)), (2, 2, 2), np.array([[0, 0], [1, 1], [0, 1]])),
    "no component": (GatherDimensionNumbers((1, 2, 3), (), ()), (2, 3, 4), np.zeros((3, 0), int)),
}
_UPDATES = {
    k: np.random.default_rng(0).uniform(0.5, 1.5, gathered(X, i, d, s, "clip", 0).shape) for k, (d, s, i) in LAYOUTS.items()
}


# ---- values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_gather(layout, mode):
    numbers, sizes, indices = LAYOUTS[layout]
    found = ix.gather(X, indices, numbers, sizes, mode=mode)
    np.testing.assert_array_equal(found, gathered(X, indices, numbers, sizes, mode, np.nan))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_scatters(layout, mode):
    numbers, sizes, indices = LAYOUTS[layout]
    updates, numbers = _UPDATES[layout], ScatterDimensionNumbers(*numbers)
    found = fm.jit(lambda x, i, u: [f(x, i, u, numbers, mode=mode) for f in SCATTERS])(X, indices, updates)
    seen = "clip" if mode == "clip" else "fill"  # what is not inside is dropped
    for f, combine, y in zip(SCATTERS, SCATTERS.values(), found):
        want = scattered(X, indices, updates, numbers, sizes, seen, combine)
        np.testing.assert_allclose(y, want, rtol=1e-12, err_msg=f.__name__)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype):
    x = np.asarray([[0, 1, 2], [3, 0, 1]]).astype(dtype)
    u = np.asarray([[1, 0, 3], [2, 1, 1]]).astype(dtype)
    i = np.array([1, -2, 0])[:, None]
    cut = GatherDimensionNumbers((1,), (0,), (0,))
    numbers = ScatterDimensionNumbers(*cut)
    j = np.array([[1], [1]])

    def all_of(x, u):
        outs = [ix.gather(x, i, cut, (1, 3), mode="fill"), ix.gather(x, i, cut, (1, 3), mode="fill", fill_value=1)]
        outs += [ix.dynamic_slice(x, (1, 1), (1, 2)), ix.dynamic_update_slice(x, slice_(u, (0, 0), (2, 1)), (0, 2))]
        outs += [ix.scatter(x, j, u, numbers)]
        if dtype is not np.bool_:
            outs += [ix.scatter_add(x, j, u, numbers), ix.scatter_mul(x, j, u, numbers)]
        if dtype is not np.complex64:
            outs += [ix.scatter_min(x, j, u, numbers), ix.scatter_max(x, j, u, numbers)]
        return outs

    found = [np.asarray(y) for y in fm.jit(all_of)(x, u)]
    assert all(y.dtype == x.dtype for y in found)
    fill = {"f": np.nan, "V": np.nan, "c": np.nan, "i": None, "u": None, "b": True}[x.dtype.kind]
    if fill is None:
        info = np.iinfo(dtype)
        fill = info.min if x.dtype.kind == "i" else info.max
    want = [gathered(x, i, cut, (1, 3), "fill", fill), gathered(x, i, cut, (1, 3), "fill", 1), x[1:, 1:]]
    moved = x.copy()
    moved[:, 2:] = u[:, :1]
    want += [moved]
    rules = [SCATTERS[ix.scatter]]
    rules += [] if dtype is np.bool_ else [np.add, np.multiply]
    rules += [] if dtype is np.complex64 else [np.minimum, np.maximum]
    want += [scattered(x, j, u, cut, (1, 3), "fill", combine) for combine in rules]
    for y, z in zip(found, want, strict=True):
        np.testing.assert_array_equal(y.astype(np.complex128), z.astype(np.complex128))


def test_negative_zero_and_nan_fill():
    x, numbers = np.ones((2, 1)), GatherDimensionNumbers((1,), (0,), (0,))
    minus, plus = (ix.gather(x, np.array([[5]]), numbers, (1, 1), mode="fill", fill_value=v) for v in (-0.0, 0.0))
    assert np.signbit(np.asarray(minus)).all() and not np.signbit(np.asarray(plus)).any()


@pytest.mark.parametrize("starts", [(0, 0, 0), (1, 1, 2), (5, -1, 2), (-9, 9, -2)])
def test_dynamic_slices_move_windows_inside(starts):
    sizes = (1, 2, 3)
    wrapped = [s + n if s < 0 else s for s, n in zip(starts, X.shape)]
    low = np.clip(wrapped, 0, np.subtract(X.shape, sizes))
    window = tuple(slice(a, a + n) for a, n in zip(low, sizes))
    changed = X.copy()
    changed[window] = 0
    for s in (starts, np.array(starts), [np.int64(v) for v in starts]):
        np.testing.assert_array_equal(ix.dynamic_slice(X, s, sizes), X[window])
        np.testing.assert_array_equal(ix.dynamic_update_slice(X, np.zeros(sizes), s), changed)


def test_negative_starts_without_wrapping():
    found = ix.dynamic_slice(np.arange(5), (-2,), (2,), allow_negative_indices=False)
    np.testing.assert_array_equal(found, [0, 1])


def test_unsigned_and_narrow_starts():
    x = np.arange(300)
    f = fm.jit(lambda i: ix.dynamic_slice(x, (i,), (2,)))
    assert [np.asarray(f(v))[0] for v in (np.uint8(255), np.int8(-1), np.uint32(2**32 - 1))] == [255, 298, 298]


def test_nested_dynamic_slices_clamp_one_after_the_other():
    x = np.arange(10.0)
    f = fm.jit(lambda i, j: ix.dynamic_slice(ix.dynamic_slice(x, (i,), (4,)), (j,), (1,)))
    assert [float(np.asarray(f(i, j))[0]) for i, j in ((9, 0), (3, 5), (6, 0))] == [6.0, 6.0, 6.0]


def test_take_along_axis():
    i = np.array([[[3, 0], [1, 1], [2, 3]]])
    found = fm.jit(lambda x, i: ix.take_along_axis(x, i, -1))(X, i)
    np.testing.assert_array_equal(found, np.take_along_axis(X, i, -1))
    i = np.array([[[2, 0, 1, 1]]])
    np.testing.assert_array_equal(ix.take_along_axis(X, i, 1), np.take_along_axis(X, i, 1))
    found = ix.take_along_axis(X, np.full((2, 3, 1), 9), 2, mode="fill", fill_value=-1)
    np.testing.assert_array_equal(found, np.full((2, 3, 1), -1.0))


def test_empty():
    none = np.zeros((0, 1), int)
    assert ix.gather(X, none, ROWS, (1, 3, 4)).shape == (0, 3, 4)
    numbers = ScatterDimensionNumbers(*ROWS)
    np.testing.assert_array_equal(ix.scatter_add(X, none, np.zeros((0, 3, 4)), numbers), X)
    assert fm.vmap(lambda x: ix.gather(x, np.array([[0]]), ROWS, (1, 3, 4)))(np.zeros((0, 2, 3, 4))).shape == (0, 1, 3, 4)
    mapped = fm.vmap(lambda x, i: ix.gather(x, i, ROWS, (1, 3, 4)))(np.zeros((0, 2, 3, 4)), np.zeros((0, 5, 1), int))
    assert mapped.shape == (0, 5, 3, 4)


def test_the_last_update_stays_without_an_order_of_updates():
    """What other platforms run in place of a scatter with repeated indices."""
    numbers, _, indices = LAYOUTS["windows that overlap"]
    x = np.full(X.shape, np.nan)
    updates = np.where(_UPDATES["windows that overlap"] > 1, -0.0, _UPDATES["windows that overlap"])
    params = {
        "dimension_numbers": ScatterDimensionNumbers(*numbers),
        "indices_are_sorted": False,
        "unique_indices": False,
        "mode": ix.GatherScatterMode.FILL_OR_DROP,
    }
    found = np.asarray(fm.jit(lambda *v: scatter_last(v, params))(x, indices, updates))
    want = np.asarray(ix.scatter(x, indices, updates, params["dimension_numbers"]))
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(want))
    jaxpr, _ = trace(
        lambda x, u: [ix.scatter(x, indices.astype(np.int32), u, params["dimension_numbers"])],
        [fm.lowering.array.asarray(v).aval for v in (x, updates)],
    )
    assert "stablehlo.maximum" in to_stablehlo(jaxpr, platform="cuda")
    assert "stablehlo.maximum" not in to_stablehlo(jaxpr, platform="cpu")


# ---- under the transforms ----------------------------------------------------------------------------------------


def test_products_of_dynamic_slices():
    def f(x, u, i):
        y = ix.dynamic_slice(mul(x, x), (i, 0, 1), (1, 3, 2))
        return y, ix.dynamic_update_slice(mul(x, x), mul(u, y), (1, i, i))

    check_products(f, X, np.random.default_rng(0).uniform(size=(1, 3, 2)), np.array(1))


@pytest.mark.parametrize("layout, mode, order", [("rows", "fill", 2), ("windows", "clip", 2), ("along", "fill", 1)])
def test_products_of_gather(layout, mode, order):
    numbers, sizes, indices = LAYOUTS[layout]

    def f(x, i):
        return ix.gather(mul(x, x), i, numbers, sizes, mode=mode, fill_value=0.5)

    check_products(f, X, indices, order=order, batch=2)


@pytest.mark.parametrize(
    "scatter, layout, mode, order",
    [
        (ix.scatter, "rows", "fill", 2),
        (ix.scatter, "windows", "clip", 1),
        (ix.scatter, "along", "fill", 1),
        (ix.scatter_add, "rows", "clip", 2),
        (ix.scatter_add, "windows", "fill", 1),
        (ix.scatter_add, "along", "fill", 1),
        (ix.scatter_mul, "rows", "fill", 2),
        (ix.scatter_mul, "windows", "clip", 1),
        (ix.scatter_max, "windows", "fill", 2),
        (ix.scatter_min, "rows", "clip", 1),
    ],
)
def test_products_of_scatters(scatter, layout, mode, order):
    numbers, _, indices = LAYOUTS[layout]
    numbers = ScatterDimensionNumbers(*numbers)

    def f(x, i, u):
        return scatter(x, i, mul(u, u), numbers, mode=mode)

    check_products(f, X, indices, _UPDATES[layout], order=order, batch=2)


def test_products_of_scatter_mul_at_zero():
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    i = np.array([[0], [0], [1], [2], [2], [2]])
    u = np.array([0.0, 3.0, 0.0, 2.0, 5.0, -1.0])
    check_products(
        lambda x, u: ix.scatter_mul(x, i, u, numbers), np.array([2.0, 3.0, 5.0, 7.0]), u, products=("jit", "jvp", "vjp")
    )
    u = np.array([0.0, 0.0, 1.0, 2.0, 5.0, -1.0])  # both zero: no derivative of the first order
    found = fm.grad(lambda u: reduce_sum(ix.scatter_mul(np.ones(4), i, u, numbers), (0,)))(u)
    np.testing.assert_allclose(found, [0, 0, 1, -5, -2, 10])


def test_the_derivative_of_a_repeated_scatter_belongs_to_the_last_update():
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    i, w = np.array([[0], [2], [0], [0], [9]]), np.array([10.0, 20.0, 30.0])
    f = lambda x, u: reduce_sum(mul(ix.scatter(x, i, u, numbers), w), (0,))  # noqa: E731
    gx, gu = fm.grad(f, (0, 1))(np.zeros(3), np.arange(5.0))
    np.testing.assert_array_equal(gx, [0, 20, 0])
    np.testing.assert_array_equal(gu, [0, 30, 0, 10, 0])


def test_the_derivative_of_an_extremum_is_shared_at_ties():
    numbers, i = ScatterDimensionNumbers((), (0,), (0,)), np.array([[0], [0], [1]])
    f = lambda x, u: reduce_sum(ix.scatter_max(x, i, u, numbers), (0,))  # noqa: E731
    gx, gu = fm.grad(f, (0, 1))(np.array([2.0, 1.0]), np.array([2.0, 2.0, 3.0]))
    np.testing.assert_allclose(gx, [1 / 3, 0])
    np.testing.assert_allclose(gu, [1 / 3, 1 / 3, 1])


def test_a_promise_that_is_not_kept_has_the_derivative_of_what_was_read():
    numbers = GatherDimensionNumbers((), (0,), (0,))
    f = lambda x, i: reduce_sum(ix.gather(x, i, numbers, (1,)), (0,))  # noqa: E731
    np.testing.assert_array_equal(fm.grad(f)(np.arange(3.0), np.array([[7], [1]])), [0, 1, 1])


def test_masks_pass_through():
    """Where the result is not taken, sqrt has no part in the gradient, whatever its derivative there."""
    x, i = np.array([0.0, 4.0]), np.array([[0], [1]])
    cut, put = GatherDimensionNumbers((), (0,), (0,)), ScatterDimensionNumbers((), (0,), (0,))
    zeros = np.zeros(2)

    def total(y, x):
        return reduce_sum(select(gt(x, 1.0), y, zeros), (0,))

    ways = [
        lambda x: ix.gather(sqrt(x), i, cut, (1,)),
        lambda x: ix.scatter(zeros, i, sqrt(x), put),
        lambda x: ix.scatter(sqrt(x), np.zeros((0, 1), int), zeros[:0], put),
        lambda x: ix.scatter_add(zeros, i, sqrt(x), put),
        lambda x: ix.dynamic_update_slice(zeros, sqrt(x), (0,)),
        lambda x: ix.dynamic_slice(ix.dynamic_update_slice(np.zeros(3), sqrt(x), (1,)), (1,), (2,)),
    ]
    found = fm.jit(lambda x: [fm.grad(lambda x, w=w: total(w(x), x))(x) for w in ways])(x)
    for g in found:
        np.testing.assert_allclose(g, [0, 0.25])


def test_apply():
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    f = lambda x, i: ix.scatter_apply(x, i, lambda v: mul(v, 2.0), numbers, update_shape=(3,))  # noqa: E731
    i = np.array([[0], [0], [2]])
    np.testing.assert_array_equal(f(np.ones(3), i), [4, 1, 2])
    check_products(f, np.ones(3, np.float32), i)
    with pytest.raises(NotImplementedError, match="unique_indices=True"):
        fm.grad(lambda x: reduce_sum(f(x, i), (0,)))(np.ones(3))
    with pytest.raises(TypeError, match=r"must map f64\[\] to the same type, got bool\[\]"):
        ix.scatter_apply(np.ones(3), i, lambda v: gt(v, 0.0), numbers, update_shape=(3,))
    with pytest.raises(NotImplementedError, match="may not use other arrays"):
        c = fm.lowering.array.asarray(np.ones(()))
        ix.scatter_apply(np.ones(3), i, lambda v: sub(v, c), numbers, update_shape=(3,))


# ---- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: ix.dynamic_slice(X, (0, 0), (1, 1, 1)), r"dynamic_slice of f64\[2,3,4\] expects 3 start indices, got 2"),
        (lambda: ix.dynamic_slice(X, (0, 0, 0), (1, 9, 1)), r"no longer than those of f64\[2,3,4\], got \(1, 9, 1\)"),
        (lambda: ix.dynamic_slice(X, (0, 0, 1.5), (1, 1, 1)), r"scalar integer start indices, got f32\[\]"),
        (lambda: ix.dynamic_update_slice(X, np.zeros((1, 1, 1), int), (0, 0, 0)), "an update of the dtype of f64"),
        (lambda: ix.gather(X, np.zeros((2, 2), int), ROWS, (1, 3, 4)), r"i64\[2,2\]: Gather op has 1 elements in start"),
        (lambda: ix.gather(X, np.zeros((2, 1)), ROWS, (1, 3, 4)), r"integer indices \[.., components\], got f64\[2,1\]"),
        (lambda: ix.gather(X, np.zeros((2, 1), int), ROWS, (2, 3, 4)), "only collapse slice dims with bound 1, but bound is 2"),
        (lambda: ix.gather(X, np.zeros((2, 1), int), ROWS._replace(offset_dims=(2, 1)), (1, 3, 4)), "must be sorted"),
        (lambda: ix.gather(X, np.zeros((2, 1), int), ROWS, (1, 3, 4), mode="wrong"), "unknown mode 'wrong'"),
        (
            lambda: ix.scatter_add(X, np.zeros((2, 1), int), np.zeros((5, 3, 4)), ScatterDimensionNumbers(*ROWS)),
            r"must have the rows \(2,\) of the indices, got \(5,\)",
        ),
        (
            lambda: ix.scatter(X, np.zeros((2, 1), int), np.zeros((2, 4)), ScatterDimensionNumbers((1,), (0, 5), (0,))),
            r"Invalid inserted_window_dims set in scatter op; valid range is \[0, 3\), got 5",
        ),
        (
            lambda: ix.scatter(X, np.zeros((2, 1), int), np.zeros((2, 4)), ScatterDimensionNumbers((1,), (0,), (0,))),
            "Scatter op has window of size 2; doesn't match operand of rank 3",
        ),
        (
            lambda: ix.scatter(X, np.zeros((2, 1), int), np.zeros((2, 9, 4)), ScatterDimensionNumbers(*ROWS)),
            "Bounds of the window dimensions of updates .*: axis 1 of updates has length 9, axis 1 of the operand 3",
        ),
        (
            lambda: ix.scatter(X, np.zeros((2, 1), int), np.zeros((2, 3, 4), int), ScatterDimensionNumbers(*ROWS)),
            r"scatter expects updates of the dtype of f64\[2,3,4\], got i64\[2,3,4\]",
        ),
        (lambda: ix.take_along_axis(X, np.zeros((2, 1), int), 0), "expects indices with 3 axes"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()
