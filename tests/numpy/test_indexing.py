"""`x[index]` and `x.at[index]` against NumPy: values, derivatives, modes, errors, and what is recorded."""

import warnings

import numpy as np
import pytest

import funcml as fm
from funcml import dtypes
from funcml.core.errors import NonConcreteBooleanIndexError
from funcml.lowering import disk_cache
from funcml.lowering.array import asarray
from funcml.numpy.indexing import IndexUpdateHelper, getitem, rewriting_take
from funcml.primitives.axes import reduce_sum
from funcml.primitives.elementwise import add, convert, gt, lt, mul, neg, sub
from tests.numpy.index_cases import cases
from tests.products import check_products

F32 = np.float32


def at(x):
    return IndexUpdateHelper(x)


def total(x):
    return reduce_sum(x, tuple(range(x.ndim)))


# ---- against NumPy -----------------------------------------------------------------------------------------------


def _updates(x, u, index):
    return [at(x)[index].set(u), at(x)[index].add(u), at(x)[index].max(u)]


@pytest.mark.parametrize("seed", range(3))
def test_random_indices(seed):
    """Reads and updates of random arrays at random places, in one program for all, and outside of any."""
    found = cases(seed, 25)
    xs = [np.arange(np.prod(shape), dtype=np.float64).reshape(shape) - 5 for shape, _ in found]
    us = [np.arange(1.0, x[index].size + 1).reshape(x[index].shape) for x, (_, index) in zip(xs, found)]

    def both(xs, us):
        reads = [getitem(x, index) for x, (_, index) in zip(xs, found)]
        return reads, [_updates(x, u, index) for x, u, (_, index) in zip(xs, us, found)]

    reads, updates = fm.jit(both)(xs, us)
    for (shape, index), x, u, y, changed in zip(found, xs, us, reads, updates):
        message = f"shape {shape}, index {index!r}"
        np.testing.assert_array_equal(y, x[index], err_msg=message)
        np.testing.assert_array_equal(getitem(asarray(x), index), x[index], err_msg=message)
        wants = [x.copy() for _ in range(3)]
        wants[0][index] = u
        np.add.at(wants[1], index, u)
        np.maximum.at(wants[2], index, u)
        for z, want in zip(changed, wants, strict=True):
            np.testing.assert_array_equal(z, want, err_msg=message)


@pytest.mark.parametrize("seed", range(2))
def test_random_indices_outside_of_a_program(seed):
    """The programs that are compiled once for each form of index."""
    for shape, index in cases(100 + seed, 6):
        x = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
        np.testing.assert_array_equal(rewriting_take(asarray(x), index), x[index], err_msg=f"{shape} {index!r}")
        want = x.copy()
        want[index] = -1.0
        np.testing.assert_array_equal(at(asarray(x))[index].set(-1.0), want, err_msg=f"{shape} {index!r}")


@pytest.mark.parametrize(
    "index", [0, (1, slice(None, None, -2)), (np.array([1, 0, 1]), slice(1, 3)), (slice(None), np.array([[2], [0]]))]
)
def test_derivatives(index):
    x = np.arange(1.0, 13.0).reshape(3, 4)
    check_products(lambda x: getitem(mul(x, x), index), x, batch=2)
    u = np.linspace(0.5, 1.5, np.zeros((3, 4))[index].size).reshape(np.zeros((3, 4))[index].shape)

    def f(x, u):
        return [getattr(at(mul(x, x))[index], op)(mul(u, u)) for op in ("set", "add", "multiply")]

    check_products(f, x, u, order=1, batch=2)


def test_products_with_indices_known_at_run_time():
    def f(x, i, j):
        y = mul(x, x)
        return (
            getitem(y, i),
            getitem(y, (j, slice(1, 3))),
            getitem(y, (slice(None), j)),
            at(y)[i].set(neg(y)),
            at(y)[j, 0].add(1.0),
        )

    check_products(f, np.arange(1.0, 13.0).reshape(3, 4), np.array([2, 0, -1]), np.array(1), batch=2)


def test_divide_and_power():
    x, i = np.array([-2.0, 3.0, 5.0]), np.array([0, 0, 2])
    np.testing.assert_allclose(at(asarray(x))[i].divide(np.array([2.0, 4.0, 5.0])), [-0.25, 3, 1])
    np.testing.assert_allclose(at(asarray(x))[i].power(2.0), [16, 3, 25])
    np.testing.assert_allclose(at(asarray(np.array([4, 5])))[0].divide(8), [0.5, 5])
    check_products(lambda x, v: [at(x)[1:].divide(v), at(x)[1:].power(v)], x, np.array([1.5, 2.5]), order=1, batch=2)


def test_apply():
    x = asarray(np.arange(5.0))
    np.testing.assert_array_equal(at(x)[1:3].apply(neg), [0, -1, -2, 3, 4])
    np.testing.assert_array_equal(at(x)[np.array([1, 1, 4])].apply(lambda v: add(v, 1.0)), [0, 3, 2, 3, 5])
    np.testing.assert_array_equal(at(x)[np.arange(5) > 3].apply(neg), [0, 1, 2, 3, -4])
    np.testing.assert_array_equal(fm.jit(lambda x: at(x)[gt(x, 2.0)].apply(neg))(x), [0, 1, 2, -3, -4])
    np.testing.assert_array_equal(
        fm.grad(lambda x: total(at(x)[np.array([1, 4])].apply(lambda v: mul(v, v))))(x), [1, 2, 1, 1, 8]
    )
    rows = fm.vmap(lambda a, i: at(a)[i].apply(lambda v: sub(v, np.int64(1))), (0, None))(np.array([[1, 2, 3, 4]]), np.array([3]))
    np.testing.assert_array_equal(rows, [[1, 2, 3, 3]])


@pytest.mark.parametrize("dtype", [np.float16, dtypes.bfloat16, np.complex64, np.int8, np.uint64, np.bool_])
def test_dtypes_are_kept(dtype):
    x = np.asarray([[0, 1], [2, 1], [1, 0]]).astype(dtype)
    i = np.array([2, 0])
    y = asarray(x)
    row = getitem(y, 0)
    for found in (row, getitem(y, i), rewriting_take(y, i), at(y)[0].set(row), at(y)[i].add(row)):
        assert found.dtype == dtype
    np.testing.assert_array_equal(np.asarray(rewriting_take(y, i)), x[i])


def test_updates_of_bool():
    x = asarray(np.array([True, False, True]))
    np.testing.assert_array_equal(at(x)[np.array([1, 0])].add(np.array([True, False])), [True, True, True])
    np.testing.assert_array_equal(at(x)[0:2].multiply(False), [False, False, True])


# ---- masks -------------------------------------------------------------------------------------------------------


def test_masks_under_jit():
    x = asarray(np.arange(8))
    five = np.int64(5)
    found = fm.jit(lambda x: [at(x)[lt(x, five)].set(0), at(x)[lt(x, five)].add(10), at(x)[lt(x, five)].min(x)])(x)
    np.testing.assert_array_equal(found[0], [0, 0, 0, 0, 0, 5, 6, 7])
    np.testing.assert_array_equal(found[1], [10, 11, 12, 13, 14, 5, 6, 7])
    np.testing.assert_array_equal(found[2], np.arange(8))


@pytest.mark.parametrize(
    "make, values",
    [
        (lambda x: x[:, :, 0] % 8 == 0, np.array([1.0, 2.0, 3.0, 4.0])),
        (lambda x: (slice(None), x[0, :, 0] % 8 == 0), np.array([[[1.0], [2.0]], [[3.0], [4.0]]])),
        (lambda x: (..., x[0, 0] > 1), np.array([[7.0], [8.0], [9.0]])),
        (lambda x: True, np.arange(3.0)[:, None]),
    ],
)
def test_masks_over_some_axes(make, values):
    x = np.arange(24.0).reshape(2, 3, 4)
    index = make(x)
    for v in (5.0, values):
        want = x.copy()
        want[index] = v
        np.testing.assert_array_equal(at(asarray(x))[index].set(v), want)
        np.testing.assert_array_equal(fm.jit(lambda x, v: at(x)[index].set(v))(x, v), want)


def test_the_mask_of_some_rows_may_be_traced():
    x = np.arange(12.0).reshape(3, 4)
    found = fm.jit(lambda x, m, v: [at(x)[m].set(v), at(x)[m].set(x), at(x)[:, getitem(m, 0)].add(1.0)])(
        x, np.array([True, False, True]), np.arange(4.0)
    )
    want = x.copy()
    want[[0, 2]] = np.arange(4.0)
    np.testing.assert_array_equal(found[0], want)
    np.testing.assert_array_equal(found[1], x)
    np.testing.assert_array_equal(found[2], x + 1)


def test_a_traced_mask_is_an_error_that_says_what_to_write():
    with pytest.raises(NonConcreteBooleanIndexError, match=r"jnp.where.*size=n.*at\[mask\]"):
        fm.jit(lambda x: getitem(x, gt(x, 1.0)))(np.arange(3.0))
    with pytest.raises(NonConcreteBooleanIndexError, match="updating f64"):
        fm.jit(lambda x: at(x)[gt(x, 1.0)].set(np.ones(2)))(np.arange(3.0))


def test_a_mask_is_known_under_grad_outside_of_jit():
    g = fm.grad(lambda x: total(getitem(mul(x, x), gt(x, 1.0))))(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(g, [0, 4, 6])


# ---- out of bounds -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [10, -4, (0, 10), np.array([0, 3]), asarray(np.array([-4])), (slice(None), np.array([[7]]))])
def test_known_indices_out_of_bounds_raise(index):
    x = asarray(np.ones((3, 5), F32))
    compiled = fm.jit(lambda x: getitem(x, index))
    for call in (getitem, rewriting_take, lambda x, i: at(x)[i].set(0), lambda x, _: compiled(x)):
        with pytest.raises(IndexError, match=r"out of bounds for axis \d with size \d"):
            call(x, index)


def test_modes():
    x = np.arange(1.0, 5.0)
    i = np.array([0, 7, -1, -9])

    def reads(x, i):
        return [at(x)[i].get(mode=m) for m in (None, "clip", "promise_in_bounds", "fill", "wrap")] + [
            at(x)[i].get(mode="fill", fill_value=9, wrap_negative_indices=False)
        ]

    def writes(x, i):
        return [at(x)[i].add(10, mode=m) for m in (None, "clip", "promise_in_bounds", "drop", "wrap")]

    nan = np.nan
    want = [[1, 4, 4, 1], [1, 4, 4, 1], [1, 4, 4, 1], [1, nan, 4, nan], [1, 4, 4, 4], [1, 9, 9, 9]]
    for y, z in zip(fm.jit(reads)(x, i), want, strict=True):
        np.testing.assert_array_equal(y, z)
    want = [[11, 2, 3, 14], [21, 2, 3, 24], [11, 2, 3, 14], [11, 2, 3, 14], [11, 2, 3, 34]]
    for y, z in zip(fm.jit(writes)(x, i), want, strict=True):
        np.testing.assert_array_equal(y, z)
    y = asarray(x)
    known = [at(y)[7].get(mode="clip"), at(y)[-9].get(mode="wrap"), at(y)[7].get(mode="fill"), at(y)[i].get(mode="clip")]
    for found, z in zip(known, [4, 4, nan, [1, 4, 4, 1]], strict=True):
        np.testing.assert_array_equal(found, z)
    np.testing.assert_array_equal(at(y)[7].set(0, mode="drop"), x)
    np.testing.assert_array_equal(at(y)[i].set(0, mode="drop"), [0, 2, 3, 0])


def test_derivatives_follow_the_mode():
    x, i = np.arange(5.0), np.array([7, 1, -9])
    grads = fm.jit(lambda x, i: [fm.grad(lambda x: total(at(x)[i].get(mode=m)))(x) for m in (None, "clip", "fill", "wrap")])(x, i)  # noqa: B023
    for g, want in zip(grads, [[1, 1, 0, 0, 1], [1, 1, 0, 0, 1], [0, 1, 0, 0, 0], [0, 2, 1, 0, 0]], strict=True):
        np.testing.assert_array_equal(g, want)
    g = fm.grad(lambda x: total(at(x)[asarray(np.array([7]))].get(mode="clip")))(x)
    np.testing.assert_array_equal(g, [0, 0, 0, 0, 1])


def test_repeated_set_is_consistent_with_its_gradient():
    f = lambda u: getitem(at(np.zeros(2))[np.array([0, 0])].set(u), 0)  # noqa: E731
    value, g = fm.value_and_grad(f)(np.array([3.0, 5.0]))
    assert float(value) == 5.0 and np.asarray(g).tolist() == [0.0, 1.0]


def test_set_at_an_index_that_depends_on_x():
    def f(x):
        return total(at(np.zeros(3))[convert(sub(x, 1.0), np.dtype("int32"))].set(x))

    np.testing.assert_array_equal(fm.grad(f)(np.array([1.0, 2.0, 3.0])), [1, 1, 1])


# ---- values and their dtypes -------------------------------------------------------------------------------------


def test_values_are_cast_with_a_word():
    x = asarray(np.arange(4))
    with pytest.warns(FutureWarning, match=r"inputs have incompatible types: v of dtype f32 is cast to the dtype of x, i64\[4\]"):
        assert np.asarray(at(x)[0].set(2.7)).tolist() == [2, 1, 2, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert at(x)[0].set(np.int8(3)).dtype == np.int64
        assert at(asarray(np.zeros(2, F32)))[0].add(3).dtype == F32
        assert np.asarray(at(asarray(np.zeros(3, F32)))[:2].set([1.0, 2.5])).tolist() == [1.0, 2.5, 0.0]
    with pytest.raises(ValueError, match="cannot store NaN in an int array"):
        at(x)[0].set(np.nan)
    with pytest.raises(OverflowError, match="300 is out of bounds for uint8"):
        at(asarray(np.zeros(2, np.uint8)))[0].set(300)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda x: getitem(x, [0, 1]), TypeError, r"non-tuple sequence .*jnp.array\(\[0, 1\]\)"),
        (lambda x: getitem(x, "a"), TypeError, "indexer with type str, 'a'"),
        (lambda x: getitem(x, 1.0), TypeError, "indexer with type float, 1.0"),
        (lambda x: getitem(x, np.ones(2)), TypeError, r"must have integer or boolean type, got indexer with type f64\[2\]"),
        (lambda x: getitem(x, (0, 0, 0)), IndexError, "Too many indices: array is 2-dimensional, but 3 were indexed"),
        (lambda x: getitem(x, (..., ...)), IndexError, "only a single ellipsis"),
        (lambda x: getitem(x, np.ones(4, bool)), IndexError, "along axis 0: the axis has size 3, the mask 4"),
        (lambda x: getitem(x, (np.array([0, 1]), np.array([0, 1, 2]))), IndexError, r"shape mismatch.*\(2,\) \(3,\)"),
        (lambda x: getitem(x, slice(0, 2.0)), TypeError, "slice indices must be integers"),
        (
            lambda x: at(x)[0].set(np.ones(3, F32)),
            ValueError,
            r"v of shape \(3,\) does not broadcast to x\[index\] of shape \(5,\)",
        ),
        (lambda x: at(x)[0].set("s"), TypeError, r"x.at\[...\].set\(v\) expects arrays or numbers"),
        (lambda x: at(x)[0].get(mode="foo"), ValueError, "unknown mode 'foo'"),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call(asarray(np.ones((3, 5), F32)))


def test_slices_with_bounds_known_only_at_run_time():
    with pytest.raises(IndexError, match="lax.dynamic_slice"):
        fm.jit(lambda x, i: getitem(x, slice(i, add(i, 2))))(np.arange(5.0), 1)
    g = fm.grad(lambda x: total(getitem(x, slice(0, convert(getitem(x, 2), np.dtype("int32"))))))(np.arange(5.0))
    np.testing.assert_array_equal(g, [1, 1, 0, 0, 0])


# ---- what is recorded --------------------------------------------------------------------------------------------


def _recorded(f, *args) -> list[str]:
    return [e.primitive.name for e in fm.make_jaxpr(f)(*args).eqns]


@pytest.mark.parametrize(
    "index, want",
    [
        (0, ["slice", "reshape"]),
        (slice(1, 3), ["slice"]),
        ((..., None), ["reshape"]),
        (slice(None, None, -1), ["rev"]),
        (slice(None), []),
        ((0, 1), ["slice", "reshape"]),
        (np.array([1, 0]), ["gather"]),
    ],
)
def test_equations(index, want):
    assert _recorded(lambda x: getitem(x, index), np.ones((3, 5))) == want


def test_updates_outside_of_a_program_do_not_compile_for_each_place(monkeypatch):
    made = []
    original = disk_cache.load_or_compile
    monkeypatch.setattr(disk_cache, "load_or_compile", lambda *a, **k: made.append(a) or original(*a, **k))
    x = asarray(np.arange(50.0))
    for i in range(20):
        x = at(x)[i].set(float(i))
        x = at(x)[i : i + 2].add(1.0)
        x = at(x)[np.array([i, i + 1])].multiply(2.0)
        assert np.asarray(getitem(x, i)) == np.asarray(rewriting_take(x, i))
    assert len(made) <= 8


def test_x_does_not_change():
    x = asarray(np.arange(3.0))
    at(x)[0].set(9.0)
    host = np.asarray(getitem(x, slice(None)))
    assert not np.shares_memory(host, np.asarray(x))
    np.testing.assert_array_equal(x, np.arange(3.0))


def test_lists_among_several_indices_are_arrays():
    x = np.arange(12.0).reshape(3, 4)
    for index in (([0, 2], [1, 3]), ([0, 2],), (0, [1, 1]), ([], 1), ([True, False, True], 2), (slice(None), [3, 0])):
        np.testing.assert_array_equal(asarray(x)[index], x[index])
        np.testing.assert_array_equal(fm.jit(lambda x, i=index: x[i])(x), x[index])
