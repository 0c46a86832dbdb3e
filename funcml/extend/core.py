"""The language of programs under the names of `jax.extend.core`; a program is always closed, so `ClosedJaxpr` is `Jaxpr`."""

from funcml.core.avals import ShapedArray
from funcml.core.ir import Eqn, Jaxpr, Literal, Var
from funcml.core.tracing import eval_jaxpr
from funcml.extend.passes import jaxpr_as_fun
from funcml.extend.primitive import Primitive

ClosedJaxpr = Jaxpr
JaxprEqn = Eqn

__all__ = ["ClosedJaxpr", "Jaxpr", "JaxprEqn", "Literal", "Primitive", "ShapedArray", "Var", "eval_jaxpr", "jaxpr_as_fun"]
