"""Clusters of points."""

from funcml.scipy.cluster import vq

__all__ = ["vq"]
