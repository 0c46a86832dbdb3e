"""All lowering rules: importing this module registers them."""

from funcml.lowering import (  # noqa: F401
    rules_axes,
    rules_bits,
    rules_call,
    rules_contraction,
    rules_convolution,
    rules_elementwise,
    rules_fft,
    rules_gather_scatter,
    rules_identities,
    rules_indexing,
    rules_linalg_spectral,
    rules_powers,
    rules_random_bits,
    rules_reductions,
    rules_scatter_apply,
    rules_shaping,
    rules_sorting,
    rules_special,
    rules_transcendental,
)
