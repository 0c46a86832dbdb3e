"""`jacfwd`, `jacrev` and `hessian`: a derivative applied to every unit vector at once, by `vmap`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from funcml import dtypes, tree
from funcml.arguments import as_value, describe_value, function_name, is_array_like, normalise_argnums
from funcml.core.errors import user_facing
from funcml.core.tracing import aval_of
from funcml.derivatives import check_inputs, jvp, split_arguments, vjp
from funcml.primitives.axes import reshape
from funcml.primitives.shaping import slice_
from funcml.primitives.tangents import tangent_aval
from funcml.vectorise import vmap

__all__ = ["hessian", "jacfwd", "jacobian", "jacrev"]


def jacfwd(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False) -> Callable:
    """The Jacobian of `fun`, one column at a time by forward mode: best where inputs are fewer than outputs.

    For an output of shape [*out] and an argument of shape [*in] the result has shape [*out, *in]; trees nest output in input
    order (a tree like the output with a tree like the argument at each leaf).

    >>> import funcml, funcml.numpy as jnp
    >>> funcml.jacfwd(lambda x: x ** 2)(jnp.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    @functools.wraps(fun)
    def jacobian_of(*args, **kwargs):
        numbers = normalise_argnums(argnums, len(args), "jacfwd")
        call, moving = split_arguments(fun, args, kwargs, numbers, "jacfwd")
        check_inputs(call, moving, holomorphic, False)
        partial, chosen = _partial(fun, args, kwargs, numbers)
        leaves, treedef = tree.flatten(chosen)
        basis = _basis(leaves)

        def push(*tangent_leaves):
            result = jvp(partial, chosen, tree.unflatten(treedef, tangent_leaves), has_aux)
            return result[1:] if has_aux else result[1]

        if has_aux:
            columns, aux = vmap(push, out_axes=(-1, None))(*basis)
        else:
            columns, aux = vmap(push, out_axes=-1)(*basis), None
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
) -> Callable:
    """The Jacobian of `fun`, one row at a time by reverse mode: best where outputs are fewer than inputs. Shapes as in `jacfwd`.

    >>> import funcml, funcml.numpy as jnp
    >>> funcml.jacrev(lambda x: x ** 2)(jnp.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

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
        basis = _basis(y_leaves)
        rows = vmap(lambda *cts: pull(tree.unflatten(y_treedef, cts)))(*basis)
        per_input, in_treedef = tree.flatten(rows)
        split = [_split_rows(g, y_leaves) for g in per_input]
        jacobian = tree.unflatten(
            y_treedef,
            [_select_argnums(tree.unflatten(in_treedef, [s[k] for s in split]), argnums) for k in range(len(y_leaves))],
        )
        return (jacobian, result[2]) if has_aux else jacobian

    return user_facing(jacobian_of)


jacobian = jacrev


def hessian(fun: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False) -> Callable:
    """The Hessian of `fun`: forward over reverse.

    >>> import funcml, funcml.numpy as jnp
    >>> funcml.hessian(lambda x: (x ** 3).sum())(jnp.array([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


def _partial(fun, args, kwargs, numbers) -> tuple[Callable, tuple]:
    """`fun` as a function of the arguments `numbers` alone, and those arguments."""

    def partial(*chosen):
        full = list(args)
        for i, x in zip(numbers, chosen, strict=True):
            full[i] = x
        return fun(*full, **kwargs)

    partial.__name__ = function_name(fun)
    return partial, tuple([args[i] for i in numbers])


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
