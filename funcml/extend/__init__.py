"""Primitives and transforms of the user's own.

`Primitive` defines an operation: its type, its derivative, what a batch of it is, and how it is computed. A transform is a rule
for equations (`rewritten`, `rewrite`, `interpret`) or a loop of your own over `jaxpr.eqns`.

    Jaxpr(invars, eqns, outs)          a program, always closed; `funcml.make_jaxpr` records one
    Eqn(primitive, invars, outvars, params, source)
    Var(aval), Literal(value, aval)    what stands in equations

The notebooks `2_a_primitive_and_its_kernel` and `3_a_transform_in_one_file` are tutorials.
"""

from funcml.control_flow.lanes import LoopedBatchWarning
from funcml.core.avals import ShapedArray
from funcml.core.ir import Eqn, Jaxpr, Literal, Var, sub_programs
from funcml.core.linear import UndefinedPrimal, is_undefined
from funcml.core.tracing import eval_jaxpr
from funcml.extend import core
from funcml.extend.passes import all_eqns, bind_eqn, interpret, jaxpr_as_fun, rewrite, rewritten
from funcml.extend.primitive import Primitive
from funcml.inspection import make_jaxpr
from funcml.lowering.emit import tensor_type

__all__ = [
    "Eqn",
    "Jaxpr",
    "Literal",
    "LoopedBatchWarning",
    "Primitive",
    "ShapedArray",
    "UndefinedPrimal",
    "Var",
    "all_eqns",
    "bind_eqn",
    "core",
    "eval_jaxpr",
    "interpret",
    "is_undefined",
    "jaxpr_as_fun",
    "make_jaxpr",
    "rewrite",
    "rewritten",
    "sub_programs",
    "tensor_type",
]
