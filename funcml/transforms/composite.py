"""`composite`: a program that a backend may know by name, and have an operation of its own for.

To every transform it is a call of its decomposition: derivatives and batches of it are calls, no longer composites.
"""

from __future__ import annotations

from funcml.core.ir import Jaxpr
from funcml.core.tracing import bind
from funcml.transforms.call import Call, call, call_p, split_call

__all__ = ["composite", "composite_p"]


class Composite(Call):
    """composite[jaxpr, name, attributes, version] inputs = the outputs of `jaxpr`; `attributes` is text in the syntax of MLIR."""

    def apply(self, jaxpr: Jaxpr, operands, name: str, **params) -> list:
        return call(jaxpr, operands, name)

    def partial_eval_rule(self, unknown_in, eqn):
        params = {"jaxpr": eqn.params["jaxpr"], "name": eqn.params["name"]}
        return split_call(call_p, unknown_in, eqn._replace(primitive=call_p, params=params))


composite_p = Composite("composite")


def composite(jaxpr: Jaxpr, operands, name: str, attributes: str, version: int) -> list:
    """The outputs of an interned program, as the operation `name` of this version."""
    params = {"jaxpr": jaxpr, "name": name, "attributes": attributes, "version": version}
    return bind(composite_p, operands, params)
