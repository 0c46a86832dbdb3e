"""Linear algebra on every platform: the custom calls of a program are those of JAX's, with the same attributes and layouts."""

import re

import jax
import numpy as np
import pytest
from jax.lax import linalg as oracle

import funcml as fm
from funcml.core.avals import shaped
from funcml.core.tracing import trace
from funcml.lax import linalg
from funcml.lowering import pjrt, rules  # noqa: F401
from funcml.lowering.emit import to_stablehlo

MATRIX, VECTOR = (2, 5, 5), (2, 5)
CASES = {
    "cholesky": (lambda m, x: m.cholesky(x), [MATRIX]),
    "cholesky of one": (lambda m, x: m.cholesky(x, symmetrize_input=False), [(3, 3)]),
    "cholesky_update": (lambda m, r, w: m.cholesky_update(r, w), [(3, 3), (3,)]),
    "lu": (lambda m, x: m.lu(x), [(2, 5, 3)]),
    "lu of one": (lambda m, x: m.lu(x), [(3, 5)]),
    "qr": (lambda m, x: m.qr(x), [(2, 5, 3)]),
    "wide qr": (lambda m, x: m.qr(x, full_matrices=False), [(2, 3, 5)]),
    "pivoted qr": (lambda m, x: m.qr(x, pivoting=True), [MATRIX]),
    "householder_product": (lambda m, a, t: m.householder_product(a, t), [MATRIX, VECTOR]),
    "ormqr": (lambda m, a, t, c: m.ormqr(a, t, c, left=False, transpose=True), [MATRIX, VECTOR, MATRIX]),
    "triangular_solve": (lambda m, a, b: m.triangular_solve(a, b, lower=True, transpose_a=True), [MATRIX, MATRIX]),
    "adjoint solve": (
        lambda m, a, b: m.triangular_solve(
            a, b, left_side=True, transpose_a=True, conjugate_a=True, unit_diagonal=True
        ),
        [(3, 3), (3, 2)],
    ),
    "tridiagonal_solve": (lambda m, *xs: m.tridiagonal_solve(*xs), [VECTOR, VECTOR, VECTOR, MATRIX]),
    "perturbed": (
        lambda m, *xs: m.tridiagonal_solve(*xs, perturb_singular=True),
        [VECTOR, VECTOR, VECTOR, MATRIX],
    ),
}
LOOPS = {("cpu", "cholesky_update"), ("tpu", "cholesky_update"), ("tpu", "ormqr"), ("tpu", "tridiagonal_solve")}
OPERATIONS = re.compile(r"stablehlo\.(custom_call @\w+|cholesky|triangular_solve)")


def calls(text):
    """What each operation of linear algebra says, in one spelling: (name, attributes and types in order of the alphabet)."""
    found = []
    for line in text.splitlines():
        if OPERATIONS.search(line):
            name = OPERATIONS.search(line).group(1)
            if 'num_batch_dims = "0"' in line:  # nothing to divide
                line = re.sub(r"mhlo.frontend_attributes = [^}]*}, |, sdy.sharding_rule = .*custom>", "", line)
            line = re.sub(r"%[\w#]+", "%", line).replace("dense<[0]>", "dense<0>")
            line = line.replace('backend_config = "", ', "").replace('backend_config = ""', "").replace("mhlo.backend", "backend")
            line = re.sub(r"api_version = 4 : i32(, )?", "", line)
            attributes, _, types = line.partition("(")[2].partition(" : (tensor")
            parts = re.split(r"[{}]|, (?=\w+(?:\.\w+)? = )", attributes)
            parts = [types, *sorted(p.strip(" <>(),") for p in parts)]
            found.append((name, [p for p in parts if p]))
    return found


def ours(function, shapes, dtype, platform):
    avals = [shaped(s, np.dtype(dtype)) for s in shapes]
    jaxpr, _ = trace(lambda *xs: list(as_tuple(function(linalg, *xs))), avals, "f")
    return to_stablehlo(jaxpr, platform=platform)


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


def theirs(function, shapes, dtype, platform):
    avals = [jax.ShapeDtypeStruct(s, dtype) for s in shapes]
    return jax.jit(lambda *xs: function(oracle, *xs)).trace(*avals).lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
@pytest.mark.parametrize("name", CASES)
def test_calls_are_those_of_jax(name, platform):
    if platform == "tpu" and name in ("pivoted qr", "perturbed"):
        pytest.skip("there is none")
    function, shapes = CASES[name]
    for dtype in (np.float32, np.complex64):
        if dtype == np.complex64 and name in ("cholesky_update", "perturbed"):
            continue
        want = calls(theirs(function, shapes, dtype, platform))
        assert bool(want) == ((platform, name) not in LOOPS)
        assert not want or calls(ours(function, shapes, dtype, platform)) == want


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize("name", CASES)
def test_text_is_parsed(name, platform):
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    if platform == "tpu" and name in ("pivoted qr", "perturbed"):
        with pytest.raises(NotImplementedError, match="CPU and CUDA"):
            ours(*CASES[name], np.float32, platform)
        return
    with mlir.make_ir_context():
        assert ir.Module.parse(ours(*CASES[name], np.float32, platform)).operation.verify()


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_functions_of_numpy_call_nothing_of_another_platform(platform):
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir

    m = fm.numpy.linalg

    def everything(a, b):
        without_svd = [m.det(a), m.slogdet(a), m.inv(a), m.solve(a, b), m.qr(b), m.cholesky(a), fm.grad(m.det)(a[:4, :4])]
        if platform == "tpu":
            return without_svd
        return [*without_svd, m.pinv(b), m.cond(a), m.matrix_rank(b), m.lstsq(a, b), m.norm(b, "nuc"), fm.grad(m.det)(a)]

    avals = [shaped(s, np.dtype("float32")) for s in ((5, 5), (5, 2))]
    jaxpr, _ = trace(lambda a, b: fm.tree.leaves(everything(a, b)), avals, "f")
    text = to_stablehlo(jaxpr, platform=platform)
    assert "@lapack_" not in text and ("@cusolver_" in text) == (platform == "cuda")
    with mlir.make_ir_context():
        assert ir.Module.parse(text).operation.verify()


def run_text_for(platform, function, *args):
    """What the text for another platform computes on this one."""
    jaxpr, _ = trace(lambda *xs: [function(*xs)], [shaped(a.shape, a.dtype) for a in args], "f")
    (out,) = jaxpr.out_avals
    program = pjrt.compile(to_stablehlo(jaxpr, platform=platform), [(out.shape, out.dtype)], pjrt.default_device())
    (found,) = program.run([pjrt.put(a, pjrt.default_device()) for a in args])
    return pjrt.to_numpy(found)


def test_programs_in_place_of_routines_compute_the_same(rng):
    vectors = [rng.normal(size=(2, 5)) + 3 * (i == 1) for i in range(3)]
    a, c = rng.normal(size=(2, 5, 5)), rng.normal(size=(2, 5, 3))
    positive = a @ a.mT + np.eye(5)
    packed, taus = (np.asarray(x) for x in linalg.geqrf(a))
    for function, args in [
        (linalg.tridiagonal_solve, (*vectors, c)),
        (linalg.ormqr, (packed, taus, c)),
        (lambda p, t, c: linalg.ormqr(p, t, c, left=False, transpose=True), (packed, taus, c.mT.copy())),
        (lambda a, b: linalg.triangular_solve(a, b, left_side=True, transpose_a=True), (positive, c)),
        (linalg.cholesky, (positive,)),
    ]:
        np.testing.assert_allclose(run_text_for("tpu", function, *args), function(*args), rtol=1e-9, atol=1e-9)
    small = [v[:, :2] for v in vectors]
    np.testing.assert_allclose(
        run_text_for("cuda", linalg.tridiagonal_solve, *small, c[:, :2]), linalg.tridiagonal_solve(*small, c[:, :2]), rtol=1e-9
    )
