"""What is kept: against all choices, one by one; within a budget; and by `checkpoint(policy="auto")`."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml.ad_checkpoint import saved_residuals
from funcml.core.ir import Var
from funcml.core.tracing import aval_of
from funcml.transforms.costs import bytes_of, operations
from funcml.transforms.minimum_cut import Network, Recomputation
from tests.products import check_products

SIZES = (1, 4, 16, 64)


def random_program(seed: int):
    """Elementwise equations on arrays of several sizes, their costs at random, and some variables that are wanted."""
    rng = np.random.default_rng(seed)

    def f(x):
        values = [x]
        for _ in range(rng.integers(4, 9)):
            a, b = (values[i][: SIZES[rng.integers(4)]] for i in rng.integers(len(values), size=2))
            n = min(a.shape[0], b.shape[0])
            values.append(a[:n] * b[:n])
        return values

    jaxpr = fm.make_jaxpr(f)(np.zeros(64, np.float32))
    costs = {id(eqn): int(rng.integers(1, 400)) for eqn in jaxpr.eqns}
    if jaxpr.eqns:
        costs[id(jaxpr.eqns[rng.integers(len(jaxpr.eqns))])] = None
    made = [v for eqn in jaxpr.eqns for v in eqn.outvars]
    wanted = [made[i] for i in rng.choice(len(made), min(3, len(made)), replace=False)]
    return Recomputation(jaxpr.eqns, jaxpr.invars, wanted, lambda eqn: costs[id(eqn)]), made


def choices(problem, made):
    return [problem.choice(kept) for n in range(len(made) + 1) for kept in itertools.combinations(made, n)]


@pytest.mark.parametrize("seed", range(12))
def test_the_cut_is_the_cheapest_of_all_choices(seed):
    problem, made = random_program(seed)
    if len(made) > 11:
        made = [v for v in made if v in problem.needed]
    found = choices(problem, made)
    for rate in (Fraction(1, 7), Fraction(1), Fraction(9)):
        best = min(c.bytes * rate + c.operations for c in found)
        cut = problem.cheapest(rate)
        assert cut.bytes * rate + cut.operations == best
        assert problem.choice(cut.kept) == cut


@pytest.mark.parametrize("seed", range(12))
def test_a_budget_is_kept_where_it_can_be(seed):
    problem, made = random_program(seed)
    made = [v for v in made if v in problem.needed]
    found = choices(problem, made)
    least = min(c.bytes for c in found)
    for memory in (0, 40, 100, 300, 10_000):
        held = problem.choice(problem.kept(0 if memory > 1000 else 1, memory))
        assert held.bytes <= max(memory, least)
        fitting = [c for c in found if c.bytes <= max(memory, least)]
        at_once = problem.cheapest(Fraction(10**9))
        assert min(c.operations for c in fitting) <= held.operations <= at_once.operations


def test_a_network_by_hand():
    """The example of a textbook: a square with a diagonal, whose minimum cut is 5."""
    network = Network()
    a, b = network.node(), network.node()
    edges = [(0, a, 3), (0, b, 2), (a, b, 1), (a, 1, 2), (b, 1, 4)]
    for start, end, _ in edges:
        network.edge(start, end)
    side = network.source_side([c for _, _, c in edges])
    assert sum(c for start, end, c in edges if side[start] and not side[end]) == 5


def test_elementary_functions_are_cheap():
    jaxpr = fm.make_jaxpr(lambda x: jnp.tanh(jnp.sqrt(x) ** 3 + fm.lax.erf(x)))(X)
    assert sum(map(operations, jaxpr.eqns)) == 41 * X.size
    assert operations(fm.make_jaxpr(fm.lax.lgamma)(X).eqns[0]) > 100 * X.size


def test_costs_tell_products_from_sums():
    x, w = np.zeros((8, 32), np.float32), np.zeros((32, 16), np.float32)
    jaxpr = fm.make_jaxpr(lambda x, w: jnp.tanh(jnp.dot(x, w)) + 1.0)(x, w)
    assert [operations(eqn) for eqn in jaxpr.eqns] == [2 * 8 * 32 * 16, 10 * 8 * 16, 8 * 16]
    assert bytes_of(aval_of(x)) == x.nbytes
    assert bytes_of(fm.random.key(0).aval) == 8
    steps = fm.make_jaxpr(lambda x: fm.lax.scan(lambda c, _: (c + 1.0, None), x, None, length=10)[0])(x)
    assert operations(steps.eqns[0]) == 10 * x.size
    kernel = np.zeros((4, 3, 5, 5), np.float32)
    images = np.zeros((2, 3, 9, 9), np.float32)
    conv = fm.make_jaxpr(lambda x, k: fm.lax.conv(x, k, (1, 1), "VALID"))(images, kernel)
    assert operations(conv.eqns[0]) == 2 * (2 * 4 * 5 * 5) * (3 * 5 * 5)


# ---- checkpoint(policy="auto") ---------------------------------------------------------------------------------------

rng = np.random.default_rng(0)
W = [rng.normal(0, 0.2, (128, 128)) for _ in range(4)]
X = rng.normal(size=(5, 128))


def net(x):
    for w in W:
        x = jnp.tanh(jnp.sin(x @ w) * 2.0)
    return x


def kept(f, *args) -> int:
    """The bytes that are saved beside arguments and constants."""
    return sum(r.bytes for r in saved_residuals(f, *args) if r.equation is not None)


@pytest.mark.parametrize("memory", [None, 0, 6000, 12000, 10**6])
def test_auto_is_the_function_and_keeps_the_budget(memory):
    f = fm.checkpoint(net, policy="auto", memory=memory)
    np.testing.assert_allclose(f(X), net(X), rtol=1e-12)
    loss, plain = (lambda x, g=g: (g(x) ** 2).sum() for g in (f, net))
    np.testing.assert_allclose(fm.grad(loss)(X), fm.grad(plain)(X), rtol=1e-10)
    if memory is not None:
        assert kept(f, X) <= memory
    assert kept(f, X) <= kept(net, X)


def test_auto_products():
    w = [m[:4, :4] for m in W]

    def small(x):
        for m in w:
            x = jnp.tanh(jnp.sin(x @ m) * 2.0)
        return x

    check_products(fm.checkpoint(small, policy="auto", memory=100), X[:2, :4])


def test_expensive_products_are_saved_before_cheap_functions():
    found = [r for r in saved_residuals(fm.checkpoint(net, policy="auto"), X) if r.equation is not None]
    assert {r.equation for r in found} == {"dot_general"} and len(found) == len(W)
    two = [r for r in saved_residuals(fm.checkpoint(net, policy="auto", memory=2 * X.nbytes), X) if r.equation is not None]
    assert {r.equation for r in two} == {"dot_general"} and len(two) == 2


def test_less_memory_is_more_work():
    def work(memory):
        f = fm.checkpoint(lambda x: net(x).sum(), policy="auto", memory=memory)
        jaxpr = fm.make_jaxpr(fm.value_and_grad(f))(X)
        return sum(map(operations, jaxpr.eqns))

    found = [work(memory) for memory in (0, X.nbytes, 2 * X.nbytes, None)]
    assert found == sorted(found, reverse=True) and found[0] > found[-1]


def test_auto_in_transforms():
    f = fm.checkpoint(lambda x: net(x).sum(), policy="auto", memory=10_000)
    plain = lambda x: net(x).sum()
    batch = np.stack([X, 2 * X])
    np.testing.assert_allclose(fm.vmap(fm.grad(f))(batch), [fm.grad(plain)(x) for x in batch], rtol=1e-9, atol=1e-12)
    found = fm.grad(lambda b: fm.vmap(f)(b).sum())(batch)
    np.testing.assert_allclose(found, fm.vmap(fm.grad(plain))(batch), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(fm.jit(fm.grad(fm.jit(f)))(X), fm.grad(plain)(X), rtol=1e-9, atol=1e-12)


def test_policies_look_into_calls_of_jit():
    inner = fm.jit(lambda x, w: jnp.sin(x @ w))
    f = fm.checkpoint(lambda x: inner(inner(x, W[0]), W[1]), policy=fm.checkpoint_policies.dots_saveable)
    assert [r.equation for r in saved_residuals(f, X) if r.equation is not None] == ["dot_general"] * 2
    np.testing.assert_allclose(
        fm.grad(lambda x: f(x).sum())(X), fm.grad(lambda x: jnp.sin(jnp.sin(x @ W[0]) @ W[1]).sum())(X), rtol=1e-10
    )


def test_effects_happen_once():
    seen = []

    def read(v):
        seen.append(1)
        return np.float32(v)

    def f(x):
        y = fm.io_callback(read, fm.ShapeDtypeStruct((), jnp.float32), fm.lax.stop_gradient(x))
        return jnp.sin(x * y)

    fm.grad(fm.checkpoint(f, policy="auto", memory=0))(np.float32(2.0))
    assert len(seen) == 1


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: fm.checkpoint(net, policy="automatic"), 'policy must be "auto" or a function'),
        (lambda: fm.checkpoint(net, policy="auto", memory=-1), "memory must be a number of bytes, got -1"),
        (lambda: fm.checkpoint(net, policy="auto", memory=1e6), "memory must be a number of bytes, an int"),
        (lambda: fm.checkpoint(net, memory=5), 'memory= is the budget of policy="auto"'),
        (lambda: fm.grad(lambda x: fm.checkpoint(net, policy=lambda *a, **k: "yes")(x).sum())(X), "must answer True, False"),
    ],
)
def test_errors_say_what_is_wrong(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()


def test_variables_without_an_equation_can_only_be_kept():
    v = Var(aval_of(np.float32(1.0)))
    problem = Recomputation([], [], [v], operations)
    assert problem.kept(1, 0) == [v] and problem.kept(1) == [v]
