"""`jacfwd`, `jacrev` and `hessian`: a derivative applied to every unit vector at once, by `vmap`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from funcml import dtypes, tree
from funcml.arguments import as_value, describe_value, function_name, is_array_like, normalise_argnums, positive_int
from funcml.core.errors import user_facing
from funcml.core.tracing import aval_of
from funcml.derivatives import check_inputs, jvp, split_arguments, vjp
from funcml.primitives.axes import broadcast_in_dim, reshape
from funcml.primitives.elementwise import convert, eq, sub
from funcml.primitives.shaping import iota, slice_
from funcml.primitives.tangents import tangent_aval
from funcml.vectorise import vmap

__all__ = ["hessian", "jacfwd", "jacobian", "jacrev"]


def jacfwd(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    chunk_size: int | None = None,
) -> Callable:
    """The Jacobian of `fun`, one column at a time by forward mode: best where inputs are fewer than outputs.

    For an output of shape [*out] and an argument of shape [*in] the result has shape [*out, *in]; trees nest output in input
    order (a tree like the output with a tree like the argument at each leaf). With `chunk_size` so many columns at a time are
    computed, in the memory that they need (as in `vmap`).

    >>> import funcml, funcml.numpy as jnp
    >>> funcml.jacfwd(lambda x: x ** 2)(jnp.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    chunk_size = positive_int("jacfwd", "chunk_size", chunk_size)

    @functools.wraps(fun)
    def jacobian_of(*args, **kwargs):
        numbers = normalise_argnums(argnums, len(args), "jacfwd")
        call, moving = split_arguments(fun, args, kwargs, numbers, "jacfwd")
        check_inputs(call, moving, holomorphic, False)
        partial, chosen = _partial(fun, args, kwargs, numbers)
        leaves, treedef = tree.flatten(chosen)

        def push(*tangent_leaves):
            result = jvp(partial, chosen, tree.unflatten(treedef, tangent_leaves), has_aux)
            return result[1:] if has_aux else result[1]

        if has_aux:
            columns, aux = _each_unit_vector(push, leaves, chunk_size, (-1, None))
        else:
            columns, aux = _each_unit_vector(push, leaves, chunk_size, -1), None
        _check_outputs(columns, "jacfwd", fun, holomorphic)
        jacobian = tree.map(lambda y: _split_axis(y, -1, leaves, treedef, argnums), columns)
        return (jacobian, aux) if has_aux else jacobian

    return user_facing(jacobian_of)


def jacrev(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    chunk_size: int | None = None,
) -> Callable:
    """The Jacobian of `fun`, one row at a time by reverse mode: best where outputs are fewer than inputs. Shapes as in `jacfwd`.

    With `chunk_size` so many rows at a time are computed, in the memory that they need (as in `vmap`).

    >>> import funcml, funcml.numpy as jnp
    >>> funcml.jacrev(lambda x: x ** 2)(jnp.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    chunk_size = positive_int("jacrev", "chunk_size", chunk_size)

    @functools.wraps(fun)
    def jacobian_of(*args, **kwargs):
        numbers = normalise_argnums(argnums, len(args), "jacrev")
        call, moving = split_arguments(fun, args, kwargs, numbers, "jacrev")
        check_inputs(call, moving, holomorphic, allow_int)
        partial, chosen = _partial(fun, args, kwargs, numbers)
        result = vjp(partial, *chosen, has_aux=has_aux)
        y, pull = result[:2]
        y_leaves, y_treedef = tree.flatten(y)
        _check_outputs(y, "jacrev", fun, holomorphic)
        rows = _each_unit_vector(lambda *cts: pull(tree.unflatten(y_treedef, cts)), y_leaves, chunk_size, 0)
        per_input, in_treedef = tree.flatten(rows)
        split = [_split_rows(g, y_leaves) for g in per_input]
        jacobian = tree.unflatten(
            y_treedef,
            [_select_argnums(tree.unflatten(in_treedef, [s[k] for s in split]), argnums) for k in range(len(y_leaves))],
        )
        return (jacobian, result[2]) if has_aux else jacobian

    return user_facing(jacobian_of)


jacobian = jacrev


def hessian(
    fun: Callable,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    chunk_size: int | None = None,
) -> Callable:
    """The Hessian of `fun`: forward over reverse. With `chunk_size` so many columns at a time are computed.

    >>> import funcml, funcml.numpy as jnp
    >>> funcml.hessian(lambda x: (x ** 3).sum())(jnp.array([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    gradients = jacrev(fun, argnums, has_aux, holomorphic, chunk_size=chunk_size)
    return jacfwd(gradients, argnums, has_aux, holomorphic, chunk_size=chunk_size)


def _partial(fun, args, kwargs, numbers) -> tuple[Callable, tuple]:
    """`fun` as a function of the arguments `numbers` alone, and those arguments."""

    def partial(*chosen):
        full = list(args)
        for i, x in zip(numbers, chosen, strict=True):
            full[i] = x
        return fun(*full, **kwargs)

    partial.__name__ = function_name(fun)
    return partial, tuple([args[i] for i in numbers])


def _each_unit_vector(push: Callable, leaves, chunk_size: int | None, out_axes):
    """`push` of each unit vector of the space of all leaves; in chunks the vectors are made when their turn comes."""
    if chunk_size is None:
        return vmap(push, out_axes=out_axes)(*_basis(leaves))
    total = sum(stop - start for start, stop, _ in _pieces(leaves))
    numbers = np.arange(total, dtype=np.int32)
    return vmap(lambda i: push(*_unit_vector(leaves, i)), out_axes=out_axes, chunk_size=chunk_size)(numbers)


def _unit_vector(leaves, i) -> list:
    """Unit vector number `i` of the space of all leaves."""
    found = []
    for x, (start, _, shape) in zip(leaves, _pieces(leaves), strict=True):
        aval = tangent_aval(aval_of(as_value(x)))
        if aval.dtype == dtypes.float0:
            found.append(np.zeros(shape, dtypes.float0))
        else:
            place = iota(dtypes.int32, (aval.size,))
            at = broadcast_in_dim(sub(i, np.int32(start)), (aval.size,))
            found.append(reshape(convert(eq(place, at), aval.dtype), shape))
    return found


def _basis(leaves) -> list:
    """The unit vectors of the space of all leaves: for each leaf an array of shape [total, *shape]."""
    avals = [tangent_aval(aval_of(as_value(x))) for x in leaves]
    total = sum(a.size for a in avals)
    basis, start = [], 0
    for a in avals:
        if a.dtype == dtypes.float0:
            basis.append(np.zeros((total, *a.shape), dtypes.float0))
        else:
            block = np.zeros((total, a.size), a.dtype)
            block[start : start + a.size] = np.eye(a.size, dtype=a.dtype)
            basis.append(block.reshape(total, *a.shape))
        start += a.size
    return basis


def _pieces(leaves) -> list[tuple[int, int, tuple[int, ...]]]:
    """Start, stop and shape of each leaf in the space of all leaves."""
    found, start = [], 0
    for x in leaves:
        aval = aval_of(as_value(x))
        found.append((start, start + aval.size, aval.shape))
        start += aval.size
    return found


def _split_axis(y, axis, leaves, treedef, argnums):
    """[*out, total] -> a tree of [*out, *in]."""
    from_shape = aval_of(y).shape[:-1]
    parts = [
        reshape(_take_range(y, start, stop, len(from_shape)), (*from_shape, *shape)) for start, stop, shape in _pieces(leaves)
    ]
    return _select_argnums(tree.unflatten(treedef, parts), argnums)


def _split_rows(g, y_leaves) -> list:
    """[total, *in] -> for each output leaf [*out, *in]."""
    if isinstance(g, np.ndarray):
        return [np.zeros((*shape, *g.shape[1:]), g.dtype) for _, _, shape in _pieces(y_leaves)]
    rest = aval_of(g).shape[1:]
    return [reshape(_take_range(g, start, stop, 0), (*shape, *rest)) for start, stop, shape in _pieces(y_leaves)]


def _take_range(x, start, stop, axis):
    shape = aval_of(x).shape
    if (start, stop) == (0, shape[axis]):
        return x
    starts = [start if i == axis else 0 for i in range(len(shape))]
    return slice_(x, starts, [stop if i == axis else n for i, n in enumerate(shape)])


def _select_argnums(chosen: tuple, argnums):
    return chosen[0] if isinstance(argnums, int) else chosen


def _check_outputs(result, transform: str, fun, holomorphic: bool) -> None:
    for path, y in tree.leaves_with_path(result):
        aval = aval_of(y) if is_array_like(y) else None
        place = tree.keystr(path)
        if aval is None or (not holomorphic and not dtypes.is_inexact(aval.dtype)):
            raise TypeError(
                f"{transform} of {function_name(fun)} needs float outputs, but output{place} is {describe_value(y)}; "
                "convert it to float, or return it as aux (has_aux=True)"
            )
        if holomorphic and not dtypes.is_complex(aval.dtype):
            raise TypeError(
                f"{transform} of {function_name(fun)}: holomorphic=True needs complex outputs, output{place} is {aval}"
            )
