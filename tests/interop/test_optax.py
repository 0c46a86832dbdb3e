"""`funcml.optax` gives what optax under `jax.jit` gives: states, updates, parameters, derivatives.

Where nothing is said the tolerance is 2e-6, relative to the size of each element; most results are equal bit for bit.
"""

import inspect
import sys
import types
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import funcml as fm
import funcml.optax as fo
from funcml import random
from funcml.interop import from_jax
from tests.interop import optax_cases as cases

pytestmark = [
    pytest.mark.filterwarnings("ignore:Specifying a key will be required"),
    pytest.mark.filterwarnings("ignore:The function .* is deprecated:DeprecationWarning"),
]

#: run by default; the others are run by the exhaustive sweep
USUAL = (
    "adamw sgd lion lamb adafactor novograd noisy_sgd contrib.muon chain inject_hyperparams MultiSteps partition apply_if_finite"
).split()
TRANSFORMATIONS = {**cases.OPTIMIZERS, **cases.TRANSFORMATIONS}
ALL_FUNCTIONS = {**cases.FUNCTIONS, **cases.ALIASES}


def on_device(x):
    return fm.tree.map(fm.device_put, x)


def agree(got, want, rtol=2e-6, atol=2e-6, what=""):
    assert fm.tree.structure(got) == fm.tree.structure(want), what
    for (path, x), y in zip(fm.tree.leaves_with_path(got), fm.tree.leaves(want), strict=True):
        name = f"{what} {fm.tree.keystr(path)}"
        assert isinstance(x, fm.Array), name
        if fm.dtypes.is_key(x.dtype):
            x, y = random.key_data(x), jax.random.key_data(y)
        x, y = np.asarray(x), np.asarray(y)
        assert (x.dtype, x.shape) == (y.dtype, y.shape), name
        np.testing.assert_allclose(x.astype(np.float64), y.astype(np.float64), rtol, atol, err_msg=name)


def train(tx, apply, gradients, params, extra=lambda step: {}, compiled=lambda f: f):
    """Updates of each step, and the last state and parameters."""
    update, apply = compiled(tx.update), compiled(apply)
    state, seen = tx.init(params), []
    for step, g in enumerate(gradients):
        updates, state = update(g, state, params, **extra(step))
        params = apply(params, updates)
        seen.append(updates)
    return seen, state, params


def by_jax(f):
    """`f` under jax.jit, with functions as static arguments."""

    def call(*args, **kwargs):
        static = {k: v for k, v in kwargs.items() if callable(v)}
        rest = {k: v for k, v in kwargs.items() if k not in static}
        key = tuple(static.values())
        if key not in programs:
            programs[key] = jax.jit(lambda *a, **k: f(*a, **k, **static))
        return programs[key](*args, **rest)

    programs = {}
    return call


def check_training(name, make, params, gradients, extra=lambda step: {}):
    want = train(make(optax), optax.apply_updates, gradients, params, extra, by_jax)
    got = train(make(fo), fo.apply_updates, map(on_device, gradients), on_device(params), extra)
    agree(got, want, what=name)


@pytest.mark.parametrize("name", USUAL)
def test_optimizer(name):
    gradients = cases.gradients(cases.PARAMS, 3)
    check_training(name, TRANSFORMATIONS[name], cases.PARAMS, gradients, cases.EXTRA.get(name, lambda step: {}))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sorted(TRANSFORMATIONS))
def test_every_transformation(name):
    gradients = cases.gradients(cases.PARAMS, 6)
    check_training(name, TRANSFORMATIONS[name], cases.PARAMS, gradients, cases.EXTRA.get(name, lambda step: {}))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sorted(cases.UNUSUAL))
def test_transformation_of_unusual_trees(name):
    make, params, convert = cases.UNUSUAL[name]
    gradients = [convert(g) for g in cases.gradients(cases.PARAMS, 3)]

    def run(o, compiled):
        tx, given = make(o), params(o)
        update, state = compiled(tx.update), tx.init(given)
        seen = []
        for g in gradients:
            updates, state = update(g, state, given)
            seen.append(updates)
        return seen, state

    agree(run(fo, lambda f: f), run(optax, jax.jit), what=name)


@pytest.mark.parametrize("name", sorted(cases.SEARCHES))
def test_what_loops_until_something_holds(name):
    make, gradients = cases.SEARCHES[name], cases.gradients(cases.PARAMS, 2)

    def run(o, given):
        tx, params, seen = make(o), given(cases.PARAMS), []
        state = tx.init(params)
        for g in map(given, gradients):
            value = cases.squares(params)
            extra = {} if "galore" in name else {"value": value, "grad": g, "value_fn": cases.squares}
            updates, state = tx.update(g, state, params, **extra)
            params = o.apply_updates(params, updates)
            seen.append(updates)
        return seen

    for x, y in zip(fm.tree.leaves(run(fo, on_device)), fm.tree.leaves(run(optax, jax.device_put)), strict=True):
        np.testing.assert_allclose(x, y, 1e-4, 1e-5)


@pytest.mark.parametrize("name", sorted(cases.LOOPING_FUNCTIONS))
def test_function_that_loops(name):
    row = cases.LOOPING_FUNCTIONS[name]
    want = jax.jit(lambda a: row(optax, a))(cases.ARRAYS)
    for x, y in zip(fm.tree.leaves(row(fo, on_device(cases.ARRAYS))), fm.tree.leaves(want), strict=True):
        np.testing.assert_allclose(np.float64(x), np.float64(y), 1e-4, 1e-5)


# ---- functions -------------------------------------------------------------------------------------------------------


def test_every_schedule():
    steps = np.arange(10, dtype=np.int32)

    def values(o, vmap):
        return lambda steps: {name: vmap(make(o))(steps) for name, make in cases.SCHEDULES.items()}

    agree(fm.jit(values(fo, fm.vmap))(steps), jax.jit(values(optax, jax.vmap))(steps))


def test_a_schedule_on_a_python_number_gives_an_array_of_ours():
    schedule = fo.cosine_decay_schedule(0.1, 8)
    assert isinstance(schedule(3), fm.Array)
    assert float(schedule(3)) == float(optax.cosine_decay_schedule(0.1, 8)(3))
    assert fo.constant_schedule(0.1)(3) == 0.1


def test_every_function():
    def values(o):
        return lambda a: {name: row(o, a) for name, row in cases.FUNCTIONS.items()}

    want = jax.jit(values(optax))(cases.ARRAYS)
    got = fm.jit(values(fo))(on_device(cases.ARRAYS))
    agree(got, want)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sorted(ALL_FUNCTIONS))
def test_function_eagerly(name):
    want = jax.jit(lambda a: ALL_FUNCTIONS[name](optax, a))(cases.ARRAYS)
    got = fm.tree.map(np.asarray, ALL_FUNCTIONS[name](fo, on_device(cases.ARRAYS)))
    for x, y in zip(fm.tree.leaves(got), fm.tree.leaves(want), strict=True):
        np.testing.assert_allclose(np.float64(x), np.float64(y), 2e-6, 2e-6)


FLOATS = {k: v for k, v in cases.ARRAYS.items() if getattr(v, "dtype", None) == np.float32}
LOSSES = {name: row for name, row in cases.LOSSES.items() if name != "ntxent"}  # its derivative is nan in optax too


def weighted_losses(o, total, rows):
    """The losses in one number, each with a weight of its own."""

    def f(x):
        found = [total(row(o, {**cases.ARRAYS, **x})) for row in rows.values()]
        return total(o.tree.mul(found, list(np.linspace(1, 2, len(found), dtype=np.float32))))

    return f


def check_derivatives(rows):
    want = jax.jit(jax.grad(weighted_losses(optax, optax.tree.sum, rows)))(FLOATS)
    agree(fm.jit(fm.grad(weighted_losses(fo, fo.tree.sum, rows)))(on_device(FLOATS)), want, rtol=2e-5, atol=2e-5)


def test_derivatives_of_all_losses():
    check_derivatives(LOSSES)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sorted(LOSSES))
def test_derivative_of_each_loss(name):
    check_derivatives({name: LOSSES[name]})


def test_results_that_are_no_arrays():
    tree = on_device(cases.PARAMS)
    assert fo.tree.size(tree) == 19 and type(fo.tree.size(tree)) is int
    assert fo.tree.dtype(tree) == np.float32
    ((path, value),) = fo.tree.get_all_with_path(tree, "s")
    assert value is tree["z"]["s"] and fm.tree.keystr(path) == "['z']['s']"
    assert bool(fo.tree.allclose(tree, tree))
    state = fo.adam(0.1).init(tree)
    assert isinstance(state[0], optax.ScaleByAdamState) and isinstance(state[0].count, fm.Array)
    assert fo.tree.get(state, "count") is state[0].count
    doubled = fo.tree_map_params(fo.adam(0.1), lambda x: x + 2, state)
    np.testing.assert_array_equal(doubled[0].mu["b"], np.full(3, 2, np.float32))


def test_functions_of_functions():
    x, y = on_device(cases.ARRAYS["x"]), on_device(cases.ARRAYS["y"])
    loss = fo.losses.make_fenchel_young_loss(jax.nn.logsumexp)
    agree(loss(x, y), optax.losses.make_fenchel_young_loss(jax.nn.logsumexp)(cases.ARRAYS["x"], cases.ARRAYS["y"]))
    noisy = fo.perturbations.make_perturbed_fun(jnp.sum, 10)(random.key(3), x)
    agree(noisy, optax.perturbations.make_perturbed_fun(jnp.sum, 10)(jax.random.key(3), cases.ARRAYS["x"]))
    agree(fo.microbatch(jnp.sum, 0, 2)(x), optax.microbatch(jnp.sum, 0, 2)(cases.ARRAYS["x"]))


def test_random_trees_are_jaxs():
    tree = on_device(cases.PARAMS)
    agree(fo.tree.random_like(random.key(3), tree), optax.tree.random_like(jax.random.key(3), cases.PARAMS))
    agree(fo.tree.split_key_like(random.key(3), tree), optax.tree.split_key_like(jax.random.key(3), cases.PARAMS))
    noise = fo.add_noise(0.1, 0.5, random.key(4)), optax.add_noise(0.1, 0.5, jax.random.key(4))
    (ours, ours_state), (theirs, theirs_state) = (tx.update(cases.PARAMS, tx.init(cases.PARAMS)) for tx in noise)
    agree((ours, ours_state), (theirs, theirs_state))


# ---- under transforms ------------------------------------------------------------------------------------------------

G = cases.gradients(cases.PARAMS, 3)


def unrolled(o, make, norm):
    """The size of the parameters after two steps, as a function of a number and the first parameters."""

    def f(lr, params):
        tx = make(o, lr)
        state = tx.init(params)
        for g in G[:2]:
            updates, state = tx.update(o.tree.add(g, params), state, params)
            params = o.apply_updates(params, updates)
        return norm(params)

    return f


BUILDERS = {
    "sgd": lambda o, lr: o.sgd(lr, momentum=0.9),
    "adamw": lambda o, lr: o.adamw(lr, weight_decay=0.1),
    "chain": lambda o, lr: o.chain(o.clip_by_global_norm(1.0), o.scale_by_adam(b1=0.5), o.scale_by_learning_rate(lr)),
    "novograd": lambda o, lr: o.novograd(lr),
    "yogi": lambda o, lr: o.yogi(lr),
    "schedule": lambda o, lr: o.adam(o.cosine_decay_schedule(lr, 5)),
    "hyperparams": lambda o, lr: o.inject_hyperparams(o.rmsprop)(learning_rate=lr),
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in ("chain", "novograd") else pytest.mark.exhaustive) for n in sorted(BUILDERS)]
)
def test_derivatives_through_steps(name):
    ours = unrolled(fo, BUILDERS[name], fo.global_norm)
    theirs = unrolled(optax, BUILDERS[name], optax.global_norm)
    lr = np.float32(0.05)
    want = jax.jit(jax.value_and_grad(theirs, (0, 1)))(lr, cases.PARAMS)
    agree(fm.jit(fm.value_and_grad(ours, (0, 1)))(lr, cases.PARAMS), want, rtol=2e-5, atol=2e-5)


def test_derivative_outside_jit_and_forward_mode():
    ours = unrolled(fo, BUILDERS["sgd"], fo.global_norm)
    theirs = unrolled(optax, BUILDERS["sgd"], optax.global_norm)
    want = jax.grad(theirs)(0.05, cases.PARAMS)
    np.testing.assert_allclose(fm.grad(ours)(0.05, cases.PARAMS), want, 1e-5)
    _, t = fm.jvp(lambda lr: ours(lr, cases.PARAMS), (np.float32(0.05),), (np.float32(1),))
    np.testing.assert_allclose(t, want, 1e-5)


def test_vmap_over_learning_rates_and_over_models():
    rates = np.float32([0.01, 0.1, 0.3])
    ours = unrolled(fo, BUILDERS["chain"], fo.global_norm)
    theirs = unrolled(optax, BUILDERS["chain"], optax.global_norm)
    agree(
        fm.jit(fm.vmap(lambda lr: ours(lr, cases.PARAMS)))(rates),
        jax.jit(jax.vmap(lambda lr: theirs(lr, cases.PARAMS)))(rates),
    )
    many = fm.tree.map(lambda x: np.stack([x, 2 * x, -x]), cases.PARAMS)
    tx, jtx = fo.lamb(0.1), optax.lamb(0.1)

    def step(tx, p):
        return tx.update(p, tx.init(p), p)

    agree(fm.vmap(lambda p: step(tx, p))(many), jax.jit(jax.vmap(lambda p: step(jtx, p)))(many))


def test_a_training_step_under_jit_with_donation():
    tx = fo.adamw(0.1)

    def step(params, state, g):
        updates, state = tx.update(g, state, params)
        return fo.apply_updates(params, updates), state

    fast = fm.jit(step, donate_argnums=(0, 1))
    params = on_device(cases.PARAMS)
    state = tx.init(params)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for g in G:
            old = params
            params, state = fast(params, state, g)
    assert all(x.is_deleted() for x in fm.tree.leaves(old))
    agree((params, state), train(optax.adamw(0.1), optax.apply_updates, G, cases.PARAMS, compiled=jax.jit)[:0:-1])


def test_states_of_lower_precision_and_in_64_bits():
    tx, jtx = fo.adam(0.1, mu_dtype="bfloat16"), optax.adam(0.1, mu_dtype="bfloat16")
    agree(
        train(tx, fo.apply_updates, G, cases.PARAMS),
        train(jtx, optax.apply_updates, G, cases.PARAMS, compiled=jax.jit),
        rtol=1e-5,
    )
    assert fo.adam(0.1, mu_dtype="bfloat16").init(cases.PARAMS)[0].mu["b"].dtype == fm.dtypes.bfloat16
    half = fm.tree.map(lambda x: x.astype(np.float16), (cases.PARAMS, G))
    agree(
        train(fo.sgd(0.1, 0.9), fo.apply_updates, half[1], half[0]),
        train(optax.sgd(0.1, 0.9), optax.apply_updates, half[1], half[0], compiled=jax.jit),
        rtol=1e-3,
    )
    double = fm.tree.map(lambda x: x.astype(np.float64), (cases.PARAMS, G))
    with jax.enable_x64(True):
        want = train(optax.adamw(0.1), optax.apply_updates, double[1], double[0], compiled=jax.jit)
    got = train(fo.adamw(0.1), fo.apply_updates, double[1], double[0])
    agree(got[2], want[2], rtol=1e-14, atol=1e-14)
    assert got[2]["b"].dtype == np.float64


# ---- how it is used --------------------------------------------------------------------------------------------------


def test_second_call_records_nothing(monkeypatch):
    calls = []
    tx = fo.chain(fo.clip(1.0), fo.sgd(fo.linear_schedule(0.1, 0.01, 10)))
    params = on_device(cases.PARAMS)
    state = tx.init(params)
    _, state = tx.update(params, state, params)
    monkeypatch.setattr(sys.modules["funcml.interop.from_jax"], "record", lambda *a: calls.append(a))
    for _ in range(3):
        _, state = tx.update(params, state, params)
    assert calls == [] and int(state[1][1].count) == 4


def test_hyperparameters_in_the_state_may_be_set():
    tx, jtx = fo.inject_hyperparams(fo.sgd)(learning_rate=0.1), optax.inject_hyperparams(optax.sgd)(learning_rate=0.1)
    state, jstate = tx.init(cases.PARAMS), jtx.init(cases.PARAMS)
    agree(state, jstate)
    state.hyperparams["learning_rate"] = 0.5
    jstate.hyperparams["learning_rate"] = jnp.float32(0.5)
    agree(tx.update(cases.PARAMS, state)[0], jax.jit(jtx.update)(cases.PARAMS, jstate)[0])


def test_learning_rates_that_are_arrays():
    want = optax.sgd(0.25).update(cases.PARAMS, optax.sgd(0.25).init(cases.PARAMS))[0]
    for lr in (np.float32(0.25), fm.device_put(np.float32(0.25)), jnp.float32(0.25)):
        tx = fo.sgd(lr)
        agree(tx.update(cases.PARAMS, tx.init(cases.PARAMS))[0], want)


def test_wrapped_and_plain_transformations_mix():
    mixed = fo.chain(optax.clip(0.5), fo.adam(0.1))
    plain = optax.chain(fo.clip(0.5), fo.adam(0.1))
    want = train(optax.chain(optax.clip(0.5), optax.adam(0.1)), optax.apply_updates, G, cases.PARAMS, compiled=jax.jit)
    agree(train(mixed, fo.apply_updates, G, cases.PARAMS), want)
    update, init = from_jax(plain.update), from_jax(plain.init)
    agree(train(types.SimpleNamespace(init=init, update=update), fo.apply_updates, G, cases.PARAMS), want)


def test_on_arrays_of_jax_it_is_optax():
    tx = fo.adam(0.1)
    params = jax.device_put(cases.PARAMS)
    state = tx.init(params)
    updates, _ = jax.jit(lambda s: tx.update(cases.PARAMS, s))(state)
    assert isinstance(state[0].count, jax.Array) and isinstance(updates["b"], jax.Array)
    assert isinstance(fo.global_norm(params), jax.Array)


def test_builders_with_traced_arrays_may_not_hide_them():
    with pytest.raises(TypeError, match="multi_normal: traced arrays would be lost inside"):
        fm.jit(lambda x: fo.multi_normal(x, x) and x)(np.float32([1, 2]))
    assert type(fo.multi_normal(np.float32([1]), np.float32([1]))).__name__ == "MultiNormalDiagFromLogScale"


def test_optaxs_errors_pass():
    tx = fo.adamw(0.1)
    with pytest.raises(ValueError, match="params"):
        tx.update(cases.PARAMS, tx.init(cases.PARAMS))
    with pytest.raises(AttributeError, match="optax has no public name 'adamm'"):
        fo.adamm


# ---- the namespace ---------------------------------------------------------------------------------------------------


def public_names(module, prefix=""):
    for name in dir(module):
        value = getattr(module, name)
        if name.startswith("_"):
            continue
        if isinstance(value, types.ModuleType):
            if value.__name__.startswith("optax.") and not prefix:
                yield from public_names(value, f"{name}.")
        else:
            yield prefix + name


def test_every_public_name_is_there_and_accounted_for():
    names = set(public_names(optax))
    assert set(dir(fo)) >= {n for n in names if "." not in n}
    covered = set(TRANSFORMATIONS) | set(cases.UNUSUAL) | set(cases.SEARCHES) | set(cases.SCHEDULES) | set(ALL_FUNCTIONS)
    covered |= set(cases.LOOPING_FUNCTIONS) | {f"losses.{n}" for n in cases.LOSSES} | cases.ELSEWHERE
    known = {id(resolve(optax, n)) for n in covered if "." not in n or n.split(".")[0] != "MultiSteps"}
    missing = [
        n for n in sorted(names) if n not in covered and id(resolve(optax, n)) not in known and not is_inert(resolve(optax, n))
    ]
    assert missing == []


def resolve(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


def is_inert(value) -> bool:
    """Classes, type aliases and protocols: nothing that computes."""
    return inspect.isclass(value) or not callable(value) or type(value).__module__ == "typing"


def test_classes_and_states_are_optaxs_own():
    assert fo.ScaleByAdamState is optax.ScaleByAdamState
    assert fo.GradientTransformation is optax.GradientTransformation
    assert isinstance(fo.adam(0.1), optax.GradientTransformation)
    assert issubclass(fo.MultiSteps, optax.MultiSteps)
    assert fo.losses.squared_error.__doc__ == optax.losses.squared_error.__doc__
    assert inspect.signature(fo.adamw) == inspect.signature(optax.adamw)
    assert "adamw" in dir(fo) and "huber_loss" in dir(fo.losses)
