"""Other people's JAX code on funcml values."""

from funcml.interop.from_jax import from_jax
from funcml.interop.translations import UntranslatedPrimitiveError

__all__ = ["UntranslatedPrimitiveError", "from_jax"]
