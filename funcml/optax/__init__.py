"""optax on funcml arrays: every public name of the package `optax`, adopted.

    import funcml
    tx = funcml.optax.adamw(1e-3)
    state = tx.init(params)
    updates, state = tx.update(grads, state, params)
    params = funcml.optax.apply_updates(params, updates)

optax's documentation holds. Transformations, losses, schedules, projections and tree functions take arrays of funcml, eagerly and
inside `jit`, `grad` and `vmap`; learning rates and other arguments may be traced. Outside a trace a call is one compiled program.
Classes, states and types are optax's own, so that states are known to every library that knows optax.

What is built with the plain package optax is made to work by `funcml.interop.from_jax(tx.update)`. The plain
`optax.apply_updates` gives arrays of JAX, and only outside a trace: use that of this module.

Callables that optax calls on arrays (schedules, masks, `obj_fn`) are run by JAX: they are written with Python's operators or
jax.numpy. Branches and loops in optax are branches and loops of funcml.
"""

from __future__ import annotations

import functools

from funcml.interop.namespace import Namespace

__all__: list[str] = []


@functools.cache
def _names() -> Namespace:
    import optax

    return Namespace(optax, __name__)


def __getattr__(name: str):
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(_names(), name)
    except AttributeError:
        raise AttributeError(f"optax has no public name {name!r}") from None


def __dir__() -> list[str]:
    return dir(_names())
