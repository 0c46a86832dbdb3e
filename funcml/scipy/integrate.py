"""Integrals of sampled functions."""

from funcml.numpy.sampled import trapezoid

__all__ = ["trapezoid"]
