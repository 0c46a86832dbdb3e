"""Linear algebra under SciPy's names. It has no functions yet: `funcml.numpy.linalg` has those of NumPy."""

__all__: list[str] = []
