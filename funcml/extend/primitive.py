"""`Primitive`: an operation of the user's own, its rules and how it is computed, in one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcml.arguments import as_traced, as_value, describe_value, is_array_like
from funcml.callbacks import io_callback, pure_callback
from funcml.control_flow.lanes import looped
from funcml.core import ir
from funcml.core.avals import ShapedArray, shaped
from funcml.core.errors import user_facing
from funcml.core.ir import MissingRuleError
from funcml.core.linear import Zero
from funcml.core.tracing import aval_of, bind, trace
from funcml.lowering.compositions import composed
from funcml.lowering.emit import lowers
from funcml.primitives.tangents import instantiate, tangent_aval
from funcml.shape_dtype import ShapeDtypeStruct
from funcml.transforms.call import call_p

__all__ = ["Primitive"]


class Primitive(ir.Primitive):
    """An operation that the transforms do not see into, with the rules that tell them what they must know.

    Each rule is an argument, or set by the decorator `def_...` of its name. `params` are the keyword arguments of `bind`; they
    are known when the program is written, and hashable.

        type_rule   (*avals, **params) -> aval, or what has `shape` and `dtype`
        program     (*arrays, **params) -> array        a function of funcml; rules that are missing are taken from it
        impl        (*arrays, **params) -> array        a function of NumPy arrays, called on the host; needs a type_rule
        lowering    (emit, eqn, operands) -> name       text of StableHLO: `emit.op(text)`; see also `ffi.ffi_lowering`
        jvp         (primals, tangents, **params) -> (out, tangent)
        transpose   (ct, *operands, **params) -> a cotangent (or None) for each operand; `is_undefined(operand)`: a linear one
        batch       (size, operands, dims, **params) -> (out, dim)     a dim is the place of the mapped axis, or None

    One of `program`, `impl` and `lowering` says how it is computed; the first that is there of lowering, program, impl. With
    `multiple_results` every rule gives and takes tuples of results in the place of one. Tangents and cotangents come as arrays,
    zeros where there is none; an operand that has no derivative (integers) has the tangent None. Without a rule for batches
    the examples are computed one after the other, with a warning; other missing rules raise an error that says what to write.
    With `has_effect` it is computed although its results are not used.

    >>> import funcml, funcml.numpy as jnp
    >>> from funcml import extend
    >>> cube = extend.Primitive(
    ...     "cube", type_rule=lambda x: x, impl=lambda x: x * x * x,
    ...     jvp=lambda primals, tangents: (cube.bind(*primals), 3.0 * primals[0] ** 2 * tangents[0]),
    ... )
    >>> float(cube.bind(2.0)), float(funcml.grad(cube.bind)(2.0))
    (8.0, 12.0)
    >>> print(funcml.make_jaxpr(cube.bind)(2.0))
    { lambda a:f32[]. let
        b:f32[] = cube a
      in (b,) }
    """

    def __init__(
        self, name: str, *, multiple_results: bool = False, has_effect: bool = False, type_rule: Callable | None = None,
        program: Callable | None = None, impl: Callable | None = None, lowering: Callable | None = None,
        jvp: Callable | None = None, transpose: Callable | None = None, batch: Callable | None = None,
    ):  # fmt: skip
        super().__init__(name)
        self.multiple_results = multiple_results
        self.has_effect = has_effect
        given = {
            "type_rule": type_rule, "program": program, "impl": impl, "lowering": lowering,
            "jvp": jvp, "transpose": transpose, "batch": batch,
        }  # fmt: skip
        self._rules: dict[str, Callable] = {key: rule for key, rule in given.items() if rule is not None}
        for key, rule in self._rules.items():
            self._check_rule(key, rule)
        lowers(self)(self._lower)

    # -- setting rules

    def _check_rule(self, key: str, rule: Any) -> None:
        if not callable(rule):
            raise TypeError(f"the primitive `{self.name}`: {key} must be a function, got {rule!r}")

    def _define(self, key: str, rule: Callable) -> Callable:
        self._check_rule(key, rule)
        self._rules[key] = rule
        self.types.clear()
        return rule

    def def_abstract_eval(self, rule: Callable) -> Callable:
        """Sets `type_rule`."""
        return self._define("type_rule", rule)

    def def_program(self, rule: Callable) -> Callable:
        """Sets `program`."""
        return self._define("program", rule)

    def def_impl(self, rule: Callable) -> Callable:
        """Sets `impl`."""
        return self._define("impl", rule)

    def def_lowering(self, rule: Callable) -> Callable:
        """Sets `lowering`."""
        return self._define("lowering", rule)

    def def_jvp(self, rule: Callable) -> Callable:
        """Sets `jvp`."""
        return self._define("jvp", rule)

    def def_transpose(self, rule: Callable) -> Callable:
        """Sets `transpose`."""
        return self._define("transpose", rule)

    def def_batch(self, rule: Callable) -> Callable:
        """Sets `batch`."""
        return self._define("batch", rule)

    # -- applying it

    @user_facing
    def bind(self, *operands: Any, **params: Any) -> Any:
        """The operation on arrays: computed at once, or recorded where a program is being recorded.

        Gives a list for a primitive of multiple results.
        """
        for i, x in enumerate(operands):
            if not is_array_like(x):
                raise TypeError(
                    f"{self.name}.bind: operand {i} is {x!r} of type {type(x).__name__}, not an array; what is known when the "
                    "program is written is a parameter, passed by keyword"
                )
        for name, value in params.items():
            try:
                hash(value)
            except TypeError:
                raise TypeError(
                    f"{self.name}.bind: the parameter {name} is {value!r}, which is not hashable; give a tuple for a list, and "
                    "pass arrays as operands"
                ) from None
        return bind(self, [as_value(x) for x in operands], dict(sorted(params.items())))

    # -- the rules that the transforms ask for

    def type_rule(self, *avals, **params):
        rule = self._rules.get("type_rule")
        if rule is None:
            if "program" in self._rules:
                found = self._program_of(avals, params).out_avals
                return found if self.multiple_results else found[0]
            raise self._missing("type_rule", "recording it", "lambda *avals, **params: avals[0]", "def_abstract_eval")
        found = rule(*avals, **params)
        return tuple([self._aval(x) for x in self._several(found, "type_rule")]) if self.multiple_results else self._aval(found)

    def jvp_rule(self, primals, tangents, **params):
        rule = self._rules.get("jvp")
        if rule is None:
            if "program" in self._rules:
                return self._single(call_p.jvp_rule(primals, tangents, **self._as_call(primals, params)))
            example = "lambda primals, tangents, **params: (out, out_tangent)"
            raise self._missing("jvp", "differentiation", example, "def_jvp")
        given = [None if type(t) is Zero and not _moves(x) else instantiate(t) for x, t in zip(primals, tangents, strict=True)]
        outs, out_tangents = self._pair(rule([as_traced(x) for x in primals], given, **params), "jvp", "(out, tangent)")
        if not self.multiple_results:
            return outs, _or_zero(out_tangents, outs)
        outs, out_tangents = self._several(outs, "jvp"), self._several(out_tangents, "jvp")
        return list(outs), [_or_zero(t, x) for t, x in zip(out_tangents, outs, strict=True)]

    def transpose_rule(self, cts, *operands, **params):
        rule = self._rules.get("transpose")
        if rule is None:
            example = "lambda ct, *operands, **params: [a cotangent or None for each operand]"
            why = "reverse-mode differentiation of an equation that is linear in unknown operands"
            raise self._missing("transpose", why, example, "def_transpose")
        given = [instantiate(ct) for ct in cts] if self.multiple_results else instantiate(cts)
        found = rule(given, *map(as_traced, operands), **params)
        if not isinstance(found, tuple | list) or len(found) != len(operands):
            raise TypeError(
                f"the transpose rule of `{self.name}` must give a tuple or list with a cotangent, or None, for each of its "
                f"{len(operands)} operands, got {found!r}"
            )
        return list(found)

    def batch_rule(self, axis, operands, dims, **params):
        rule = self._rules.get("batch")
        if rule is not None:
            found = rule(axis.size, [as_traced(x) for x in operands], list(dims), **params)
            outs, out_dims = self._pair(found, "batch", "(out, dim)")
            return (list(outs), list(out_dims)) if self.multiple_results else (outs, out_dims)
        if "program" in self._rules:
            return self._single(call_p.batch_rule(axis, operands, dims, **self._as_call(operands, params, axis, dims)))
        remedy = (
            "write `@primitive.def_batch` above a function `(size, operands, dims, **params) -> (out, dim)`, where dims[i] is "
            "the axis of operand i that holds the examples, or None"
        )
        return self._single(looped(axis, self, operands, dims, params, f"the primitive `{self.name}`", remedy))

    # -- how it is computed

    def _lower(self, emit, eqn, operands):
        if "lowering" in self._rules:
            return self._rules["lowering"](emit, eqn, operands)
        avals = [a.aval for a in eqn.invars]
        if "program" in self._rules:
            return emit.program(self._program_of(avals, eqn.params), operands)
        if "impl" not in self._rules:
            raise MissingRuleError(
                f"the primitive `{self.name}` does not say how it is computed; give it `program=` (a function of funcml), "
                "`impl=` (a function of NumPy arrays), or `lowering=` (text of StableHLO, or `ffi.ffi_lowering` for a kernel)"
            )
        outs = [ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in eqn.outvars]
        return composed(emit, lambda *xs: self._on_host(xs, outs, eqn.params), operands, avals)

    def _on_host(self, operands, outs, params) -> tuple:
        def compute(*arrays):
            found = self._rules["impl"](*arrays, **params)
            return tuple(found) if self.multiple_results else (found,)

        return (io_callback if self.has_effect else pure_callback)(compute, tuple(outs), *operands)

    def _program_of(self, avals: Sequence[ShapedArray], params: dict) -> ir.Jaxpr:
        """The program of `program` for operands of these types."""

        def run(*xs):
            found = self._rules["program"](*xs, **params)
            return [as_value(x) for x in (found if self.multiple_results else (found,))]

        jaxpr, captured = trace(run, list(avals), self.name)
        if captured:
            shown = ", ".join(str(aval_of(x)) for x in captured)
            raise TypeError(
                f"the program of the primitive `{self.name}` closes over arrays ({shown}), and programs hold no arrays; pass "
                "them as operands"
            )
        return ir.intern(jaxpr)

    def _as_call(self, operands, params: dict, axis=None, dims=None) -> dict:
        """The parameters of a call of the program, for these operands or examples of them."""
        avals = [aval_of(x) for x in operands]
        if dims is not None:
            avals = [
                a if d is None else a.update(shape=(*a.shape[:d], *a.shape[d + 1 :])) for a, d in zip(avals, dims, strict=True)
            ]
        return {"jaxpr": self._program_of(avals, params), "name": self.name}

    # -- what rules gave

    def _missing(self, rule: str, asked_by: str, example: str, decorator: str) -> MissingRuleError:
        return MissingRuleError(
            f"the primitive `{self.name}` has no {rule}, which {asked_by} needs; write "
            f"`Primitive(\"{self.name}\", {rule}={example})`, or `@{decorator}` above such a function"
        )

    def _pair(self, found, rule: str, form: str) -> tuple:
        if not isinstance(found, tuple | list) or len(found) != 2:
            raise TypeError(f"the {rule} rule of `{self.name}` must give a pair {form}, got {found!r}")
        return tuple(found)

    def _several(self, found, rule: str):
        if not isinstance(found, tuple | list):
            raise TypeError(f"the {rule} rule of `{self.name}` must give tuples, for it has multiple results; got {found!r}")
        return found

    def _single(self, pair: tuple) -> tuple:
        """A pair of lists, of what a call gives; of their single elements for a primitive of one result."""
        return pair if self.multiple_results else tuple([x[0] for x in pair])

    def _aval(self, found) -> ShapedArray:
        if isinstance(found, ShapedArray):
            return found
        if not hasattr(found, "shape") or not hasattr(found, "dtype"):
            raise TypeError(
                f"the type rule of `{self.name}` must give what has a shape and a dtype, such as "
                f"`funcml.ShapeDtypeStruct((2, 3), \"float32\")`, got {found!r} of type {describe_value(found)}"
            )
        return shaped(tuple(found.shape), np.dtype(found.dtype))


def _moves(x) -> bool:
    """Whether a value can have a tangent."""
    aval = aval_of(x)
    return tangent_aval(aval).dtype == aval.dtype


def _or_zero(tangent, out):
    return Zero(tangent_aval(aval_of(out))) if tangent is None else tangent
