"""Collectives where no transform has bound their axis: the error that says so. Those under `vmap` are gone before lowering."""

from __future__ import annotations

from funcml.lowering.emit import lowers
from funcml.primitives import collectives


@lowers(
    collectives.psum_p,
    collectives.pmax_p,
    collectives.pmin_p,
    collectives.all_gather_p,
    collectives.reduce_scatter_p,
    collectives.exchange_p,
    collectives.ppermute_p,
    collectives.axis_index_p,
)
def _unbound(emit, eqn, operands):
    names = ", ".join(map(repr, eqn.params["axis_names"]))
    raise NameError(
        f"{eqn.primitive.name} over the axis {names} was asked for its value, which differs from example to example and is known "
        "only when the mapped function runs. Keep it an array: `jnp.where` or `lax.cond` instead of `if`."
    )
