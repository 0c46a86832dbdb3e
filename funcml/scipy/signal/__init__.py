"""Signals: convolution, trends, spectra."""

from funcml.scipy.signal.convolving import convolve, convolve2d, correlate, correlate2d, fftconvolve
from funcml.scipy.signal.inversion import istft
from funcml.scipy.signal.spectra import csd, stft, welch
from funcml.scipy.signal.trends import detrend
from funcml.scipy.signal.windows import get_window

__all__ = [
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "csd",
    "detrend",
    "fftconvolve",
    "get_window",
    "istft",
    "stft",
    "welch",
]
