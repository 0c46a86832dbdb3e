"""Rotations against SciPy's."""

import itertools

import numpy as np
import pytest
import scipy.spatial.transform

import funcml as fm
import funcml.numpy as jnp
from funcml.scipy.spatial.transform import Rotation, Slerp
from tests.products import check_products

Theirs = scipy.spatial.transform.Rotation
SEQUENCES = ["xyz", "zyx", "zxz", "XYZ", "ZYX", "YXY"]


def both(rng, shape=(5, 4)):
    q = rng.normal(size=shape)
    return Rotation.from_quat(q), Theirs.from_quat(q)


def same(found, want, atol=1e-12):
    np.testing.assert_allclose(found, want, atol=atol)


@pytest.mark.parametrize("shape", [(4,), (5, 4)])
def test_forms(rng, shape):
    r, t = both(rng, shape)

    def forms(r):
        yield from (r.as_quat(), r.as_quat(canonical=True), r.as_matrix(), r.as_mrp(), r.as_rotvec(), r.as_rotvec(degrees=True))
        yield from (r.as_quat(scalar_first=True), r.magnitude(), r.inv().as_quat())
        yield from (r.as_euler(seq) for seq in SEQUENCES)
        yield r.as_euler("zyx", degrees=True)

    for found, want in zip(fm.jit(lambda r: list(forms(r)))(r), forms(t), strict=True):
        same(found, want)
    assert r.single == (len(shape) == 1)


@pytest.mark.parametrize("shape", [(3,), (5, 3)])
def test_makers(rng, shape):
    v = rng.normal(size=shape)
    q = lambda r: r.as_quat(canonical=True)
    same(q(Rotation.from_rotvec(v)), q(Theirs.from_rotvec(v)))
    same(q(Rotation.from_rotvec(100 * v, degrees=True)), q(Theirs.from_rotvec(100 * v, degrees=True)))
    same(q(Rotation.from_mrp(v)), q(Theirs.from_mrp(v)))
    for seq in SEQUENCES:
        same(q(Rotation.from_euler(seq, v)), q(Theirs.from_euler(seq, v)))
    same(q(Rotation.from_euler("yx", v[..., :2], degrees=True)), q(Theirs.from_euler("yx", v[..., :2], degrees=True)))
    m = Theirs.from_rotvec(v).as_matrix()
    same(q(Rotation.from_matrix(m)), q(Theirs.from_matrix(m)))
    same(Rotation.from_euler("z", np.float64(0.3)).as_rotvec(), [0, 0, 0.3])
    same(Rotation.from_euler("z", np.array([0.3, 0.4])).as_rotvec(), [[0, 0, 0.3], [0, 0, 0.4]])
    same(Rotation.from_quat(np.array([2.0, 0, 0, 0]), scalar_first=True).as_quat(), [0, 0, 0, 1])


def test_matrices_of_half_turns():
    half = np.stack([np.diag(d) for d in ([1.0, -1, -1], [-1.0, 1, -1], [-1.0, -1, 1], [1.0, 1, 1])])
    same(Rotation.from_matrix(half).as_quat(), np.eye(4))


def test_composition_and_application(rng):
    (r, t), (s, u) = both(rng), both(rng)
    one, single = both(rng, (4,))
    v = rng.normal(size=(5, 3))
    same((r * s).as_matrix(), (t * u).as_matrix())
    same((one * s).as_matrix(), (single * u).as_matrix())
    for inverse in (False, True):
        same(r.apply(v, inverse), t.apply(v, inverse))
        same(r.apply(v[0], inverse), t.apply(v[0], inverse))
        same(one.apply(v, inverse), single.apply(v, inverse))
    both_parts = Rotation.concatenate([r, one])
    assert len(both_parts) == 6
    same(both_parts.as_matrix(), Theirs.concatenate([t, single]).as_matrix())
    same(r[1:3].as_quat(), t[1:3].as_quat())
    assert r[2].single


def test_angles_near_zero_keep_their_digits():
    tiny = np.array([1e-9, -2e-9, 1e-9])
    np.testing.assert_allclose(Rotation.from_rotvec(tiny).as_rotvec(), tiny, rtol=1e-12)
    np.testing.assert_allclose(Rotation.from_euler("xyz", tiny).as_euler("xyz"), tiny, rtol=1e-7)


@pytest.mark.parametrize("seq", SEQUENCES)
def test_degenerate_angles(seq):
    second = (0.0, np.pi) if seq[0] == seq[2] else (np.pi / 2, -np.pi / 2)
    for angle in second:
        r = Rotation.from_euler(seq, np.array([0.4, angle, 0.3]))
        found = np.asarray(r.as_euler(seq))
        same(Rotation.from_euler(seq, found).as_matrix(), r.as_matrix(), 1e-7)
        assert found[2] == 0


def test_identity_and_random():
    same(Rotation.identity().as_quat(), [0, 0, 0, 1])
    assert Rotation.identity().as_quat().dtype == "float32" and Rotation.identity(3, "float64").as_quat().shape == (3, 4)
    r = Rotation.random(fm.random.key(0), 1000)
    assert np.abs(np.asarray(r.as_matrix()).mean(0)).max() < 0.08
    same(np.linalg.norm(r.as_quat(), axis=-1), 1, 1e-6)
    assert Rotation.random(fm.random.key(0)).single


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtypes(rng, dtype):
    r = Rotation.from_quat(rng.normal(size=4).astype(dtype))
    for x in (r.as_matrix(), r.as_rotvec(), r.as_euler("xyz"), r.magnitude(), r.apply(np.ones(3, dtype)), (r * r).quat):
        assert x.dtype == dtype
    assert Rotation.from_euler("z", 90, degrees=True).quat.dtype == "float32"


def test_products(rng):
    q, v = rng.normal(size=4), rng.normal(size=3)
    make, few = Rotation.from_quat, ("jit", "jvp", "vjp", "order2")
    check_products(lambda q: make(q).as_matrix(), q, order=1)
    check_products(lambda q: make(q).as_rotvec(), q, products=few)
    check_products(lambda q: make(q).as_euler("zyx"), q, order=1, products=few)
    check_products(lambda v: Rotation.from_rotvec(v).as_mrp(), v, products=few)
    check_products(lambda q, v: make(q).apply(v), q, v, order=1, products=few)
    m = Theirs.from_quat(q).as_matrix()
    check_products(lambda m: Rotation.from_matrix(m).as_quat(), m, order=1, products=few)


def test_derivatives_at_the_identity():
    zero = np.zeros(3)
    same(fm.jacobian(lambda v: Rotation.from_rotvec(v).as_rotvec())(zero), np.eye(3))
    check_products(lambda v: Rotation.from_rotvec(v).apply(np.array([1.0, 2.0, 3.0])), zero, products=("jvp", "vjp", "order2"))


def test_slerp(rng):
    r, t = both(rng, (4, 4))
    times = np.array([0.0, 1.0, 2.5, 4.0])
    ours, theirs = Slerp.init(times, r), scipy.spatial.transform.Slerp(times, t)
    at = np.array([0.0, 0.3, 1.0, 2.0, 4.0])
    same(ours(at).as_matrix(), theirs(at).as_matrix())
    same(ours(2.2).as_matrix(), theirs(2.2).as_matrix())
    assert ours(2.2).single
    f = lambda at, q: Slerp.init(times, Rotation.from_quat(q))(at).as_quat()
    check_products(f, np.float64(0.3), np.asarray(r.quat), order=1, products=("jvp", "vjp"))


def test_mean(rng):
    r, t = both(rng)
    w = rng.uniform(size=5)
    same(r.mean().as_matrix(), t.mean().as_matrix())
    same(r.mean(w).as_matrix(), t.mean(w).as_matrix())
    f = lambda q: Rotation.from_quat(q).mean(w).as_matrix()
    check_products(f, np.asarray(r.quat), order=1, products=("jit", "jvp", "vjp"))
    with pytest.raises(ValueError, match=r"a weight for each of 5 rotations, got f64\[4\]"):
        r.mean(w[:4])


def test_they_are_trees(rng):
    r, _ = both(rng)
    mapped = fm.vmap(lambda r, v: r.apply(v), (0, None))(r, np.ones(3))
    same(mapped, r.apply(np.ones(3)))
    assert jnp.shape(fm.tree.leaves(r)[0]) == (5, 4)


@pytest.mark.parametrize("call, error, words", [
    (lambda: Rotation.from_quat(np.ones(3)), ValueError, r"shape \[.., 4\], got f64\[3\]"),
    (lambda: Rotation.from_matrix(np.ones((2, 3))), ValueError, r"shape \[.., 3, 3\], got f64\[2,3\]"),
    (lambda: Rotation.from_euler("xq", np.ones(2)), ValueError, "one to three axes"),
    (lambda: Rotation.from_euler("xX", np.ones(2)), ValueError, "one to three axes"),
    (lambda: Rotation.from_euler("xxy", np.ones(3)), ValueError, "neighbouring axes to be different"),
    (lambda: Rotation.from_euler("xyz", np.ones(2)), ValueError, r"shape \[.., 3\], got f64\[2\]"),
    (lambda: Rotation.identity().as_euler("xy"), ValueError, "expects three axes"),
    (lambda: Rotation.identity()[0], TypeError, "has no index"),
    (lambda: len(Rotation.identity()), TypeError, "has no length"),
    (lambda: Slerp.init(np.arange(2.0), np.ones((2, 4))), TypeError, "expects a Rotation, got ndarray"),
    (lambda: Slerp.init(np.arange(1.0), Rotation.identity(1)), ValueError, "two or more rotations"),
    (lambda: Slerp.init(np.arange(3.0), Rotation.identity(2)), ValueError, "a time for each of 2 rotations"),
])
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_all_orders_of_axes(rng):
    v = rng.normal(size=(3, 3))
    seqs = ["".join(p) for p in itertools.product("xyz", repeat=3) if p[0] != p[1] != p[2]]
    found = fm.jit(lambda v: [Rotation.from_euler(s, v).as_euler(s) for s in seqs])(v)
    for seq, angles in zip(seqs, found, strict=True):
        same(angles, Theirs.from_euler(seq, v).as_euler(seq), 1e-9)
