"""Optimisers as triples of functions, and schedules of their step size.

    init : params -> state        update : step number, gradients, state -> state        get_params : state -> params

An optimiser is written for one array; `optimizer` makes it one for trees of arrays.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from funcml import numpy as fnp
from funcml import tree
from funcml.tree_util import register_pytree_node

__all__ = [
    # from one array to a tree
    "JoinPoint", "Optimizer", "OptimizerState", "optimizer", "pack_optimizer_state", "unpack_optimizer_state",
    # optimisers
    "adagrad", "adam", "adamax", "momentum", "nesterov", "rmsprop", "rmsprop_momentum", "sgd", "sm3",
    # schedules
    "constant", "exponential_decay", "inverse_time_decay", "make_schedule", "piecewise_constant", "polynomial_decay",
    # gradients
    "clip_grads", "l2_norm",
]


class Optimizer(NamedTuple):
    """The three functions of an optimiser."""

    init_fn: Callable
    update_fn: Callable
    params_fn: Callable


class OptimizerState(NamedTuple):
    """The leaves of the state of each parameter, the structure of the parameters, and those of the states."""

    packed_state: tuple
    tree_def: object
    subtree_defs: tuple


register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda data, children: OptimizerState(children[0], *data),
)


class JoinPoint:
    """The state of one parameter, as a leaf of a tree of them."""

    def __init__(self, subtree):
        self.subtree = subtree


def optimizer(opt_maker: Callable) -> Callable[..., Optimizer]:
    """Makes a function that returns (init, update, get_params) for one array give an `Optimizer` of trees of arrays.

    The update raises TypeError for gradients, and for states of a parameter, whose structure has changed.
    """

    @functools.wraps(opt_maker)
    def tree_opt_maker(*args, **kwargs) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def tree_init(params):
            leaves, treedef = tree.flatten(params)
            return _packed([init(x) for x in leaves], treedef)

        def tree_update(step, gradients, state):
            leaves, treedef = tree.flatten(gradients)
            if treedef != state.tree_def:
                raise TypeError(f"update: the gradients have the structure {treedef}, the parameters {state.tree_def}")
            new = _packed([update(step, g, s) for g, s in zip(leaves, _states(state), strict=True)], treedef)
            for before, after in zip(state.subtree_defs, new.subtree_defs, strict=True):
                if before != after:
                    raise TypeError(f"update: the state of a parameter had the structure {before}, the new one has {after}")
            return new

        def tree_get_params(state):
            return tree.unflatten(state.tree_def, [get_params(s) for s in _states(state)])

        return Optimizer(tree_init, tree_update, tree_get_params)

    return tree_opt_maker


def _packed(states, treedef) -> OptimizerState:
    pairs = [tree.flatten(s) for s in states]
    return OptimizerState(tuple([leaves for leaves, _ in pairs]), treedef, tuple([d for _, d in pairs]))


def _states(state: OptimizerState) -> list:
    return [tree.unflatten(d, leaves) for d, leaves in zip(state.subtree_defs, state.packed_state, strict=True)]


def unpack_optimizer_state(opt_state: OptimizerState):
    """The tree of the parameters with a `JoinPoint` of the state in place of each."""
    return tree.unflatten(opt_state.tree_def, [JoinPoint(s) for s in _states(opt_state)])


def pack_optimizer_state(marked_pytree) -> OptimizerState:
    """The state that `unpack_optimizer_state` made a tree of; TypeError for a leaf that is no `JoinPoint`."""
    leaves, treedef = tree.flatten(marked_pytree)
    if not all(isinstance(x, JoinPoint) for x in leaves):
        raise TypeError("pack_optimizer_state: expected a tree whose leaves are JoinPoints, as unpack_optimizer_state makes it")
    return _packed([x.subtree for x in leaves], treedef)


# ---- optimisers ------------------------------------------------------------------------------------------------


def _by_rule(slots: int, rule: Callable) -> tuple[Callable, Callable, Callable]:
    """(init, update, get_params) of an optimiser whose state is (x, slots of zeros); `rule(step, g, x, *slots)` gives the new."""

    def init(x):
        return (x, *[fnp.zeros_like(x) for _ in range(slots)]) if slots else x

    def update(step, g, state):
        return rule(step, g, *(state if slots else (state,)))

    return init, update, lambda state: state[0] if slots else state


@optimizer
def sgd(step_size):
    """Gradient descent: x - a g."""
    a = make_schedule(step_size)
    return _by_rule(0, lambda step, g, x: x - a(step) * g)


@optimizer
def momentum(step_size, mass):
    """Gradient descent with momentum: v = m v + g, x - a v (Polyak 1964)."""
    a = make_schedule(step_size)

    def rule(step, g, x, v):
        v = mass * v + g
        return x - a(step) * v, v

    return _by_rule(1, rule)


@optimizer
def nesterov(step_size, mass):
    """Gradient descent with momentum that looks ahead: v = m v + g, x - a (m v + g) (Nesterov 1983)."""
    a = make_schedule(step_size)

    def rule(step, g, x, v):
        v = mass * v + g
        return x - a(step) * (mass * v + g), v

    return _by_rule(1, rule)


def _inverse_root(x):
    """1 / sqrt(x), and 0 for 0."""
    return fnp.where(x > 0, 1 / fnp.sqrt(fnp.where(x > 0, x, 1)), 0)


@optimizer
def adagrad(step_size, momentum=0.9):
    """Steps divided by the root of the sum of squared gradients (Duchi, Hazan and Singer 2011), with momentum."""
    a = make_schedule(step_size)

    def rule(step, g, x, squares, m):
        squares = squares + fnp.square(g)
        m = (1 - momentum) * (g * _inverse_root(squares)) + momentum * m
        return x - a(step) * m, squares, m

    return _by_rule(2, rule)


@optimizer
def rmsprop(step_size, gamma=0.9, eps=1e-8):
    """Steps divided by the root of a running mean of squared gradients (Tieleman and Hinton 2012)."""
    a = make_schedule(step_size)

    def rule(step, g, x, mean):
        mean = gamma * mean + (1 - gamma) * fnp.square(g)
        return x - a(step) * g / fnp.sqrt(mean + eps), mean

    return _by_rule(1, rule)


@optimizer
def rmsprop_momentum(step_size, gamma=0.9, eps=1e-8, momentum=0.9):
    """`rmsprop` with momentum."""
    a = make_schedule(step_size)

    def rule(step, g, x, mean, m):
        mean = gamma * mean + (1 - gamma) * fnp.square(g)
        m = momentum * m + a(step) * g / fnp.sqrt(mean + eps)
        return x - m, mean, m

    return _by_rule(2, rule)


@optimizer
def adam(step_size, b1=0.9, b2=0.999, eps=1e-8):
    """Running means of gradients and of their squares, freed of their bias to 0 (Kingma and Ba 2015)."""
    a = make_schedule(step_size)

    def rule(step, g, x, m, v):
        m, v = (1 - b1) * g + b1 * m, (1 - b2) * fnp.square(g) + b2 * v
        m_hat, v_hat = (mean / (1 - fnp.asarray(b, mean.dtype) ** (step + 1)) for mean, b in ((m, b1), (v, b2)))
        return x - a(step) * m_hat / (fnp.sqrt(v_hat) + eps), m, v

    return _by_rule(2, rule)


@optimizer
def adamax(step_size, b1=0.9, b2=0.999, eps=1e-8):
    """`adam` with a decaying maximum of the gradients in place of the root of their squares (Kingma and Ba 2015)."""
    a = make_schedule(step_size)

    def rule(step, g, x, m, u):
        m, u = (1 - b1) * g + b1 * m, fnp.maximum(b2 * u, fnp.abs(g))
        return x - a(step) / (1 - fnp.asarray(b1, m.dtype) ** (step + 1)) * m / (u + eps), m, u

    return _by_rule(2, rule)


@optimizer
def sm3(step_size, momentum=0.9):
    """`adagrad` that keeps one number for each row of each axis (Anil, Gupta, Koren and Singer 2019)."""
    a = make_schedule(step_size)

    def init(x):
        whole = fnp.atleast_1d(x)
        return x, fnp.zeros_like(whole), [fnp.zeros(n, whole.dtype) for n in whole.shape]

    def update(step, g, state):
        x, m, rows = state
        g, ndim = fnp.atleast_1d(g), len(rows)
        others = [tuple(j for j in range(ndim) if j != i) for i in range(ndim)]
        squares = functools.reduce(fnp.minimum, [fnp.expand_dims(r, o) for r, o in zip(rows, others, strict=True)]) + g * g
        m = (1 - momentum) * (g * _inverse_root(squares)) + momentum * m
        return x - a(step) * fnp.reshape(m, np.shape(x)), m, [fnp.max(squares, o) for o in others]

    return init, update, lambda state: state[0]


# ---- schedules -------------------------------------------------------------------------------------------------


def constant(step_size) -> Callable:
    """The same step size at each step."""
    return lambda i: step_size


def exponential_decay(step_size, decay_steps, decay_rate) -> Callable:
    """step_size decay_rate^(i / decay_steps)."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size, decay_steps, decay_rate, staircase: bool = False) -> Callable:
    """step_size / (1 + decay_rate i / decay_steps); with `staircase`, i / decay_steps is rounded down."""
    if staircase:
        return lambda i: step_size / (1 + decay_rate * fnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size, decay_steps, final_step_size, power=1.0) -> Callable:
    """From `step_size` to `final_step_size` at `decay_steps`, as (1 - i / decay_steps)^power."""

    def schedule(i):
        left = (1 - fnp.minimum(i, decay_steps) / decay_steps) ** power
        return left * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries, values) -> Callable:
    """values[k] where k boundaries lie below i; ValueError unless there is one value more than boundaries."""
    boundaries, values = fnp.array(boundaries), fnp.array(values)
    if boundaries.ndim != 1 or values.shape != (boundaries.shape[0] + 1,):
        raise ValueError(f"piecewise_constant: expected n boundaries and n + 1 values, got {boundaries.aval} and {values.aval}")
    return lambda i: values[fnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule) -> Callable:
    """A schedule as it is, a number as a constant one; TypeError for anything else."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if np.ndim(scalar_or_schedule):
        raise TypeError(f"make_schedule: expected a number or a function of the step number, got {scalar_or_schedule!r}")
    return constant(scalar_or_schedule)


# ---- gradients -------------------------------------------------------------------------------------------------


def l2_norm(tree_of_arrays):
    """The Euclidean norm of all elements of a tree of arrays."""
    return fnp.sqrt(sum([fnp.vdot(x, x) for x in tree.leaves(tree_of_arrays)]))


def clip_grads(grad_tree, max_norm):
    """Gradients scaled down to the norm `max_norm`, where theirs is greater."""
    norm = l2_norm(grad_tree)
    return tree.map(lambda g: fnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)
