"""funcml: functional transformations of numerical Python functions.

A function is recorded once as a small typed program, which `grad`, `vmap` and their like rewrite and which XLA runs.
"""

from funcml import (
    ad_checkpoint,
    custom_batching,
    custom_derivatives,
    debug,
    dtypes,
    errors,
    extend,
    ffi,
    image,
    lax,
    nn,
    numpy,
    ops,
    optax,
    random,
    scipy,
    sharding,
    sparsity,
    tree,
    tree_util,
)
from funcml.callbacks import effects_barrier, io_callback, pure_callback
from funcml.compilation import clear_caches, jit
from funcml.core.config import config, debug_infs, debug_nans, default_prng_impl, enable_x64
from funcml.core.values import Array
from funcml.custom_derivatives import closure_convert, custom_gradient, fwd_and_bwd
from funcml.derivatives import (
    grad,
    jvp,
    linear_transpose,
    linearize,
    value_and_grad,
    vjp,
)
from funcml.inspection import disable_jit, ensure_compile_time_eval, eval_shape, make_jaxpr, named_call, named_scope
from funcml.jacobians import hessian, jacfwd, jacobian, jacrev
from funcml.placement import (
    block_until_ready,
    default_backend,
    device_count,
    device_get,
    device_put,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
)
from funcml.shape_dtype import ShapeDtypeStruct
from funcml.sharding import make_mesh
from funcml.sparsity import sparse_hessian, sparse_jacobian
from funcml.transforms.custom_jvp import custom_jvp
from funcml.transforms.custom_vjp import custom_vjp
from funcml.transforms.policies import checkpoint_policies
from funcml.transforms.remat import checkpoint, checkpoint_name, remat
from funcml.vectorise import vmap

float0 = dtypes.float0

__version__ = "0.1.0"

__all__ = [
    "Array",
    "ShapeDtypeStruct",
    "ad_checkpoint",
    "block_until_ready",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "clear_caches",
    "closure_convert",
    "config",
    "custom_batching",
    "custom_derivatives",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "debug",
    "debug_infs",
    "debug_nans",
    "default_backend",
    "default_prng_impl",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "dtypes",
    "effects_barrier",
    "enable_x64",
    "ensure_compile_time_eval",
    "errors",
    "eval_shape",
    "extend",
    "ffi",
    "float0",
    "fwd_and_bwd",
    "grad",
    "hessian",
    "image",
    "io_callback",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linear_transpose",
    "linearize",
    "local_device_count",
    "local_devices",
    "make_jaxpr",
    "make_mesh",
    "named_call",
    "named_scope",
    "nn",
    "numpy",
    "ops",
    "optax",
    "process_count",
    "process_index",
    "pure_callback",
    "random",
    "remat",
    "scipy",
    "sharding",
    "sparse_hessian",
    "sparse_jacobian",
    "sparsity",
    "tree",
    "tree_util",
    "value_and_grad",
    "vjp",
    "vmap",
]
