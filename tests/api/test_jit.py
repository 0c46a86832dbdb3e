"""`jit`: caching, static and donated arguments, stages, and its errors."""

import functools
import itertools
import warnings

import numpy as np
import pytest

import funcml as fm
import funcml.numpy as jnp
from funcml.core.config import FLAGS as flags
from funcml.core.ir import clear_interned
from funcml.lowering import execute


def counting(f):
    calls = []

    @functools.wraps(f)
    def counted(*args, **kwargs):
        calls.append(1)
        return f(*args, **kwargs)

    return counted, calls


def test_traces_once_for_each_type():
    f, calls = counting(lambda x: x * 2)
    g = fm.jit(f)
    g(jnp.ones(3))
    g(jnp.zeros(3))
    assert len(calls) == 1
    g(jnp.ones(4))
    g(jnp.ones(3, "int32"))
    g(1.0)
    g(2.0)
    assert len(calls) == 4


def test_any_tree_in_any_tree_out():
    f = fm.jit(lambda p, *rest, scale: {"out": [p["a"] * scale, None], "rest": rest, "fixed": (1, 2.0)})
    out = f({"a": jnp.ones(2)}, 1.0, (2.0,), scale=3.0)
    assert out["out"][0].tolist() == [3.0, 3.0] and out["out"][1] is None
    assert [float(x) for x in fm.tree.leaves(out["rest"])] == [1.0, 2.0]
    assert [float(x) for x in out["fixed"]] == [1.0, 2.0]


def test_static_arguments():
    f, calls = counting(lambda x, n, how="a": x * n if how == "a" else x + n)
    for g in (fm.jit(f, static_argnums=(1,), static_argnames="how"), fm.jit(f, static_argnames=("n", "how"))):
        calls.clear()
        assert float(g(2.0, 3)) == 6.0
        assert float(g(2.0, 3)) == 6.0
        assert float(g(5.0, n=3)) == 15.0
        assert float(g(2.0, 3, how="b")) == 5.0
        assert float(g(2.0, 4)) == 8.0
        assert 3 <= len(calls) <= 4


def test_static_values_of_different_types_are_different():
    f = fm.jit(lambda x, n: x / n if isinstance(n, float) else x * n, static_argnums=1)
    assert float(f(4.0, 2)) == 8.0 and float(f(4.0, 2.0)) == 2.0 and float(f(4.0, True)) == 4.0


def test_decorator_forms_and_methods():
    @fm.jit(static_argnames="n")
    def f(x, n):
        """doc"""
        return x * n

    assert float(f(2.0, n=3)) == 6.0 and f.__name__ == "f" and f.__doc__ == "doc"

    class Model:
        scale = 3.0

        @functools.partial(fm.jit, static_argnums=0)
        def __call__(self, x):
            return x * self.scale

    assert float(Model()(2.0)) == 6.0


def test_pass_through_outputs_are_not_copied():
    x, y = jnp.ones(3), jnp.zeros(3)
    out = fm.jit(lambda x, y: (x, y + 1, x, 2.0))(x, y)
    assert out[0] is x and out[2] is x and float(out[3]) == 2.0


def test_unused_arguments_and_no_outputs():
    assert fm.jit(lambda x, y: x + 1)(1.0, jnp.ones(3)) == 2.0
    assert fm.jit(lambda x: None)(1.0) is None
    assert fm.jit(lambda: jnp.ones(2))().tolist() == [1.0, 1.0]


def test_arrays_closed_over_are_arguments_not_text():
    table = jnp.arange(100000.0)
    f = fm.jit(lambda i: table[i])
    assert float(f(7)) == 7.0
    assert len(f.lower(7).as_text()) < 5000


def test_donation():
    f = fm.jit(lambda x, y: x + y, donate_argnums=0)
    x, y = jnp.ones(1000), jnp.ones(1000)
    out = f(x, y)
    assert x.is_deleted() and not y.is_deleted() and float(out[0]) == 2.0
    with pytest.raises(RuntimeError, match="donated"):
        x + 1
    with pytest.raises(RuntimeError, match="donated"):
        f(x, y)
    g = fm.jit(lambda p, y: fm.tree.map(lambda a: a + y, p), donate_argnames="p")
    p = {"a": jnp.ones(10), "b": jnp.ones(10)}
    g(p, y[:10])
    assert all(a.is_deleted() for a in p.values())


def test_unusable_donation_warns():
    f = fm.jit(lambda x: x.sum(), donate_argnums=0)
    with pytest.warns(UserWarning, match=r"donated arguments could not be reused: f32\[7\]"):
        f(jnp.ones(7))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(jnp.ones(7))


def test_stages():
    f = fm.jit(lambda x: jnp.dot(x, x) * 2.0)
    x = jnp.ones((8, 8))
    traced = f.trace(x)
    assert "dot_general" in str(traced.jaxpr)
    lowered = f.lower(fm.ShapeDtypeStruct((8, 8), "float32"))
    assert "stablehlo.dot_general" in lowered.as_text()
    assert lowered.out_info == fm.ShapeDtypeStruct((8, 8), "float32")
    compiled = lowered.compile()
    assert compiled(x).shape == (8, 8)
    assert compiled.cost_analysis()["flops"] >= 1024
    assert compiled.memory_analysis()["argument_size_in_bytes"] == 256
    assert "HloModule" in compiled.as_text()
    with pytest.raises(TypeError, match=r"lowered for \(f32\[8,8\]\), but called with \(f32\[4,4\]\)"):
        compiled(x[:4, :4])


def test_clear_caches_forgets_and_all_works_again():
    f, calls = counting(lambda x: jnp.linalg.norm(x) + x)
    g = fm.jit(f)
    g(jnp.ones(3))
    fm.clear_caches()
    assert g(jnp.ones(3)).shape == (3,) and len(calls) == 2


def test_eval_shape_computes_nothing():
    out = fm.eval_shape(lambda p: {"y": p["w"] @ p["w"].T}, {"w": fm.ShapeDtypeStruct((3, 4), "bfloat16")})
    assert out == {"y": fm.ShapeDtypeStruct((3, 3), "bfloat16")}


def test_disable_jit_runs_python():
    seen = []
    f = fm.jit(lambda x: seen.append(float(x)) or x * 2)
    with fm.disable_jit():
        f(3.0)
        f(4.0)
    assert seen == [3.0, 4.0]


def test_named_call_shows_in_the_program():
    f = fm.named_call(lambda x: jnp.sin(x), name="layer_3")
    assert "layer_3" in str(fm.make_jaxpr(f)(1.0))
    assert "@layer_3" in fm.jit(f).lower(1.0).as_text() or "@layer_3" in fm.jit(lambda x: f(x)).lower(1.0).as_text()


def test_numpy_scalars_and_python_scalars_keep_their_types():
    f = fm.jit(lambda x: x)
    assert f(np.float64(1)).dtype == np.float64 and not f(np.float64(1)).weak_type
    assert f(1.0).dtype == np.float32 and f(1.0).weak_type
    assert f(np.arange(3)).dtype == np.int64
    assert f(True).dtype == bool


@pytest.mark.parametrize("through", [fm.jit, lambda f: lambda *a: fm.jit(lambda *b: fm.jit(f)(*b))(*a), lambda f: f])
def test_python_numbers_beside_64_bit_arrays_keep_their_digits(through):
    x = np.ones(2)
    assert through(lambda x, s: x * s)(x, 2.3)[0] == 2.3
    assert through(lambda x, n: x + n)(np.ones(2, np.int64), 2**40)[0] == 2**40 + 1
    assert through(lambda x, s: x * s)(np.ones(2, np.float32), 2.3).dtype == np.float32
    assert fm.grad(lambda x, s: (x * s).sum())(x, 2.3)[0] == 2.3
    assert fm.grad(lambda x, n: (x * isinstance(n, int)).sum())(x, 3)[0] == 1.0
    assert fm.vmap(lambda x, s: x * s, in_axes=(0, None))(x, 2.3)[0] == 2.3


@pytest.mark.parametrize("disk", [True, False])
def test_the_disk_cache_gives_the_same_answers(disk, tmp_path):
    with flags["disk_cache"](disk), flags["disk_cache_dir"](str(tmp_path)):
        x = jnp.arange(7.0)
        for _ in range(2):
            f = fm.jit(lambda x: jnp.cos(x) * 3.25 + x)
            np.testing.assert_allclose(f(x), np.cos(np.arange(7.0)) * 3.25 + np.arange(7.0), rtol=1e-6)
            clear_interned()
    assert bool(list(tmp_path.rglob("*.xla"))) == disk


class _NoSignature:
    @property
    def __signature__(self):
        raise TypeError("no signature")

    def __call__(self, *args):
        return None


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: fm.jit(lambda x, c: x, static_argnums=1)(1.0, [1, 2]), ValueError, r"unhashable static argument 'c'.*list"),
        (lambda: fm.jit(lambda x: x)("text"), TypeError, r"argument x is 'text' of type str.*static_argnames"),
        (lambda: fm.jit(lambda p: p)({"a": [object()]}), TypeError, r"p\['a'\]\[0\]"),
        (lambda: fm.jit(3), TypeError, "expects a function"),
        (lambda: fm.jit(lambda x: x, static_argnames="y"), ValueError, r"names 'y', but its parameters are \['x'\]"),
        (lambda: fm.jit(lambda x, /, **k: x, static_argnames="x"), ValueError, "'x', which cannot .*use static_argnums"),
        (lambda: fm.jit(lambda *xs: xs, donate_argnames="xs"), ValueError, "'xs', which cannot be passed by name"),
        (lambda: fm.jit(lambda x: x, static_argnums=3), ValueError, "names argument 3"),
        (lambda: fm.jit(lambda x: x, static_argnums="x"), TypeError, "takes ints"),
        (lambda: fm.jit(_NoSignature(), donate_argnames="a"), ValueError, "signature is not known.*donate_argnums"),
        (lambda: fm.jit(lambda x, y: x @ y)(jnp.ones((2, 3)), jnp.ones((2, 3))), ValueError, r"f32\[2,3\]"),
        (lambda: fm.jit(lambda x: {"a": object()})(1.0), TypeError, r"returned .* type object at \['a'\]"),
        (lambda: fm.jit(lambda x: (x, "text"))(1.0), TypeError, r"at \[1\]"),
        (lambda: fm.jit(lambda d: d)({1: 1.0, "a": 2.0}), ValueError, "sort"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_static_field_that_does_not_hash_is_named():
    import dataclasses

    @fm.tree_util.register_dataclass
    @dataclasses.dataclass
    class M:
        a: object
        c: object = dataclasses.field(metadata={"static": True})

    with pytest.raises(TypeError, match="c"):
        fm.jit(lambda m: m.a)(M(1.0, np.ones(3)))


def test_results_of_float0():
    x, mask = np.float32([1, 2]), np.array([True, False])
    _, pullback = fm.vjp(lambda x, m: fm.numpy.where(m, x, 0), x, mask)
    for f in (fm.jit(pullback), fm.jit(lambda ct: pullback(ct))):
        for _ in range(2):
            ct, none = f(x)
            assert ct.tolist() == [1, 0] and none.dtype == fm.float0 and none.shape == (2,)


def test_programs_are_given_back_before_the_memory_maps_run_out(monkeypatch):
    f = fm.jit(lambda x: x * 3 + 1)
    assert float(f(1.0)) == 4.0
    monkeypatch.setattr(execute, "_compilations", itertools.repeat(32))
    monkeypatch.setattr(execute.pjrt, "map_pressure", lambda: 0.9)
    forgotten = []
    monkeypatch.setattr(execute, "when_scarce", [*execute.when_scarce, lambda: forgotten.append(1)])
    assert float(fm.jit(lambda x: x * 5 + 2)(1.0)) == 7.0
    assert forgotten and float(f(1.0)) == 4.0


def test_map_pressure_counts_the_maps_of_the_process():
    assert 0 <= execute.pjrt.map_pressure() < 1


def test_shape_dtype_structs_like_values():
    like = fm.ShapeDtypeStruct.like
    assert like(fm.random.key(0)).dtype == fm.random.key(0).dtype
    assert like(2.0).weak_type and like(fm.numpy.ones((2, 3))) == fm.ShapeDtypeStruct((2, 3), "float32")
    assert like(np.ones(3)).update(shape=(4,)) == fm.ShapeDtypeStruct((4,), "float64")
