"""Windows, trends and spectra against SciPy."""

import numpy as np
import pytest
import scipy.signal

import funcml as fm
import funcml.numpy as jnp
from funcml.scipy import signal
from funcml.scipy.signal.windows import window_values
from tests.products import check_products

WINDOWS = [
    "boxcar", "hann", "hamming", "blackman", "nuttall", "blackmanharris", "flattop", "triang", "bartlett", "barthann", "bohman",
    "parzen", "cosine", "lanczos", "tukey", ("tukey", 0.3), ("kaiser", 4.0), 8.6, ("gaussian", 2.0), ("general_hamming", 0.6),
    ("general_gaussian", 1.5, 2.0), ("exponential", None, 3.0), "exponential", ("general_cosine", (0.5, 0.3, 0.2)),
]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_windows(window):
    for n in (1, 2, 7, 8):
        for periodic in (True, False):
            want = scipy.signal.get_window(window, n, periodic)
            np.testing.assert_allclose(window_values(window, n, periodic), want, rtol=1e-12, atol=1e-15)
            np.testing.assert_allclose(signal.get_window(window, n, periodic), want, atol=1e-7)


@pytest.mark.parametrize("type, bp", [("constant", 0), ("linear", 0), ("linear", [0, 2]), ("linear", [3, 4]), ("linear", 5)])
def test_trends(rng, type, bp):
    x = rng.normal(size=(5, 3))
    for axis in (0, -2):
        np.testing.assert_allclose(signal.detrend(x, axis, type, bp), scipy.signal.detrend(x, axis, type, bp), atol=1e-14)
    assert signal.detrend(np.arange(4, dtype="int32")).dtype == "float32"
    np.testing.assert_allclose(signal.detrend(1e6 + np.arange(9.0)), 0, atol=1e-9)


def compare(name, args, options, dtype="float64", warn=None):
    theirs, ours = getattr(scipy.signal, name), getattr(signal, name)
    want = theirs(*args, **options)
    found = ours(*args, **options)
    assert found[-1].dtype == (np.result_type(dtype, np.complex64) if np.iscomplexobj(want[-1]) else np.dtype(dtype))
    for y, z in zip(found, want, strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-10, atol=1e-12 * max(1, np.abs(z).max()))


@pytest.mark.parametrize("options", [
    {}, {"fs": 16000.0, "window": "triang", "nfft": 14}, {"noverlap": 0, "boundary": None}, {"boundary": "even", "padded": False},
    {"boundary": "odd", "detrend": "linear"}, {"boundary": "constant", "return_onesided": False, "noverlap": 6},
    {"window": np.linspace(0.1, 1, 9)}, {"nperseg": 1, "noverlap": 0},
], ids=str)
def test_stft(rng, options):
    options = {"nperseg": 9, **options}
    compare("stft", (rng.normal(size=50),), options)
    compare("stft", (rng.normal(size=(2, 40, 2)),), {**options, "axis": 1})


@pytest.mark.parametrize("options", [
    {}, {"fs": 0.1, "scaling": "spectrum", "nfft": 20}, {"noverlap": 3, "detrend": "linear", "average": "median"},
    {"return_onesided": False, "detrend": False}, {"window": ("tukey", 0.25)}, {"nperseg": 8},
], ids=str)
def test_welch_and_csd(rng, options):
    options = {"nperseg": 9, **options}
    x = rng.normal(size=(3, 50))
    compare("welch", (x,), options)
    compare("welch", (x.T,), {**options, "axis": 0})
    compare("csd", (x, rng.normal(size=(3, 50))), options)
    compare("csd", (x, rng.normal(size=(3, 37))), options)
    compare("csd", (x, rng.normal(size=(1, 50))), options)


def test_complex_signals_have_two_sides(rng):
    x = rng.normal(size=40) + 1j * rng.normal(size=40)
    compare("welch", (x,), {"nperseg": 9, "return_onesided": False})
    with pytest.warns(UserWarning, match="two sides"):
        f, p = signal.welch(x, nperseg=9)
    assert f.shape == (9,)


def test_pieces_are_not_longer_than_the_signal(rng):
    x = rng.normal(size=40)
    with pytest.warns(UserWarning, match="nperseg 256 is longer than the signal"):
        f, p = signal.welch(x)
    with pytest.warns(UserWarning):
        want = scipy.signal.welch(x)
    np.testing.assert_allclose(p, want[1], atol=1e-14)


def test_narrow_dtypes_and_exact_frequencies(rng):
    f, t, z = signal.stft(rng.normal(size=40).astype("float32"), 0.1, nperseg=8)
    assert f.dtype == t.dtype == "float32" and z.dtype == "complex64"
    np.testing.assert_array_equal(f, (np.arange(5) * 0.1 / 8).astype("float32"))
    assert signal.welch(np.arange(16), nperseg=8)[1].dtype == "float64"
    assert signal.welch(jnp.ones(16, "bfloat16"), nperseg=8)[1].dtype == "float32"


def test_empty_signals():
    f, t, z = signal.stft(np.zeros((0, 5)), nperseg=2)
    assert f.shape == t.shape == z.shape == (0, 5) and z.dtype == "complex128"


@pytest.mark.parametrize("options", [
    {}, {"window": "blackman", "noverlap": 6}, {"nfft": 16}, {"input_onesided": False}, {"window": np.ones(8)},
    {"boundary": False, "noverlap": 3}, {"fs": 100.0, "noverlap": 0, "window": "boxcar"},
], ids=str)
@pytest.mark.filterwarnings("ignore:NOLA")
def test_istft(rng, options):
    n = 9 if options.get("nfft") else (8 if options.get("input_onesided") is False else 5)
    options = {"nperseg": 8, **options}
    z = rng.normal(size=(n, 6)) + 1j * rng.normal(size=(n, 6))
    compare("istft", (z,), options)
    z = rng.normal(size=(6, 2, n)) + 1j * rng.normal(size=(6, 2, n))
    want = scipy.signal.istft(z, time_axis=0, freq_axis=2, **options)[1]
    t, x = signal.istft(z, time_axis=0, freq_axis=2, **options)
    np.testing.assert_allclose(x, want, atol=1e-12)
    assert t.shape == (x.shape[0],)


def test_there_and_back(rng):
    x = rng.normal(size=(2, 50))
    for options in ({"nperseg": 10}, {"nperseg": 9, "noverlap": 7}, {"nperseg": 8, "nfft": 12, "window": "hamming"}):
        t, back = signal.istft(signal.stft(x, **options)[2], **options)
        assert t.shape == back.shape[-1:]
        np.testing.assert_allclose(back[:, :50], x, atol=1e-13)


def test_products(rng):
    x = rng.normal(size=24)
    check_products(lambda x: signal.detrend(x, bp=10), x, order=1)
    check_products(lambda x: signal.stft(x, nperseg=8, detrend="linear")[2], x, order=1)
    check_products(lambda x, y: signal.csd(x, y, nperseg=8)[1], x, rng.normal(size=24))
    check_products(lambda x, fs: signal.welch(x, fs, nperseg=8)[1], x, np.float64(3.0))
    z = rng.normal(size=(5, 4)) + 1j * rng.normal(size=(5, 4))
    check_products(lambda z: signal.istft(z, nperseg=8)[1], z, order=1)


def test_implicit_promotion_may_be_an_error(rng):
    x = rng.normal(size=(2, 40))
    fm.config.update("numpy_dtype_promotion", "strict")
    fm.config.update("numpy_rank_promotion", "raise")
    signal.istft(signal.stft(x, nperseg=8)[2], nperseg=8)
    signal.csd(x, x, nperseg=8)


def test_jit_is_eager(rng):
    x = rng.normal(size=40).astype("float32")
    f = lambda x: signal.welch(x, nperseg=8)
    for a, b in zip(fm.jit(f)(x), f(x), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("call, words", [
    (lambda x: signal.get_window("round", 4), "unknown window 'round'"),
    (lambda x: signal.get_window("kaiser", 4), "does not take the parameters"),
    (lambda x: signal.detrend(x, type="square"), "type must be 'constant' or 'linear'"),
    (lambda x: signal.detrend(x, bp=17), "break points must be from 0 to 16"),
    (lambda x: signal.stft(x, nperseg=0), "nperseg must be positive"),
    (lambda x: signal.stft(x, nperseg=8, noverlap=8), "noverlap must be less than nperseg, got 8 and 8"),
    (lambda x: signal.stft(x, nperseg=8, nfft=7), "nfft must not be less than nperseg"),
    (lambda x: signal.stft(x, nperseg=8, boundary="reflect"), "boundary must be one of"),
    (lambda x: signal.stft(x[:3], window=np.ones(4), nperseg=4), "is longer than the signal"),
    (lambda x: signal.stft(x, window=np.ones((4, 1)), nperseg=4), "a window is a vector"),
    (lambda x: signal.stft(x, window=np.ones(4), nperseg=5), "differs from the length of the window"),
    (lambda x: signal.welch(x, nperseg=8, scaling="power"), "scaling must be one of 'density', 'spectrum'"),
    (lambda x: signal.welch(x, nperseg=8, average="mode"), "average must be one of"),
    (lambda x: signal.welch(x, nperseg=8, detrend="square"), "detrend must be"),
    (lambda x: signal.csd(x, x[None], nperseg=8), "two signals of one rank"),
    (lambda x: signal.istft(x), "at least 2 dimensions"),
    (lambda x: signal.istft(x.reshape(4, 4), time_axis=0, freq_axis=-2), "must differ"),
])
def test_errors(call, words):
    with pytest.raises(ValueError, match=words):
        call(np.ones(16, "float32"))
