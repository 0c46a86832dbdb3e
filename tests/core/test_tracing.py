"""Recording: capture, values while tracing, leaks, threads."""

import threading

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml.core.errors import ConcretizationError, LeakedTracerError, TracerArrayConversionError
from funcml.core.tracing import Tracer, current_frame, trace


def test_captured_values_are_leading_inputs():
    w = jnp.arange(3.0)
    jaxpr, captured = trace(lambda x: [x * w + w], [w.aval])
    assert len(jaxpr.invars) == 2
    assert captured == [w] or captured[0] is w


def test_a_numpy_array_is_captured_as_it_was():
    table = np.ones(3, np.float32)
    f = fm.jit(lambda x: x + table)
    assert f(jnp.zeros(3)).tolist() == [1.0, 1.0, 1.0]
    table[:] = 5
    assert f(jnp.zeros(3)).tolist() == [1.0, 1.0, 1.0]


def test_python_control_flow_under_eager_transforms():
    def f(x):
        n = 0
        while x < 100.0:
            x, n = x * x, n + 1
        if n % 2:
            return x
        return 2.0 * x

    # 2 -> 4 -> 16 -> 256: x^8, n = 3
    assert float(fm.grad(f)(2.0)) == 8 * 2.0**7
    assert float(fm.grad(fm.grad(f))(2.0)) == 56 * 2.0**6
    y, t = fm.jvp(f, (2.0,), (1.0,))
    assert (float(y), float(t)) == (256.0, 1024.0)
    assert float(fm.vjp(f, 2.0)[1](1.0)[0]) == 1024.0
    assert float(fm.linearize(f, 2.0)[1](1.0)) == 1024.0


def test_values_can_be_asked_for_in_every_way_under_grad():
    seen = []

    def f(x):
        seen.append((bool(x > 0), float(x), int(x), x.item(), f"{x:.1f}", np.asarray(x).tolist()))
        return x * x

    fm.grad(f)(2.5)
    assert seen == [(True, 2.5, 2, 2.5, "2.5", 2.5)]


def test_under_jit_a_value_that_does_not_depend_on_the_arguments_is_known():
    limit = jnp.array(3.0)

    @fm.jit
    def f(x):
        return x if limit > 2.0 else -x

    assert float(f(1.0)) == 1.0


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x if x > 0 else -x, "truth value.*jit of.*`jnp.where"),
        (lambda x: jnp.zeros(int(x)), "as a Python int.*static_argnames"),
        (lambda x: list(range(x.astype("int32"))), "as an index.*static_argnames"),
        (lambda x: float(x), "as a Python float"),
        (lambda x: np.sin(x), "elements for NumPy.*funcml.numpy"),
        (lambda x: x.item(), "item"),
    ],
)
def test_under_jit_the_error_says_what_to_write(function, words):
    with pytest.raises(ConcretizationError, match=words) as caught:
        fm.jit(function)(1.0)
    assert __file__ in str(caught.value)


def test_under_vmap_too():
    with pytest.raises(ConcretizationError, match="vmap of"):
        fm.vmap(lambda x: x if x > 0 else -x)(jnp.arange(3.0))


def test_the_numpy_error_is_of_its_kind():
    with pytest.raises(TracerArrayConversionError):
        fm.jit(np.asarray)(1.0)


@pytest.mark.parametrize("transform", [fm.jit, fm.grad, fm.vmap])
def test_a_leaked_tracer_says_where_it_came_from(transform):
    kept = []

    def f(x):
        kept.append(x * 2.0)
        return x * 1.0

    transform(f)(jnp.arange(3.0) if transform is fm.vmap else 1.0)
    with pytest.raises(LeakedTracerError, match=r"escaped from .* of f, which has ended.*Return it"):
        kept[0] + 1.0
    with pytest.raises(LeakedTracerError, match="test_tracing.py"):
        fm.jit(lambda x: x + kept[0])(1.0)


def test_mutation_is_refused_with_the_spelling_that_works():
    def f(x):
        x[0] = 1.0
        return x

    with pytest.raises(TypeError, match=r"immutable.*x.at\[index\].set"):
        fm.jit(f)(jnp.arange(3.0))
    with pytest.raises(TypeError, match=r"\.at\["):
        f(jnp.arange(3.0))


def test_tracers_do_not_hash():
    with pytest.raises(TypeError, match="unhashable"):
        fm.jit(lambda x: {x: 1}[x])(1.0)


def test_each_thread_has_its_own_frames():
    found = {}
    inside, go_on = threading.Event(), threading.Event()

    def other():
        inside.wait()
        found["frame"] = current_frame()
        found["value"] = float(jnp.sin(0.0) + 1.0)
        go_on.set()

    thread = threading.Thread(target=other)
    thread.start()

    @fm.jit
    def f(x):
        assert isinstance(x, Tracer)
        inside.set()
        go_on.wait(10)
        return x + 1.0

    assert float(f(1.0)) == 2.0
    thread.join()
    assert found == {"frame": None, "value": 1.0}


def test_many_threads_compile_and_run():
    f = fm.jit(lambda x, n: jnp.sin(x) * n)
    results = [None] * 8

    def work(i):
        results[i] = [f(jnp.full(k + 1, 0.5), float(i)).shape for k in range(4)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [[(1,), (2,), (3,), (4,)]] * 8


def test_a_program_that_is_new_at_every_call_is_not_compiled_at_every_call():
    from funcml.lowering import execute

    def f(x):
        for _ in range(int(x)):
            x = x * 1.0
        return x

    g = fm.grad(f)
    for n in range(1, 20):
        assert float(g(float(n))) == 1.0
    record = next(r for o, r in execute._origins.items() if o is f.__code__)
    assert record.misses > 8


def test_isinstance_and_tree_leaves():
    fm.jit(lambda x: isinstance(x, fm.Array) or 1 / 0)(1.0)
    assert isinstance(jnp.ones(2), fm.Array)
    assert not isinstance(np.ones(2), fm.Array)
