"""Geometry of space."""

from funcml.scipy.spatial import transform

__all__ = ["transform"]
