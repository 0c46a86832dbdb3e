"""Other people's JAX code on funcml values."""
