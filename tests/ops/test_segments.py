"""Segment reductions: against a loop, under transforms, and what is refused."""

import functools

import numpy as np
import pytest

import funcml as fm
from funcml import ops
from tests.products import check_products

IDS = np.array([0, 0, 1, 5, 1, -1, 2, 2, 0, 7])
REDUCTIONS = {
    ops.segment_sum: (np.add, 0), ops.segment_prod: (np.multiply, 1),
    ops.segment_max: (np.maximum, -np.inf), ops.segment_min: (np.minimum, np.inf),
}  # fmt: skip


@pytest.mark.parametrize("segment", REDUCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(10,), (10, 3)])
def test_values(rng, segment, shape):
    combine, unit = REDUCTIONS[segment]
    data = rng.normal(size=shape)
    for count in (None, 4, 12):
        want = np.full((count or IDS.max() + 1, *shape[1:]), float(unit))
        for x, i in zip(data, IDS, strict=True):
            if 0 <= i < len(want):
                want[i] = combine(want[i], x)
        np.testing.assert_allclose(segment(data, IDS, count), want, rtol=1e-14)
    whole = segment(np.arange(10, dtype=np.int32), IDS, 4)
    assert whole.dtype == np.int32 and whole[3] == {0: 0, 1: 1}.get(unit, np.iinfo("int32").min if unit < 0 else 2**31 - 1)


def test_derivatives(rng):
    functions = [functools.partial(f, segment_ids=IDS, num_segments=3) for f in REDUCTIONS]
    check_products(lambda x: [f(x) for f in functions], rng.normal(size=(10, 2)))


def test_ids_may_be_traced_where_the_count_is_known():
    data = np.arange(10.0)
    np.testing.assert_array_equal(fm.jit(lambda i: ops.segment_sum(data, i, 3))(IDS), ops.segment_sum(data, IDS, 3))
    with pytest.raises(TypeError, match="segment_sum: .* in num_segments=None .* decides the shape"):
        fm.jit(lambda i: ops.segment_sum(data, i))(IDS)


def test_bad_arguments():
    with pytest.raises(TypeError, match=r"segment_max: expected data \[n, ...\] and integer segment_ids \[n\], got f64\[3\]"):
        ops.segment_max(np.zeros(3), np.zeros(2, int))
    with pytest.raises(ValueError, match="num_segments must not be negative, got -1"):
        ops.segment_sum(np.zeros(3), np.zeros(3, int), -1)


@pytest.mark.parametrize("name", ["segment_sum", "segment_prod", "segment_max", "segment_min"])
def test_buckets_change_nothing_but_rounding(name):
    data, ids = np.random.default_rng(0).standard_normal((11, 2)), np.array([0, 2, 1, 0, 5, 2, 2, 0, 1, -1, 3], np.int8)
    f = getattr(ops, name)
    for size in (1, 4, 20):
        np.testing.assert_allclose(f(data, ids, 4, bucket_size=size), f(data, ids, 4), rtol=1e-12)
    with pytest.raises(ValueError, match="bucket_size must be positive"):
        f(data, ids, 4, bucket_size=0)
