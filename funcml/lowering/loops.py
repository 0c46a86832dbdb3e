"""A loop of a known number of steps, for lowerings that are written with primitives.

    repeat : (steps, body, carry) -> carry          body(step, *carry) -> carry

It has the forward derivative that lowerings need of it, and a batch rule, and nothing more: a function that uses it has a
derivative rule of its own.
"""

from __future__ import annotations

from funcml.core.avals import shaped
from funcml.core.ir import Primitive, intern
from funcml.core.tracing import aval_of, bind, trace
from funcml.dtypes import int32
from funcml.lowering.emit import lowers, tensor_type
from funcml.primitives import elementwise as ew
from funcml.primitives.axes import broadcast_in_dim
from funcml.primitives.batching import place_axis, spread_at_front
from funcml.primitives.tangents import instantiate, zero_tangent
from funcml.transforms.jvp import evaluate_jvp
from funcml.transforms.vmap import evaluate_vmap

__all__ = ["repeat"]

_INDEX = shaped((), int32)


def repeat(steps: int, body, carry, unroll: int = 4) -> list:
    """`carry` after body(0, *carry), body(1, *carry), ...; the step comes as a float of the type of the first of `carry`."""
    like = aval_of(carry[0])

    def block(start, *values):
        for k in range(unroll):
            step = broadcast_in_dim(ew.convert(ew.add(start, k), like.dtype), like.shape)
            values = body(step, *values)
        return values

    if steps % unroll:
        raise ValueError(f"repeat: {steps} steps are no multiple of {unroll}")
    return _loop(steps, unroll, block, carry)


def _loop(steps, stride, body, carry) -> list:
    jaxpr, captured = trace(lambda i, *xs: list(body(i, *xs)), [_INDEX, *map(aval_of, carry)], "repeat")
    params = {"jaxpr": intern(jaxpr), "steps": steps, "stride": stride, "constants": len(captured)}
    return bind(repeat_p, [*captured, *carry], params)


class Repeat(Primitive):
    """repeat[jaxpr, steps, stride, constants] (constants..., carry...): the jaxpr takes (constants..., step, carry...)."""

    multiple_results = True
    holds_jaxpr = True

    def type_rule(self, *avals, jaxpr, steps, stride, constants):
        return tuple(avals[constants:])

    # the loop over values and tangents: c' = T(body)(c, c')
    def jvp_rule(self, primals, tangents, *, jaxpr, steps, stride, constants):
        fixed, fixed_tangents = primals[:constants], tangents[:constants]
        n = len(primals) - constants

        def body(step, *values):
            given = [*fixed_tangents, zero_tangent(step), *values[n:]]
            outs, out_tangents = evaluate_jvp(jaxpr, [*fixed, step, *values[:n]], given)
            return [*outs, *map(instantiate, out_tangents)]

        carry = [*primals[constants:], *map(instantiate, tangents[constants:])]
        outs = _loop(steps, stride, body, carry)
        return outs[:n], outs[n:]

    def batch_rule(self, axis, operands, dims, *, jaxpr, steps, stride, constants):
        fixed, fixed_dims = operands[:constants], dims[:constants]
        carry = [spread_at_front(axis, x, d) for x, d in zip(operands[constants:], dims[constants:], strict=True)]

        def body(step, *values):
            outs, found = evaluate_vmap(jaxpr, axis, [*fixed, step, *values], [*fixed_dims, None, *[0] * len(values)])
            return [place_axis(axis, x, d, 0) for x, d in zip(outs, found, strict=True)]

        return _loop(steps, stride, body, carry), [0] * len(carry)


repeat_p = Repeat("repeat")


@lowers(repeat_p)
def _repeat(emit, eqn, operands):
    steps, stride, constants = (eqn.params[k] for k in ("steps", "stride", "constants"))
    index = tensor_type(_INDEX)
    types = [index, *[tensor_type(a.aval) for a in eqn.invars]]
    start = emit.constant(0, _INDEX)
    names = [emit.fresh() for _ in types]
    counter, fixed, carry = names[0], names[1 : constants + 1], names[constants + 1 :]

    def condition(emit):
        end = emit.constant(steps, _INDEX)
        more = emit.op(f"stablehlo.compare LT, {counter}, {end}, SIGNED : ({index}, {index}) -> tensor<i1>")
        emit.lines.append(f"stablehlo.return {more} : tensor<i1>")

    def body(emit):
        following = emit.op(f"stablehlo.add {counter}, {emit.constant(stride, _INDEX)} : {index}")
        outs = emit.call(eqn.params["jaxpr"], [*fixed, counter, *carry], "steps")
        emit.lines.append(f"stablehlo.return {', '.join([following, *fixed, *outs])} : {', '.join(types)}")

    given = ", ".join(f"{n} = {x}" for n, x in zip(names, [start, *operands], strict=True))
    text = f"stablehlo.while({given}) : {', '.join(types)}\ncond {{\n{emit.region(condition)}\n}} do {{\n{emit.region(body)}\n}}"
    return emit.ops(text, len(types))[constants + 1 :]
