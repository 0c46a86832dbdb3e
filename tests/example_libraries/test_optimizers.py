"""Optimisers and schedules of the example library: those of JAX, step by step."""

import numpy as np
import pytest
from jax.example_libraries import optimizers as theirs

import funcml as fm
from funcml.example_libraries import optimizers as ours

PARAMS = {"w": np.float32([[1, -2, 3], [0.5, 0, 4]]), "b": (np.float32([0.1, -0.3]), np.float32(2))}
RULES = {
    "sgd": (0.1,), "momentum": (0.1, 0.9), "nesterov": (0.1, 0.9), "adagrad": (0.1,), "rmsprop": (0.1,),
    "rmsprop_momentum": (0.1,), "adam": (0.1,), "adamax": (0.1,), "sm3": (0.1,),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_steps_are_those_of_jax(name):
    results = []
    for module, wrap in ((ours, fm.jit), (theirs, lambda f: f)):
        init, update, get_params = getattr(module, name)(*RULES[name])
        state = init(PARAMS)
        for step in range(4):
            gradients = fm.tree.map(lambda x, step=step: np.asarray(x) * (step - 1) + 0.25, PARAMS)
            state = wrap(update)(step, gradients, state)
        results.append(fm.tree.leaves(get_params(state)))
    for x, y in zip(*results, strict=True):
        np.testing.assert_allclose(x, y, 1e-5, 1e-6)


def test_schedules():
    makers = [
        lambda m: m.constant(0.5), lambda m: m.exponential_decay(1.0, 3, 0.9), lambda m: m.inverse_time_decay(1.0, 3, 0.9),
        lambda m: m.inverse_time_decay(1.0, 3, 0.9, True), lambda m: m.polynomial_decay(1.0, 5, 0.1, 2.0),
        lambda m: m.piecewise_constant([2, 5], [1.0, 0.5, 0.1]), lambda m: m.make_schedule(0.25),
    ]  # fmt: skip
    for make in makers:
        for i in (0, 2, 3, 7):
            np.testing.assert_allclose(make(ours)(np.int32(i)), make(theirs)(np.int32(i)), 1e-6)


def test_norms_and_states():
    np.testing.assert_allclose(ours.l2_norm(PARAMS), theirs.l2_norm(PARAMS), 1e-6)
    for norm in (1.0, 100.0):
        for x, y in zip(*[fm.tree.leaves(m.clip_grads(PARAMS, norm)) for m in (ours, theirs)], strict=True):
            np.testing.assert_allclose(x, y, 1e-6)
    state = ours.adam(0.1).init_fn(PARAMS)
    again = ours.pack_optimizer_state(ours.unpack_optimizer_state(state))
    assert fm.tree.structure(again) == fm.tree.structure(state)


def test_what_is_refused():
    init, update, _ = ours.sgd(0.1)
    with pytest.raises(TypeError, match="update: the gradients have the structure"):
        update(0, {"w": 1.0}, init(PARAMS))
    grows = ours.optimizer(lambda: (lambda x: x, lambda i, g, s: (s, g), lambda s: s))()
    with pytest.raises(TypeError, match="the state of a parameter had the structure"):
        grows.update_fn(0, PARAMS, grows.init_fn(PARAMS))
    with pytest.raises(TypeError, match="leaves are JoinPoints"):
        ours.pack_optimizer_state(PARAMS)
    with pytest.raises(TypeError, match="expected a number or a function of the step number"):
        ours.make_schedule([0.1])
    with pytest.raises(ValueError, match=r"expected n boundaries and n \+ 1 values"):
        ours.piecewise_constant([1, 2], [0.1])
