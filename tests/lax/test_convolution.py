"""`lax`'s convolutions in other clothes, against JAX; what windows cover, and shapes."""

import jax.lax
import numpy as np
import pytest

import funcml as fm
from funcml import lax
from tests.products import check_products

RNG = np.random.default_rng(1)


@pytest.mark.parametrize(
    "padding, consistent", [("SAME", False), ("VALID", False), (((2, 1), (0, 1)), False), (((1, 1), (0, 1)), True)]
)
@pytest.mark.parametrize("kernel", [False, True], ids=["kernel as it is", "transposed kernel"])
def test_conv_transpose(padding, consistent, kernel):
    x, w = RNG.normal(size=(2, 4, 5, 3)).astype("f4"), RNG.normal(size=(3, 4, 3, 3)).astype("f4")
    options = {"transpose_kernel": kernel, "use_consistent_padding": consistent}
    found = lax.conv_transpose(x, w, (2, 3), padding, (1, 2), **options)
    want = jax.lax.conv_transpose(x, w, (2, 3), padding, (1, 2), **options)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


def test_the_transposed_kernel_makes_the_gradient_of_a_convolution():
    x, w = RNG.normal(size=(2, 7, 3)), RNG.normal(size=(3, 3, 4))
    layout = ("NHC", "HIO", "NHC")
    out, pullback = fm.vjp(lambda x: lax.conv_general_dilated(x, w, (2,), "SAME", dimension_numbers=layout), x)
    ct = RNG.normal(size=out.shape)
    found = lax.conv_transpose(ct, w, (2,), ((1, 1),), transpose_kernel=True, use_consistent_padding=True)
    np.testing.assert_allclose(found, pullback(ct)[0], rtol=1e-12)


@pytest.mark.parametrize("layout", [("NCHW", "OIHW", "NCHW"), ("NHWC", "WIHO", "CNHW")])
def test_patches(layout):
    x = RNG.normal(size=(2, 3, 5, 6)).astype("f4")
    x = x if layout[0] == "NCHW" else np.moveaxis(x, 1, -1)
    args = (2, 3), (2, 1), ((1, 0), (0, 2)), (1, 2), (2, 1), layout
    np.testing.assert_array_equal(lax.conv_general_dilated_patches(x, *args), jax.lax.conv_general_dilated_patches(x, *args))
    check_products(lambda x: lax.conv_general_dilated_patches(x, *args), x.astype("f8"), order=1)


def test_long_patches_are_read_by_index():
    x = RNG.normal(size=(1, 2, 90)).astype("f4")
    args = (40,), (3,), ((5, 1),)
    found = fm.jit(lambda x: lax.conv_general_dilated_patches(x, *args))
    np.testing.assert_array_equal(found(x), jax.lax.conv_general_dilated_patches(x, *args))
    check_products(lambda x: lax.conv_general_dilated_patches(x, *args), x.astype("f8"), order=1)


def test_patches_keep_infinities_apart():
    x = np.array([[[1.0, np.inf, np.nan, 4.0]]])
    found = lax.conv_general_dilated_patches(x, (2,), (1,), "VALID")
    np.testing.assert_array_equal(found, [[[1, np.inf, np.nan], [np.inf, np.nan, 4]]])


@pytest.mark.parametrize("layout", [("NCHW", "OIHW", "NCHW"), ("NHWC", "WIHO", "CNWH")])
def test_conv_general_dilated_local(layout):
    specs = lax.conv_dimension_numbers((2, 3, 5, 6), (1, 1, 2, 3), layout)
    x = np.moveaxis(RNG.normal(size=(2, 3, 5, 6)).astype("f4"), range(4), specs.lhs_spec)
    w = np.moveaxis(RNG.normal(size=(4, 18, 3, 6)).astype("f4"), range(4), specs.rhs_spec)
    args = (2, 1), ((1, 0), (1, 1)), (2, 3)
    found = lax.conv_general_dilated_local(x, w, *args, dimension_numbers=layout)
    want = jax.lax.conv_general_dilated_local(x, w, *args, dimension_numbers=layout)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


def test_plain_names():
    x, w = RNG.normal(size=(1, 2, 6)).astype("f4"), RNG.normal(size=(3, 2, 3)).astype("f4")
    np.testing.assert_allclose(lax.conv(x, w, (2,), "SAME"), jax.lax.conv(x, w, (2,), "SAME"), rtol=1e-5, atol=1e-5)
    args = (1,), ((2, 2),), (2,), (2,)
    found = lax.conv_with_general_padding(x, w, *args, precision=lax.Precision.HIGHEST)
    np.testing.assert_allclose(found, jax.lax.conv_with_general_padding(x, w, *args), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("padding", ["SAME", "SAME_LOWER", "VALID", "same"])
@pytest.mark.parametrize("window, stride", [(1, 1), (2, 1), (3, 2), (2, 5), (7, 3)])
def test_padtype_to_pads(padding, window, stride):
    for n in (0, 1, 5, 8):
        found = lax.padtype_to_pads((n,), (window,), (stride,), padding)
        assert found == jax.lax.padtype_to_pads((n,), np.array((window,)), np.array((stride,)), padding)


def test_shapes():
    layout = ("NHWC", "HWIO", "NHWC")
    args = (2, 9, 8, 3), (3, 2, 3, 5), (2, 3)
    for padding in ("SAME", "VALID", ((1, 2), (0, 1))):
        assert lax.conv_general_shape_tuple(*args, padding, layout) == jax.lax.conv_general_shape_tuple(*args, padding, layout)
        found = lax.conv_transpose_shape_tuple(*args, padding, layout)
        assert found == jax.lax.conv_transpose_shape_tuple(*args, padding, layout)
    assert lax.conv_shape_tuple((4, 3, 9), (6, 3, 2), (2,), ((1, 1),), 2) == (2, 6, 5)
    assert lax.conv_general_permutations(layout) == jax.lax.conv_general_permutations(layout)
    with pytest.raises(TypeError, match="expects 1 pairs"):
        lax.conv_shape_tuple((4, 3, 9), (6, 3, 2), (2,), ())
    with pytest.raises(ValueError, match="takes away more"):
        lax.conv_shape_tuple((4, 3, 9), (6, 3, 2), (2,), ((-9, -9),))


def random_case(seed):
    """A convolution of random rank, layout, window and groups: (x, w, arguments)."""
    rng = np.random.default_rng(seed)
    spatial = int(rng.integers(1, 4))
    groups = ((1, 1), (int(rng.integers(2, 4)), 1), (1, int(rng.integers(2, 4))))[rng.integers(3)]
    batch, channels, features = (int(rng.integers(1, 3)) * n for n in (groups[1], groups[0], groups[0] * groups[1]))
    lengths, kernel = rng.integers(1, 7, spatial), rng.integers(1, 4, spatial)
    letters = "HWD"[:spatial]
    specs = tuple(["".join(rng.permutation(list(pair + letters))) for pair in ("NC", "OI", "NC")])
    strides, base, dilation = (tuple(map(int, rng.integers(1, 4, spatial))) for _ in range(3))
    padding = tuple([(int(a), int(b)) for a, b in rng.integers(-1, 4, (spatial, 2))])
    sizes = [{"N": batch, "C": channels}, {"O": features, "I": channels // groups[0]}]
    ordered = [c for c in specs[1] if c not in "OI"]
    sizes[0].update(zip(ordered, map(int, lengths)))
    sizes[1].update(zip(ordered, map(int, kernel)))
    x, w = (rng.normal(size=[size[c] for c in spec]).astype("f4") for size, spec in zip(sizes, specs))
    return x, w, (strides, padding, base, dilation, specs, *groups)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(60))
def test_random_convolutions_and_their_derivatives(seed):
    x, w, args = random_case(seed)
    try:
        want, pull_jax = jax.vjp(lambda x, w: jax.lax.conv_general_dilated(x, w, *args), x, w)
    except ValueError:
        with pytest.raises(ValueError):
            lax.conv_general_dilated(x, w, *args)
        return
    found, pull = fm.vjp(lambda x, w: lax.conv_general_dilated(x, w, *args), x, w)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)
    ct = np.random.default_rng(seed).normal(size=want.shape).astype("f4")
    for ours, theirs in zip(pull(ct), pull_jax(ct)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
