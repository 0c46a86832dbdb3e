"""Small libraries that show how things are written with funcml; `funcml.optax` is for work."""

from funcml.example_libraries import optimizers

__all__ = ["optimizers"]
