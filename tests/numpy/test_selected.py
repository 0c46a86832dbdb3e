"""`x[mask]` and `x.at[mask]` under `jit`, where nobody knows how many elements are true: against NumPy, which does."""

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml.errors import NonConcreteBooleanIndexError
from tests.products import check_products

X = np.array([[1.0, -2.0, 3.0], [4.0, -5.0, 6.0]])
ROWS = np.array([True, False])
COLUMNS = np.array([True, False, True])

# (reduction of x[mask], the same with NumPy's argument names)
REDUCTIONS = {
    "sum": lambda s: s.sum(),
    "prod": lambda s: s.prod(),
    "max": lambda s: s.max(),
    "min": lambda s: s.min(),
    "mean": lambda s: s.mean(),
    "var": lambda s: s.var(),
    "std with ddof": lambda s: s.std(ddof=1),
    "any": lambda s: (s > 5).any(),
    "all": lambda s: (s > 0).all(),
    "size": lambda s: s.size,
    "elementwise": lambda s: (2 * s - s**2 / 3 + abs(-s)).sum(),
    "two operands": lambda s: (s * s - s).mean(),
}
FUNCTIONS = ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "ptp", "count_nonzero", "nansum", "nanmean"]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_methods(name):
    f = REDUCTIONS[name]
    for mask in (X > 0, X > -9, ROWS):
        np.testing.assert_allclose(fm.jit(lambda x, m: f(x[m]))(X, mask), f(X[mask]), rtol=1e-12)


def test_functions():
    def every(xp, x, m):
        return [getattr(xp, name)(x[m]) for name in FUNCTIONS]

    found = fm.jit(lambda x, m: every(jnp, x, m))(X, X > 0)
    for name, got, want in zip(FUNCTIONS, found, every(np, X, X > 0), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, err_msg=name)


def test_functions_of_the_elements():
    f = fm.jit(lambda x: jnp.sum(jnp.log(x[x > 0]) + jnp.clip(x[x > 0], 2, 5) ** 2))
    s = X[X > 0]
    np.testing.assert_allclose(f(X), np.sum(np.log(s) + np.clip(s, 2, 5) ** 2), rtol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, -1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes_beside_the_mask(axis, keepdims):
    def f(x, m):
        out = x[m].sum(axis, keepdims=keepdims)
        return out.max() if axis in (1, -1) else out

    np.testing.assert_allclose(fm.jit(f)(X, ROWS), f(X, ROWS))


@pytest.mark.parametrize("index", [
    lambda m, c: (slice(None), c), lambda m, c: (m, 1), lambda m, c: (m, slice(None, None, 2)), lambda m, c: (0, c),
    lambda m, c: (..., c), lambda m, c: (m, None),
], ids=["columns", "with an int", "with a slice", "behind an int", "behind an ellipsis", "with a new axis"])  # fmt: skip
def test_masks_among_other_indices(index):
    f = lambda x, m, c: x[index(m, c)].sum(0)
    got = fm.jit(lambda x, m, c: f(x, m, c) if f(X, ROWS, COLUMNS).ndim == 0 else x[index(m, c)].sum())(X, ROWS, COLUMNS)
    want = f(X, ROWS, COLUMNS) if f(X, ROWS, COLUMNS).ndim == 0 else X[index(ROWS, COLUMNS)].sum()
    np.testing.assert_allclose(got, want)


def test_ints_apart_from_the_mask_move_its_axis_to_the_front():
    x = np.arange(24.0).reshape(2, 3, 4)
    f = lambda x, m: x[0, :, m].sum(0)
    m = np.array([True, False, True, True])
    np.testing.assert_allclose(fm.jit(f)(x, m), f(x, m))


@pytest.mark.parametrize("flag", [True, False])
def test_a_mask_without_axes(flag):
    f = lambda x, flag: x[flag].sum()
    np.testing.assert_allclose(fm.jit(f)(X, flag), np.sum(X[np.bool_(flag)]))


def test_nothing_selected():
    f = fm.jit(lambda x, m: (x[m].sum(), x[m].prod(), x[m].max(), x[m].min(), x[m].any(), x[m].all(), x[m].size, x[m].mean()))
    found = f(X, np.zeros_like(X, bool))
    np.testing.assert_array_equal(found, [0, 1, -np.inf, np.inf, False, True, 0, np.nan])


def test_where_and_initial():
    f = fm.jit(lambda x, m: (x[m].sum(0, where=x[1] > 0), x[m].max(initial=99.0), x[m].sum(initial=1.0)))
    a, b, c = f(X, ROWS)
    positive = fm.jit(lambda x, m: x[m].sum(where=x[m] > 0))(X, ROWS)
    assert float(positive) == 4.0
    np.testing.assert_allclose(a, np.where(X[1] > 0, X[0], 0))
    assert float(b) == 99.0 and float(c) == 3.0


@pytest.mark.parametrize("dtype", ["int32", "float16", "bool", "complex64"])
def test_dtypes(dtype):
    x = (X > 0 if dtype == "bool" else X).astype(dtype)
    got = fm.jit(lambda x, m: x[m].sum())(x, ROWS)
    assert got.dtype == jnp.sum(jnp.array(x)).dtype
    np.testing.assert_allclose(got, x[ROWS].sum())


UPDATES = {
    "set a number": lambda x, m: x.at[m].set(0),
    "add a number": lambda x, m: x.at[m].add(2.5),
    "multiply by an array of the shape of x": lambda x, m: x.at[m].multiply(x),
    "min": lambda x, m: x.at[m].min(0.0),
    "max": lambda x, m: x.at[m].max(0.0),
    "power": lambda x, m: x.at[m].power(2),
    "divide": lambda x, m: x.at[m].divide(2),
    "the elements under the mask": lambda x, m: x.at[m].set(x[m] * 10),
    "apply": lambda x, m: x.at[m].apply(jnp.exp),
}


@pytest.mark.parametrize("name", UPDATES)
def test_updates(name):
    f = UPDATES[name]
    for mask in (X > 0, ROWS, np.zeros_like(ROWS)):
        if name.startswith("multiply") and mask.ndim == 1:
            continue
        np.testing.assert_allclose(fm.jit(f)(X, mask), f(jnp.array(X), mask), rtol=1e-12)


def test_updates_of_a_window_under_a_mask():
    f = lambda x, m, c: (x.at[m, 1].set(7.0), x.at[m, ::2].add(1.0), x.at[0, c].multiply(3.0), x.at[:, c].set(0.0))
    for got, want in zip(fm.jit(f)(X, ROWS, COLUMNS), f(jnp.array(X), ROWS, COLUMNS), strict=True):
        np.testing.assert_allclose(got, want)


def test_rows_of_the_mask_take_a_row_each_the_same():
    row = np.array([7.0, 8.0, 9.0])
    np.testing.assert_allclose(fm.jit(lambda x, m: x.at[m].set(row))(X, ROWS), [[7, 8, 9], X[1]])


def test_products():
    mask = X > 0
    check_products(lambda x, m: (x[m] ** 2).sum() + jnp.array(x).at[m].set(x * x).sum(), X, mask)
    check_products(lambda x, m: jnp.log(x[m]).sum() + x[m].mean() * x[m].var(), np.abs(X), mask)


def test_lanes_not_selected_do_not_disturb_derivatives():
    g = fm.jit(fm.grad(lambda x: jnp.log(x[x > 0]).sum()))(np.array([2.0, 0.0, -1.0]))
    np.testing.assert_array_equal(g, [0.5, 0, 0])


def test_vmap_over_masks():
    f = lambda r, m: r[m].sum()
    m = X > 0
    np.testing.assert_allclose(fm.vmap(f)(X, m), [X[i][m[i]].sum() for i in range(2)])


def test_outside_of_jit_it_is_an_array():
    x = jnp.array(X)
    assert x[x > 0].shape == (4,)
    np.testing.assert_allclose(fm.grad(lambda x: x[x > 0][1])(x), [[0, 0, 1.0], [0, 0, 0]])


@pytest.mark.parametrize("ask", [
    lambda x, m: x[m], lambda x, m: jnp.sin(x[m]), lambda x, m: jnp.sort(x[m]), lambda x, m: len(x[m]), lambda x, m: list(x[m]),
    lambda x, m: x[m][0], lambda x, m: x[m].shape, lambda x, m: x[m] + x[x > 1], lambda x, m: x[m] * jnp.arange(4.0),
    lambda x, m: x.at[m].set(jnp.arange(4.0)), lambda x, m: jnp.concatenate([x[m], x[m]]), lambda x, m: x[m].reshape(-1),
    lambda x, m: np.asarray(x[m]), lambda x, m: x.at[x > 1].set(x[m]), lambda x, m: x[m].sum(where=x > 0),
], ids=["result", "elementwise result", "sort", "len", "list", "element", "shape", "another mask", "an array", "many values",
        "concatenate", "reshape", "numpy", "update under another mask", "where"])  # fmt: skip
def test_what_needs_the_number_of_elements_names_the_alternatives(ask):
    with pytest.raises(NonConcreteBooleanIndexError, match=r"traced mask bool\[2,3\].*jnp.where.*nonzero\(mask, size=n\)"):
        fm.jit(ask)(X, X > 0)


def test_axis_out_of_bounds():
    with pytest.raises(ValueError, match="axis 1 is out of bounds"):
        fm.jit(lambda x, m: x[m].sum(1))(X, X > 0)
