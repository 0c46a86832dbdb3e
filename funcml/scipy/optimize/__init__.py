"""Minimisation of functions of several variables."""

from funcml.scipy.optimize.minimization import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]
