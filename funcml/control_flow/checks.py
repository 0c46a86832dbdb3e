"""Checks as values: a program with checks becomes one that says which of them failed first.

    check[fault] failed, payload  ->  ()                 an effect, in programs that were not made functional
    checkify_jaxpr : (x -> y)  |->  (x -> code, payloads, y)

The code is -1, or the place of the first failed check among `info`, the `Fault`s of the new program; the payloads are what their
messages show. Programs inside calls, branches and loops are rewritten in the same way, and a loop carries code and payloads.
A check of a batch has a flag for each example, which goes along as the first part of its payload.

A rule of a `custom_jvp` or `custom_vjp` stays in force: differentiated after the rewriting, such a call reports nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from funcml import dtypes, tree
from funcml.control_flow.cond import cond, cond_p
from funcml.control_flow.programs import joined_carry, parts, recorded, uniform
from funcml.control_flow.repeat import repeat, repeat_p
from funcml.control_flow.scan import scan, scan_p
from funcml.control_flow.while_loop import while_loop, while_p
from funcml.core.avals import shaped
from funcml.core.ir import Eqn, Jaxpr, Literal, Primitive, Var, intern
from funcml.core.linear import Zero
from funcml.core.source import describe
from funcml.core.tracing import aval_of, bind, eval_jaxpr, rebind, require_frame, trace
from funcml.primitives import elementwise as ew
from funcml.primitives import gather_scatter as gs
from funcml.primitives.axes import broadcast_in_dim, reduce_or, reshape
from funcml.primitives.batching import spread_at_front
from funcml.primitives.indexing import dynamic_slice, dynamic_slice_p, dynamic_update_slice_p
from funcml.primitives.reductions import argmax
from funcml.primitives.tangents import scalar_of, tangent_aval, zeros
from funcml.transforms.call import Call
from funcml.transforms.custom_call import CustomCall
from funcml.transforms.custom_jvp import CustomJvpCall
from funcml.transforms.rewriting import Rewritten, remembered

__all__ = [
    "DivisionByZeroError",
    "FailedCheckError",
    "Fault",
    "InfError",
    "JaxRuntimeError",
    "MOVES",
    "NaNError",
    "OOBError",
    "bind_check",
    "check_p",
    "checkify_jaxpr",
    "debug_check_p",
]


class JaxRuntimeError(ValueError):
    """A check failed."""


class FailedCheckError(JaxRuntimeError):
    """A check of the user's."""


class NaNError(JaxRuntimeError):
    """An operation gave a NaN."""


class InfError(JaxRuntimeError):
    """An operation gave an infinity."""


class DivisionByZeroError(JaxRuntimeError):
    """A denominator was zero."""


class OOBError(JaxRuntimeError):
    """An index was out of bounds."""


class Fault(NamedTuple):
    """What a check finds: the class of its error, and a message that the payload fills in.

    `avals` are those of the payload; `mapped`: it begins with a flag for each example of a batch, `mapped` axes of them;
    `where` is the user's line, `primitive` the operation whose result was looked at.
    """

    kind: type
    text: str
    treedef: Any = None
    avals: tuple = ()
    mapped: int = 0
    where: str = ""
    primitive: str = ""

    def __str__(self) -> str:
        return repr(self.text)

    def message(self, payload: Sequence[np.ndarray]) -> str:
        """What to say of a check that failed; of each example that did, for one of a batch."""
        if not self.mapped:
            return self._filled(payload)
        flags, *values = payload
        lines = [
            f"at mapped index {', '.join(map(str, at))}: {self._filled([x[tuple(at)] for x in values])}"
            for at in np.argwhere(flags)
        ]
        return "\n".join(lines)

    def _filled(self, values) -> str:
        if self.treedef is None:
            return self.text
        args, kwargs = tree.unflatten(self.treedef, values)
        return self.text.format(*args, **kwargs)


class Check(Primitive):
    """check[fault] failed, payload: see the module."""

    multiple_results = True
    has_effect = True

    def type_rule(self, failed, *payload, fault):
        if failed.dtype != dtypes.bool_:
            raise TypeError(f"check expects a bool, got {failed}")
        return ()

    def jvp_rule(self, primals, tangents, **params):
        bind(self, primals, params)
        return [], []

    def transpose_rule(self, cts, *operands, **params):
        return [None] * len(operands)

    def batch_rule(self, axis, operands, dims, **params):
        bind(self, [spread_at_front(axis, x, d) for x, d in zip(operands, dims, strict=True)], params)
        return [], []


check_p = Check("check")
debug_check_p = Check("debug_check")


def bind_check(primitive: Check, failed, fault: Fault, payload: Sequence) -> None:
    """Leaves a check in the program that is being traced."""
    bind(primitive, [failed, *payload], {"fault": fault})


# ---- the pass ------------------------------------------------------------------------------------------------------

_CODE = shaped((), dtypes.int32)
_NONE = np.int32(-1)


class _Findings:
    """The checks of a program so far: their faults and payloads, and the code of the first that failed."""

    def __init__(self):
        self.faults: list[Fault] = []
        self.payloads: list = []
        self.code: Any = None

    def add(self, faults: Sequence[Fault], code, payloads: Sequence) -> None:
        """More checks, after the others; `code` is a place among `faults`."""
        offset = len(self.faults)
        if self.code is not None:
            shifted = ew.select(ew.ge(code, np.int32(0)), ew.add(code, np.int32(offset)), _scalar(_NONE))
            code = ew.select(ew.ge(self.code, np.int32(0)), self.code, shifted)
        self.code = code
        self.faults += faults
        self.payloads += payloads

    def one(self, failed, fault: Fault, payload: Sequence = ()) -> None:
        """One check."""
        code = ew.select(failed, _scalar(np.int32(0)), _scalar(_NONE))
        fault = fault._replace(avals=tuple([aval_of(x).strong() for x in payload]))
        self.add([fault], code, payload)

    def results(self) -> list:
        """Code and payloads; nothing if there are no checks."""
        return [self.code, *self.payloads] if self.faults else []


def _scalar(value):
    return broadcast_in_dim(value, ())


@remembered
def checkify_jaxpr(jaxpr: Jaxpr, errors: frozenset) -> Rewritten:
    """The program with its checks as results; `errors` are the classes of errors to look for.

    in:   captured..., its inputs
    out:  (code, payloads..., if there is any check), its outputs;   info: the faults
    """
    found = _Findings()

    def run(*inputs):
        outs = _evaluate(jaxpr, errors, inputs, found)
        return [*found.results(), *outs]

    new, captured = trace(run, jaxpr.in_avals, "checkify")
    return Rewritten(new, captured, tuple(found.faults))


def _evaluate(jaxpr: Jaxpr, errors: frozenset, values: Sequence, found: _Findings) -> list:
    frame = require_frame()
    outer_stamp = frame.stamp
    env: dict[Var, Any] = dict(zip(jaxpr.invars, values, strict=True))
    for eqn in jaxpr.eqns:
        operands = [env[a] if type(a) is Var else a for a in eqn.invars]
        frame.stamp = outer_stamp or eqn.source
        for v, out in zip(eqn.outvars, _checked_equation(eqn, operands, errors, found), strict=True):
            env[v] = out
    frame.stamp = outer_stamp
    return [env[a] if type(a) is Var else a for a in jaxpr.outs]


def _checked_equation(eqn: Eqn, operands: Sequence, errors: frozenset, found: _Findings) -> Sequence:
    """The results of an equation; what can be wrong with it is added to what was found."""
    primitive = eqn.primitive
    if isinstance(primitive, Check):
        if FailedCheckError in errors:
            _user_check(eqn, operands, found)
        return []
    rule = _custom if isinstance(primitive, CustomCall) else _call if isinstance(primitive, Call) else _HOLDERS.get(primitive)
    if rule is not None:
        made = rule(eqn, operands, errors)
        if made is None:
            return rebind(eqn, operands)
        faults, outs = made
        n = len(outs) - len(eqn.outvars)
        found.add(faults, outs[0], outs[1:n])
        return outs[n:]
    _operand_checks(eqn, operands, errors, found)
    outs = rebind(eqn, operands)
    if primitive.name not in MOVES:
        _result_checks(eqn, outs, errors, found)
    return outs


def _user_check(eqn: Eqn, operands: Sequence, found: _Findings) -> None:
    failed, *payload = operands
    fault, ndim = eqn.params["fault"], aval_of(operands[0]).ndim
    if not fault.where:
        fault = fault._replace(where=describe(eqn.source))
    if ndim:
        fault, payload = fault._replace(mapped=ndim), [failed, *payload]
    found.one(_any(failed), fault, payload)


def _any(flags):
    ndim = aval_of(flags).ndim
    return reduce_or(flags, tuple(range(ndim))) if ndim else flags


#: operations that give elements of their operands, or what the user wrote
MOVES = frozenset((
    "broadcast_in_dim", "reshape", "transpose", "slice", "dynamic_slice", "dynamic_update_slice", "concatenate", "pad", "rev",
    "select_n", "gather", "scatter", "copy", "name", "convert_element_type", "convert", "optimization_barrier", "expand_dims",
    "squeeze", "sort", "neg", "real", "imag", "stop_gradient", "reduce_precision", "bitcast_convert", "split", "abs",
))  # fmt: skip


def _result_checks(eqn: Eqn, outs: Sequence, errors: frozenset, found: _Findings) -> None:
    """The checks of what an equation gives."""
    name = eqn.primitive.name
    for error, word, holds in ((NaNError, "nan", _is_nan), (InfError, "inf", _is_inf)):
        if error in errors:
            fault = Fault(error, f"{word} generated by primitive: {name}.", where=describe(eqn.source), primitive=name)
            for failed in [_any(holds(x)) for x in outs if dtypes.is_inexact(aval_of(x).dtype)]:
                found.one(failed, fault)


def _is_nan(x):
    return ew.ne(x, x)


def _is_inf(x):
    size = ew.abs(x)
    return ew.eq(size, scalar_of(aval_of(size), np.inf))


def _operand_checks(eqn: Eqn, operands: Sequence, errors: frozenset, found: _Findings) -> None:
    """The checks of what an equation is given."""
    primitive, params = eqn.primitive, eqn.params
    if primitive.name == "div" and DivisionByZeroError in errors:
        zero = np.zeros((), aval_of(operands[1]).dtype)[()]
        fault = Fault(DivisionByZeroError, "division by zero", where=describe(eqn.source))
        found.one(_any(ew.eq(_array(operands[1]), zero)), fault)
    if OOBError not in errors:
        return
    shape = aval_of(operands[0]).shape if operands else ()
    if primitive is dynamic_slice_p:
        _starts_check(eqn, shape, params["slice_sizes"], operands[1:], found)
    elif primitive is dynamic_update_slice_p:
        _starts_check(eqn, shape, aval_of(operands[1]).shape, operands[2:], found)
    elif primitive is gs.gather_p:
        _rows_check(eqn, shape, params["slice_sizes"], params["dimension_numbers"].start_index_map, operands[1], found)
    elif isinstance(primitive, gs.Scatter):
        d = params["dimension_numbers"]
        sizes = gs.window_sizes(len(shape), aval_of(operands[2]).shape, d)
        _rows_check(eqn, shape, sizes, d.scatter_dims_to_operand_dims, operands[1], found)


def _array(x):
    return broadcast_in_dim(x, aval_of(x).shape) if not aval_of(x).shape else x


def _starts_check(eqn: Eqn, shape, sizes, starts: Sequence, found: _Findings) -> None:
    """Windows: 0 <= start <= length - size along each axis."""
    for axis, (start, length, size) in enumerate(zip(starts, shape, sizes, strict=True)):
        if type(start) is not Literal or not 0 <= start.value <= length - size:
            _bounds_check(eqn, shape, axis, length - size, start, found)


def _rows_check(eqn: Eqn, shape, sizes, axes: Sequence[int], indices, found: _Findings) -> None:
    """Windows that start at the rows of `indices`, whose component k is along axis axes[k]."""
    rows = aval_of(indices).shape[:-1]
    for k, axis in enumerate(axes):
        at = tuple([0] * len(rows))
        component = dynamic_slice(indices, (*at, k), (*rows, 1))
        if math.prod(rows):
            _bounds_check(eqn, shape, axis, shape[axis] - sizes[axis], reshape(component, (math.prod(rows),)), found)


def _bounds_check(eqn: Eqn, shape, axis: int, last: int, index, found: _Findings) -> None:
    """0 <= index <= last, for all of a vector or one; the message shows the first that is wrong."""
    dtype = gs.index_dtype(aval_of(index))
    index = _array(ew.convert(index, dtype))
    wrong = ew.or_(ew.lt(index, dtype.type(0)), ew.gt(index, dtype.type(last)))
    shown = index
    if aval_of(index).ndim:
        shown = reshape(dynamic_slice(index, (argmax(wrong, 0),), (1,)), ())
    text = (
        f"out-of-bounds indexing for array of shape {tuple(shape)}: index {{}} is out of bounds for axis {axis} with size "
        f"{shape[axis]}."
    )
    treedef = tree.flatten(((0,), {}))[1]
    found.one(_any(wrong), Fault(OOBError, text, treedef, where=describe(eqn.source)), [shown])


# ---- programs inside: each rule gives (faults, [code, payloads..., results...]), or None where nothing is checked ------


def _call(eqn: Eqn, operands, errors):
    primitive, params = eqn.primitive, dict(eqn.params)
    assert isinstance(primitive, Call)
    new, captured, faults = checkify_jaxpr(params.pop("jaxpr"), errors)
    return (faults, primitive.apply(new, [*captured, *operands], **params)) if faults else None


def _nothing_found(faults: Sequence[Fault]) -> list:
    return [_scalar(_NONE), *[zeros(a) for f in faults for a in f.avals]]


def _state_avals(faults: Sequence[Fault]) -> list:
    return [_CODE, *[a for f in faults for a in f.avals]] if faults else []


def _first(faults: Sequence[Fault], before: Sequence, after: Sequence) -> list:
    """Of two states of the same checks the first in which one failed."""
    failed = ew.ge(before[0], np.int32(0))
    return [ew.select(_spread(failed, a), a, b) for a, b in zip(before, after, strict=True)]


def _spread(flag, like):
    shape = aval_of(like).shape
    return broadcast_in_dim(flag, shape) if shape else flag


def _cond(eqn: Eqn, operands, errors):
    made = [checkify_jaxpr(b, errors) for b in eqn.params["branches"]]
    faults = [f for m in made for f in m.info]
    if not faults:
        return None
    branches = []
    offset = 0
    for m in made:
        branches.append((_branch(m, faults, offset), m.captured))
        offset += len(m.info)
    new, captured = uniform(branches)
    return faults, cond(operands[0], new, [*captured, *operands[1:]])


def _branch(made: Rewritten, faults: Sequence[Fault], offset: int) -> Jaxpr:
    """A branch that gives code and payloads of the checks of all branches; its own begin at `offset`."""
    own = len(made.info)
    n = len(_state_avals(made.info))

    def run(*values):
        outs = eval_jaxpr(made.jaxpr, values)
        before, after = _nothing_found(faults[:offset]), _nothing_found(faults[offset + own :])
        if not own:
            return [*_nothing_found(faults), *outs]
        code = ew.select(ew.ge(outs[0], np.int32(0)), ew.add(outs[0], np.int32(offset)), _scalar(_NONE))
        return [code, *before[1:], *outs[1:n], *after[1:], *outs[n:]]

    return recorded(run, made.jaxpr.in_avals, "checked branch")[0]


def _step(made: Rewritten, consts: int) -> Jaxpr:
    """A step with code and payloads in front of its carry."""
    state, n = _state_avals(made.info), len(made.captured) + consts
    avals = made.jaxpr.in_avals

    def run(*values):
        held, before, rest = parts(values, n, len(state))
        after, outs = parts(eval_jaxpr(made.jaxpr, [*held, *rest]), len(state))
        return [*_first(made.info, before, after), *outs]

    return recorded(run, [*avals[:n], *state, *avals[n:]], "checked step")[0]


def _scan(eqn: Eqn, operands, errors):
    params = dict(eqn.params)
    n_consts, n_carry = params.pop("n_consts"), params.pop("n_carry")
    made = checkify_jaxpr(params.pop("jaxpr"), errors)
    if not made.info:
        return None
    consts, carry, xs = parts(operands, n_consts, n_carry)
    body = _step(made, n_consts)
    return made.info, scan(body, [*made.captured, *consts], [*_nothing_found(made.info), *carry], xs, **params)


def _repeat(eqn: Eqn, operands, errors):
    count, *values = operands
    n_consts = eqn.params["n_consts"]
    made = checkify_jaxpr(eqn.params["jaxpr"], errors)
    if not made.info:
        return None
    consts, carry = parts(values, n_consts)
    outs = repeat(count, _step(made, n_consts), [*made.captured, *consts], [*_nothing_found(made.info), *carry])
    return made.info, outs


def _while(eqn: Eqn, operands, errors):
    """The truth of the condition, computed with its checks at the end of each step, stands in front of the carry."""
    cond_jaxpr, body_jaxpr, n_cond, n_body, max_steps = eqn.params.values()
    test, body = checkify_jaxpr(cond_jaxpr, errors), checkify_jaxpr(body_jaxpr, errors)
    faults = [*test.info, *body.info]
    if not faults:
        return None
    of_test, of_body, carry = parts(operands, n_cond, n_body)
    of_test, of_body = [*test.captured, *of_test], [*body.captured, *of_body]
    state = _state_avals(faults)

    def tested(values, before):
        found, (going,) = parts(eval_jaxpr(test.jaxpr, values), len(_state_avals(test.info)))
        after = _nothing_found(faults)
        if found:
            after[: len(found)] = found
        return going, _first(faults, before, after)

    def step(*values):
        held, of_body, _, before, carry = parts(values, len(of_test), n_held, 1, len(state))
        found, carry = parts(eval_jaxpr(body.jaxpr, [*of_body, *carry]), len(_state_avals(body.info)))
        if found:
            code = ew.select(ew.ge(found[0], np.int32(0)), ew.add(found[0], np.int32(len(test.info))), _scalar(_NONE))
            before = _first(faults, before, [code, *_nothing_found(test.info)[1:], *found[1:]])
        going, before = tested([*held, *carry], before)
        return [going, *before, *carry]

    n_held = len(of_body)
    going, start = tested([*of_test, *carry], _nothing_found(faults))
    flag = shaped((), dtypes.bool_)
    carry_avals = joined_carry([aval_of(x) for x in carry], body_jaxpr.out_avals)
    avals = [*[aval_of(x) for x in of_test], *body.jaxpr.in_avals[:n_held], flag, *state, *carry_avals]
    new_body, _ = recorded(step, avals, "checked while")
    new_test, _ = recorded(lambda going, *rest: [going], [flag, *state, *carry_avals], "checked while")
    outs = while_loop(new_test, new_body, [], [*of_test, *of_body], [going, *start, *carry], max_steps)
    return faults, outs[1:]


_HOLDERS: dict[Primitive, Callable] = {cond_p: _cond, scan_p: _scan, repeat_p: _repeat, while_p: _while}


# ---- functions with rules of their own -------------------------------------------------------------------------------


def _custom(eqn: Eqn, operands, errors):
    jaxpr, name, rule, (n, m) = (eqn.params[k] for k in ("jaxpr", "name", "rule", "consts"))
    new, captured, faults = checkify_jaxpr(jaxpr, errors)
    if not faults:
        return None
    make = CheckedJvp if isinstance(eqn.primitive, CustomJvpCall) else CheckedVjp
    checked = make(rule, tuple(faults))
    params = {"jaxpr": intern(new), "name": name, "rule": checked, "consts": (len(captured) + n, m)}
    return faults, bind(eqn.primitive, [*captured, *operands], params)


class CheckedJvp(NamedTuple):
    """A rule of a function with code and payloads in front of its results: it finds nothing, and they do not move."""

    rule: Any
    faults: tuple[Fault, ...]

    def __str__(self) -> str:
        return f"checked {self.rule}"

    def __call__(self, consts, primals, tangents):
        outs, moved = self.rule(consts, primals, tangents)
        return [*_nothing_found(self.faults), *outs], [*[Zero(tangent_aval(a)) for a in _state_avals(self.faults)], *moved]


class CheckedVjp(NamedTuple):
    """As `CheckedJvp`, for a rule of reverse mode."""

    rule: Any
    faults: tuple[Fault, ...]

    def __str__(self) -> str:
        return f"checked {self.rule}"

    @property
    def in_avals(self) -> tuple:
        """Those of the rule."""
        return self.rule.in_avals

    @property
    def out_avals(self) -> tuple:
        """Code, payloads, and those of the rule."""
        return (*_state_avals(self.faults), *self.rule.out_avals)

    @property
    def symbolic(self) -> bool:
        """Whether the rule wants to know of zeros."""
        return self.rule.symbolic

    def forward(self, consts, primals, perturbed):
        """That of the rule."""
        outs, residuals, context = self.rule.forward(consts, primals, perturbed)
        return [*_nothing_found(self.faults), *outs], residuals, context

    def backward(self, consts, context, residuals, cts):
        """That of the rule, without the cotangents of code and payloads."""
        return self.rule.backward(consts, context, residuals, cts[len(_state_avals(self.faults)) :])
