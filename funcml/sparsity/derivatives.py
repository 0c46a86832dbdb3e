"""Jacobians and Hessians with few entries: pattern off the program, coloured, a product for each colour."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from funcml import dtypes
from funcml import numpy as jnp
from funcml.arguments import (
    as_value,
    describe_value,
    flatten_call,
    function_name,
    is_array_like,
    normalise_argnums,
    positive_int,
    trace_call,
)
from funcml.core.errors import user_facing
from funcml.core.tracing import aval_of, eval_jaxpr
from funcml.derivatives import grad, jvp, vjp
from funcml.sparsity.colouring import columns_coloured, symmetric_coloured
from funcml.sparsity.dependence import dependence
from funcml.sparsity.matrices import SparseMatrix
from funcml.sparsity.patterns import Pattern
from funcml.vectorise import vmap

__all__ = ["hessian_sparsity", "jacobian_sparsity", "sparse_hessian", "sparse_jacobian"]


class _Function(NamedTuple):
    """A recorded function of one array to one array: `jaxpr(captured..., x)`."""

    jaxpr: Any
    captured: list
    x: Any

    def __call__(self, x):
        return eval_jaxpr(self.jaxpr, [*self.captured, x])[0]

    def pattern(self) -> Pattern:
        """The pattern of its Jacobian."""
        n, m = aval_of(self.x).size, self.jaxpr.outs[0].aval.size
        ins = [*[None] * len(self.captured), Pattern.identity(n)]
        (found,) = dependence(self.jaxpr, [*self.captured, None], ins, n)
        return Pattern.empty(m, n) if found is None else found

    def remembered(self, what: Callable, make: Callable):
        """`make()`, kept on the program where it follows from the program alone."""
        if self.captured:
            return make()
        found = self.jaxpr.memo.get(what)
        if found is None:
            found = self.jaxpr.memo[what] = make()
        return found


def _recorded(who: str, fun: Callable, argnums: int, args: tuple, kwargs: dict, transform: Callable = lambda f: f) -> _Function:
    """`transform(fun)` as a function of argument `argnums` alone."""
    if not isinstance(argnums, int):
        raise TypeError(
            f"{who} of {function_name(fun)}: argnums must be one int, got {argnums!r}; join arguments to one array with "
            "`flatten_util.ravel_pytree`"
        )
    (place,) = normalise_argnums(argnums, len(args), who)
    x = args[place]
    _check(who, fun, "the argument", x)
    x = as_value(x)

    def of_one(x):
        return fun(*args[:place], x, *args[place + 1 :], **kwargs)

    of_one.__name__ = function_name(fun)
    if transform is grad:
        _check_scalar(who, fun, of_one, x)
    call = flatten_call(transform(of_one), (x,), {}, who)
    traced = trace_call(call, [aval_of(x)])
    result = traced.rebuild(traced.jaxpr.out_avals)
    if len(traced.jaxpr.outs) != 1 or result is not traced.jaxpr.out_avals[0]:
        raise TypeError(
            f"{who} of {function_name(fun)} needs one array as its result, got {result!r}; join results with "
            "`flatten_util.ravel_pytree`"
        )
    if not dtypes.is_float(result.dtype):
        raise TypeError(f"{who} of {function_name(fun)} needs a real float result, got {result}")
    return _Function(traced.jaxpr, list(traced.captured), x)


def _check(who: str, fun: Callable, what: str, x) -> None:
    if not is_array_like(x) or not dtypes.is_float(aval_of(as_value(x)).dtype):
        raise TypeError(
            f"{who} of {function_name(fun)} needs {what} to be one array of real floats, got {describe_value(x)}; join a tree of "
            "arrays to one with `flatten_util.ravel_pytree`"
        )


def _check_scalar(who: str, fun: Callable, of_one: Callable, x) -> None:
    outs = trace_call(flatten_call(of_one, (x,), {}, who), [aval_of(x)]).jaxpr.out_avals
    if len(outs) != 1 or outs[0].shape != ():
        raise TypeError(f"{who} of {function_name(fun)} needs a scalar result, got {', '.join(map(str, outs))}")


def jacobian_sparsity(fun: Callable, argnums: int = 0) -> Callable:
    """The function of the arguments of `fun` that gives the places where its Jacobian may be other than zero.

    >>> import funcml.numpy as jnp
    >>> p = jacobian_sparsity(lambda x: x[1:] * x[:-1])(jnp.ones(3))
    >>> list(zip(p.rows.tolist(), p.columns.tolist()))
    [(0, 0), (0, 1), (1, 1), (1, 2)]
    """

    @functools.wraps(fun)
    def pattern_of(*args, **kwargs) -> Pattern:
        return _recorded("jacobian_sparsity", fun, argnums, args, kwargs).pattern()

    return user_facing(pattern_of)


def hessian_sparsity(fun: Callable, argnums: int = 0) -> Callable:
    """The function of the arguments of `fun` that gives the places where its Hessian may be other than zero.

    >>> import funcml.numpy as jnp
    >>> hessian_sparsity(lambda x: (x ** 3).sum())(jnp.ones(3)).rows.tolist()
    [0, 1, 2]
    """

    @functools.wraps(fun)
    def pattern_of(*args, **kwargs) -> Pattern:
        return _symmetric(_recorded("hessian_sparsity", fun, argnums, args, kwargs, grad).pattern())

    return user_facing(pattern_of)


def _symmetric(pattern: Pattern) -> Pattern:
    return Pattern.union([pattern, pattern.transposed()])


def sparse_jacobian(
    fun: Callable,
    argnums: int = 0,
    *,
    mode: str | None = None,
    sparsity: Pattern | None = None,
    chunk_size: int | None = None,
) -> Callable:
    """The Jacobian of a function of an array to an array, as a `SparseMatrix` [elements of the result, elements of the argument].

    The pattern is read off the program (or given as `sparsity`), and contains each entry that can be other than zero for any
    argument. Columns without a common row share a product, so the cost is that of as many products with the Jacobian as there
    are colours: one for a diagonal matrix, the bandwidth for a banded one, whatever the size. `mode` is "fwd" or "rev" (rows
    in the place of columns); None takes the one that needs fewer. `chunk_size`: so many products at a time.

    >>> import funcml.numpy as jnp
    >>> m = sparse_jacobian(lambda x: jnp.sin(x[1:]) * x[:-1])(jnp.arange(10_000.0))
    >>> m
    SparseMatrix(float32, 19998 entries of 9999 x 10000)
    """
    if mode not in (None, "fwd", "rev"):
        raise ValueError(f'sparse_jacobian: mode must be "fwd", "rev" or None, got {mode!r}')
    chunk_size = positive_int("sparse_jacobian", "chunk_size", chunk_size)

    @functools.wraps(fun)
    def jacobian_of(*args, **kwargs) -> SparseMatrix:
        f = _recorded("sparse_jacobian", fun, argnums, args, kwargs)
        pattern = _given("sparse_jacobian", f, sparsity) or f.remembered(_Function.pattern, f.pattern)
        forward, (colours, count) = _coloured(pattern, mode)
        if forward:
            push = lambda t: jvp(f, (f.x,), (t,))[1]
            products = _products(push, aval_of(f.x), colours, count, chunk_size)
            data = _entries(products, colours[pattern.columns], pattern.rows)
        else:
            pull = vjp(f, f.x)[1]
            products = _products(lambda ct: pull(ct)[0], f.jaxpr.outs[0].aval, colours, count, chunk_size)
            data = _entries(products, colours[pattern.rows], pattern.columns)
        return SparseMatrix(data, pattern)

    return user_facing(jacobian_of)


def sparse_hessian(
    fun: Callable, argnums: int = 0, *, sparsity: Pattern | None = None, chunk_size: int | None = None
) -> Callable:
    """The Hessian of a scalar function of an array, as a `SparseMatrix` with both halves; see `sparse_jacobian`.

    A few full rows (and columns) cost a product each, not one for each column that they touch.

    >>> import funcml.numpy as jnp
    >>> sparse_hessian(lambda x: (x[1:] * x[:-1]).sum())(jnp.ones(3)).todense().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    chunk_size = positive_int("sparse_hessian", "chunk_size", chunk_size)

    @functools.wraps(fun)
    def hessian_of(*args, **kwargs) -> SparseMatrix:
        gradient = _recorded("sparse_hessian", fun, argnums, args, kwargs, grad)
        found = _given("sparse_hessian", gradient, sparsity) or gradient.remembered(_Function.pattern, gradient.pattern)
        pattern = _symmetric(found)
        colours, count, hubs = symmetric_coloured(pattern)
        push = lambda t: jvp(gradient, (gradient.x,), (t,))[1]
        products = _products(push, aval_of(gradient.x), colours, count, chunk_size)
        is_hub = np.isin(np.arange(pattern.shape[0]), hubs)
        turned = is_hub[pattern.rows] & ~is_hub[pattern.columns]
        columns, rows = np.where(turned, pattern.rows, pattern.columns), np.where(turned, pattern.columns, pattern.rows)
        return SparseMatrix(_entries(products, colours[columns], rows), pattern)

    return user_facing(hessian_of)


def _given(who: str, f: _Function, sparsity: Pattern | None) -> Pattern | None:
    shape = (f.jaxpr.outs[0].aval.size, aval_of(f.x).size)
    if sparsity is not None and (not isinstance(sparsity, Pattern) or sparsity.shape != shape):
        raise ValueError(f"{who}: sparsity must be a Pattern of {shape[0]} x {shape[1]}, got {sparsity!r}; see Pattern.of")
    return sparsity


def _coloured(pattern: Pattern, mode: str | None) -> tuple[bool, tuple[np.ndarray, int]]:
    """Whether to go forward, and the colours of columns (forward) or rows; reverse only if it needs fewer than half."""
    if mode == "rev":
        return False, columns_coloured(pattern.transposed())
    columns = columns_coloured(pattern)
    if mode == "fwd" or columns[1] <= 2:
        return True, columns
    rows = columns_coloured(pattern.transposed())
    return (False, rows) if 2 * rows[1] < columns[1] else (True, columns)


def _products(push: Callable, aval, colours: np.ndarray, count: int, chunk_size: int | None):
    """The products [count, elements] with the sum of the unit vectors of each colour."""

    def product(i):
        return push((colours.reshape(aval.shape) == i).astype(aval.dtype)).reshape(-1)

    return vmap(product, chunk_size=chunk_size)(np.arange(count, dtype=np.int32)) if count else jnp.zeros((0, 0), aval.dtype)


def _entries(products, number: np.ndarray, place: np.ndarray):
    if not number.size:
        return products.reshape(-1)
    return products.reshape(-1)[number.astype(np.int64) * products.shape[1] + place]
