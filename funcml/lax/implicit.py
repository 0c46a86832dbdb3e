"""Solutions of equations, differentiated by the equation: `custom_linear_solve`, `custom_root`."""

from __future__ import annotations

from collections.abc import Callable

from funcml import tree
from funcml.control_flow.linear_solve import linear_solve
from funcml.core.errors import user_facing
from funcml.core.ir import intern
from funcml.core.tracing import aval_of, eval_jaxpr
from funcml.derivatives import jvp
from funcml.lax.bodies import Body, flatten_arrays, record
from funcml.primitives.elementwise import neg
from funcml.primitives.tangents import instantiate, zero_tangent
from funcml.transforms.custom_jvp import custom_jvp
from funcml.transforms.transpose import transpose_jaxpr

__all__ = ["custom_linear_solve", "custom_root"]


@user_facing
def custom_linear_solve(
    matvec: Callable, b, solve: Callable, transpose_solve: Callable | None = None, symmetric: bool = False, has_aux: bool = False
):
    """The solution x of `matvec(x) = b` as `solve(matvec, b)` finds it, differentiated by the equation alone.

    matvec: a linear function of a tree like `b`, which may close over anything. transpose_solve: `(vecmat, c) -> y` with
    A^T y = c, for reverse mode; `symmetric=True` says that A is its own transpose, so that `solve` serves. With `has_aux` the
    solvers return `(x, aux)`, and so does this function.

    >>> import funcml, funcml.numpy as jnp
    >>> from funcml import lax
    >>> solve = lambda mv, b: b / mv(jnp.ones_like(b))
    >>> f = lambda a, b: lax.custom_linear_solve(lambda x: a * x, b, solve, symmetric=True)
    >>> float(f(4.0, 2.0)), float(funcml.grad(f)(4.0, 2.0))
    (0.5, -0.125)
    """
    who = "lax.custom_linear_solve"
    transpose_solve = solve if symmetric and transpose_solve is None else transpose_solve
    values, treedef = flatten_arrays(who, "b", b)
    avals = [aval_of(x).strong() for x in values]
    argument = tree.treedef_tuple((treedef,))
    forward = record(who, matvec, argument, avals)
    _check_like(who, forward, treedef, avals, "matvec must give a tree like b")
    n = len(forward.captured)
    if symmetric:
        backward = forward.jaxpr, forward.captured
    else:
        linear = (False,) * n + (True,) * len(avals)
        transposed = transpose_jaxpr(forward.jaxpr, linear, (True,) * len(avals), None, True)
        backward = intern(transposed.jaxpr), [*transposed.captured, *forward.captured]

    def vecmat(y):
        leaves, _ = flatten_arrays(who, "the argument of vecmat", y)
        return tree.unflatten(treedef, eval_jaxpr(backward[0], [*backward[1], *leaves]))

    solver = record(who, lambda b: solve(matvec, b), argument, avals)
    transposed_solver = None if transpose_solve is None else record(who, lambda c: transpose_solve(vecmat, c), argument, avals)
    x_treedef = treedef
    if has_aux:
        x_treedef, aux_treedef = _two(who, solver)
    elif solver.out_treedef != treedef:
        raise TypeError(f"{who}: solve must give a tree like b; {tree.explain_difference(solver.out_treedef, treedef)}")
    _check_like(who, solver._replace(out_treedef=x_treedef), treedef, avals, "solve must give a tree like b")
    programs = [
        (forward.jaxpr, forward.captured),
        backward,
        (solver.jaxpr, solver.captured),
        (None, []) if transposed_solver is None else (transposed_solver.jaxpr, transposed_solver.captured),
    ]
    outs = linear_solve(programs, values)
    x = tree.unflatten(treedef, outs[: len(avals)])
    return (x, tree.unflatten(aux_treedef, outs[len(avals) :])) if has_aux else x


def _two(who: str, body: Body) -> list:
    children = tree.treedef_children(body.out_treedef)
    if len(children) != 2:
        raise TypeError(f"{who}: with has_aux the solver must return a pair (x, aux), got {len(children)} parts")
    return children


def _check_like(who: str, body: Body, treedef, avals, words: str) -> None:
    if body.out_treedef != treedef:
        raise TypeError(f"{who}: {words}; {tree.explain_difference(body.out_treedef, treedef)}")
    for got, expected in zip(body.out_avals, avals, strict=False):
        if got.strong() is not expected.strong():
            raise TypeError(f"{who}: {words}, but a leaf is {got} where b has {expected}")


@user_facing
def custom_root(f: Callable, initial_guess, solve: Callable, tangent_solve: Callable, has_aux: bool = False):
    """The root x of `f(x) = 0` as `solve(f, initial_guess)` finds it, differentiated by the implicit function theorem.

    f: a function of a tree like `initial_guess`, giving one like it; derivatives are with respect to what it closes over.
    tangent_solve: `(g, y) -> x` with g(x) = y for a linear g, differentiable as often as is needed. With `has_aux`, `solve`
    returns `(x, aux)`, and so does this function.

        f(a, x(a)) = 0   =>   f_x x' = -f_a a'

    >>> import funcml
    >>> from funcml import lax
    >>> def root(a):
    ...     newton = lambda f, x: lax.fori_loop(0, 20, lambda i, x: x - f(x) / funcml.grad(f)(x), x)
    ...     return lax.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> float(root(4.0)), float(funcml.grad(root)(4.0))
    (2.0, 0.25)
    """
    who = "lax.custom_root"
    guess, treedef = flatten_arrays(who, "initial_guess", initial_guess)
    avals = [aval_of(x).strong() for x in guess]
    argument = tree.treedef_tuple((treedef,))
    body = record(who, f, argument, avals)
    _check_like(who, body, treedef, avals, "f must give a tree like initial_guess")
    solver = record(who, lambda x: solve(f, x), argument, avals)
    if has_aux:
        x_treedef, _ = _two(who, solver)
    else:
        x_treedef = solver.out_treedef
    _check_like(who, solver._replace(out_treedef=x_treedef), treedef, avals, "solve must give a tree like initial_guess")
    n = len(avals)

    def residual(held, x):
        return eval_jaxpr(body.jaxpr, [*held, *x])

    @custom_jvp
    def root(held, of_solver, start):
        return eval_jaxpr(solver.jaxpr, [*of_solver, *start])

    @root.defjvp
    def rule(primals, tangents):
        held, of_solver, start = primals
        outs = root(held, of_solver, start)
        x, aux = outs[:n], outs[n:]
        _, moved = jvp(lambda *held: residual(held, x), tuple(held), tuple(tangents[0]))
        right = [neg(m) for m in moved]
        matvec = lambda v: jvp(lambda *x: residual(held, x), tuple(x), tuple(v))[1]
        linear = lambda solve_tree: lambda g, y: tree.leaves(solve_tree(_on_trees(g, treedef), tree.unflatten(treedef, y)))
        solve_leaves = linear(tangent_solve)
        t_x = custom_linear_solve(matvec, right, solve_leaves, solve_leaves)
        return outs, [*t_x, *[instantiate(zero_tangent(a)) for a in aux]]

    outs = root(list(body.captured), list(solver.captured), guess)
    x = tree.unflatten(treedef, outs[:n])
    return (x, tree.unflatten(_two(who, solver)[1], outs[n:])) if has_aux else x


def _on_trees(g: Callable, treedef) -> Callable:
    """A function of leaves as a function of a tree."""
    return lambda x: tree.unflatten(treedef, g(tree.leaves(x)))
