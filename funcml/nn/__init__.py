"""Functions of neural networks: activations, normalisation, initial values of weights."""

from funcml.nn import initializers
from funcml.nn.activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    identity,
    leaky_relu,
    log1mexp,
    log_sigmoid,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    swish,
    tanh,
)
from funcml.nn.attention import dot_product_attention
from funcml.nn.block_scaling import (
    BlockScaleConfig,
    get_scaled_dot_general_config,
    scaled_dot_general,
    scaled_matmul,
)
from funcml.nn.normalization import log_softmax, logmeanexp, logsumexp, one_hot, softmax, standardize

__all__ = [
    # activations
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity", "leaky_relu", "log1mexp",
    "log_sigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softplus", "sparse_plus", "sparse_sigmoid",
    "squareplus", "swish", "tanh",
    # normalisation
    "log_softmax", "logmeanexp", "logsumexp", "one_hot", "softmax", "standardize",
    # products of matrices
    "BlockScaleConfig", "dot_product_attention", "get_scaled_dot_general_config", "scaled_dot_general", "scaled_matmul",
    # initial values
    "initializers",
]
