"""Windows: weights that fade a piece of a signal out at its ends.

    get_window : (name, n) -> [n]      for spectra: one period of a periodic function, or symmetric

Their values are computed in double precision and rounded once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from funcml import dtypes
from funcml.core.values import Array
from funcml.lowering.array import asarray
from funcml.numpy.arguments import index_of

__all__ = ["get_window", "window_values"]


def get_window(window, Nx: int, fftbins: bool = True) -> Array:
    """The window of this name with `Nx` elements; of one period if `fftbins`, else symmetric.

    A window with parameters is a tuple: ('kaiser', beta), ('gaussian', deviation), ('tukey', alpha), ('general_hamming', alpha),
    ('exponential', centre, decay), ('general_cosine', coefficients), ('general_gaussian', power, deviation); a number is the
    beta of a Kaiser window. Raises ValueError for an unknown name.

    >>> get_window("hann", 4)
    Array([0. , 0.5, 1. , 0.5], dtype=float32)
    """
    return asarray(window_values(window, index_of("get_window", "Nx", Nx), bool(fftbins)).astype(dtypes.default_float()))


@functools.lru_cache(maxsize=256)
def window_values(window, n: int, periodic: bool = True) -> np.ndarray:
    """The float64 values of a window."""
    name, *parameters = window if isinstance(window, tuple) else (("kaiser", window) if isinstance(window, float) else (window,))
    if name not in _WINDOWS:
        raise ValueError(f"get_window: unknown window {name!r}; expected one of {', '.join(sorted(_WINDOWS))}, or values")
    if n < 1:
        raise ValueError(f"get_window: a window has at least one element, got {n}")
    if n == 1:
        return np.ones(1)
    try:
        values = _WINDOWS[name](n + periodic, *parameters)
    except TypeError:
        raise ValueError(f"get_window: {name!r} does not take the parameters {tuple(parameters)}") from None
    return values[:n]


# w_k = sum over j of (-1)^j a_j cos(2 pi j k / (m - 1))
def _cosines(*a: float) -> Callable[[int], np.ndarray]:
    def window(m: int) -> np.ndarray:
        angle = np.linspace(-np.pi, np.pi, m)
        return np.sum([c * np.cos(j * angle) for j, c in enumerate(a)], axis=0)

    return window


def _from_middle(m: int) -> np.ndarray:
    return np.arange(m) - (m - 1) / 2


def _triang(m: int) -> np.ndarray:
    return 1 - 2 * np.abs(_from_middle(m)) / (m + m % 2)


def _bartlett(m: int) -> np.ndarray:
    return 1 - 2 * np.abs(_from_middle(m)) / (m - 1)


def _barthann(m: int) -> np.ndarray:
    x = np.abs(np.arange(m) / (m - 1) - 0.5)
    return 0.62 - 0.48 * x + 0.38 * np.cos(2 * np.pi * x)


def _bohman(m: int) -> np.ndarray:
    x = np.abs(np.linspace(-1, 1, m))
    w = (1 - x) * np.cos(np.pi * x) + np.sin(np.pi * x) / np.pi
    w[[0, -1]] = 0
    return w


def _parzen(m: int) -> np.ndarray:
    x = 2 * np.abs(_from_middle(m)) / m
    return np.where(x <= (m - 1) / (2 * m), 1 - 6 * x**2 * (1 - x), 2 * (1 - x) ** 3)


def _cosine(m: int) -> np.ndarray:
    return np.sin(np.pi / m * (np.arange(m) + 0.5))


def _lanczos(m: int) -> np.ndarray:
    return np.sinc(2 * np.arange(m) / (m - 1) - 1)


def _tukey(m: int, alpha: float = 0.5) -> np.ndarray:
    if alpha <= 0:
        return np.ones(m)
    inside = np.clip(2 * np.minimum(np.arange(m), np.arange(m)[::-1]) / (min(alpha, 1) * (m - 1)), 0, 1)
    return 0.5 * (1 - np.cos(np.pi * inside))


def _kaiser(m: int, beta: float) -> np.ndarray:
    return np.kaiser(m, beta)


def _gaussian(m: int, deviation: float) -> np.ndarray:
    return np.exp(-((_from_middle(m) / deviation) ** 2) / 2)


def _general_gaussian(m: int, power: float, deviation: float) -> np.ndarray:
    return np.exp(-0.5 * np.abs(_from_middle(m) / deviation) ** (2 * power))


def _exponential(m: int, centre: float | None = None, decay: float = 1.0) -> np.ndarray:
    return np.exp(-np.abs(np.arange(m) - ((m - 1) / 2 if centre is None else centre)) / decay)


_WINDOWS: dict[str, Callable[..., np.ndarray]] = {
    **dict.fromkeys(("boxcar", "box", "ones", "rect", "rectangular"), np.ones),
    **dict.fromkeys(("hann", "hanning", "han"), _cosines(0.5, 0.5)),
    **dict.fromkeys(("hamming", "hamm", "ham"), _cosines(0.54, 0.46)),
    **dict.fromkeys(("blackman", "black", "blk"), _cosines(0.42, 0.5, 0.08)),
    **dict.fromkeys(("nuttall", "nutl", "nut"), _cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411)),
    **dict.fromkeys(("blackmanharris", "blackharr", "bkh"), _cosines(0.35875, 0.48829, 0.14128, 0.01168)),
    **dict.fromkeys(
        ("flattop", "flat", "flt"), _cosines(0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368)
    ),
    **dict.fromkeys(("triang", "triangle", "tri"), _triang),
    **dict.fromkeys(("bartlett", "bart", "brt"), _bartlett),
    **dict.fromkeys(("barthann", "brthan", "bth"), _barthann),
    **dict.fromkeys(("bohman", "bman", "bmn"), _bohman),
    **dict.fromkeys(("parzen", "parz", "par"), _parzen),
    **dict.fromkeys(("cosine", "halfcosine"), _cosine),
    **dict.fromkeys(("lanczos", "sinc"), _lanczos),
    **dict.fromkeys(("tukey", "tuk"), _tukey),
    **dict.fromkeys(("kaiser", "ksr"), _kaiser),
    **dict.fromkeys(("gaussian", "gauss", "gss"), _gaussian),
    **dict.fromkeys(("general_gaussian", "general gaussian", "general gauss", "general_gauss", "ggs"), _general_gaussian),
    **dict.fromkeys(("exponential", "poisson"), _exponential),
    "general_hamming": lambda m, alpha: _cosines(alpha, 1 - alpha)(m),
    **dict.fromkeys(("general_cosine", "general cosine"), lambda m, a: _cosines(*a)(m)),
}
