"""Scans that keep less for the backward pass.

    run : (program of a step, consts, carry, xs, checkpoint) -> carry, ys

With a policy each step is a checkpoint. With a number of steps the scan has two levels: an outer one over segments of so many
steps, each a checkpoint, so that the carries between segments are kept and one segment at a time is computed again. The steps
that are left over are one shorter segment at the end. n steps in segments of k keep n / k carries and what k steps need: about
2 sqrt(n) for k = sqrt(n), at the price of one more forward pass (T. Chen, B. Xu, C. Zhang and C. Guestrin, arXiv:1604.06174).
"""

from __future__ import annotations

import math
import operator
from typing import Any

from funcml.control_flow.programs import parts, recorded
from funcml.control_flow.scan import scan
from funcml.core.ir import Jaxpr
from funcml.core.tracing import aval_of
from funcml.lax.shaping import concatenate, reshape, slice_in_dim
from funcml.transforms.policies import Automatic, Policy, checkpoint_policies
from funcml.transforms.remat import checkpointed_call, policy_of

__all__ = ["checked_choice", "run"]


def checked_choice(who: str, checkpoint: Any, length: int) -> int | Policy | Automatic | None:
    """The user's `checkpoint=` for so many steps: None, a number of steps in a segment, or a policy."""
    if checkpoint is None:
        return None
    if callable(checkpoint) or checkpoint == "auto":
        return policy_of(who, checkpoint)
    if isinstance(checkpoint, str) and checkpoint == "sqrt":
        return _near_root(length)
    if isinstance(checkpoint, bool) or not hasattr(checkpoint, "__index__"):
        raise TypeError(
            f'{who}: checkpoint must be "sqrt", a number of steps, "auto" or a checkpoint policy, got {checkpoint!r}'
        )
    steps = operator.index(checkpoint)
    if steps < 1:
        raise ValueError(f"{who}: a segment has at least one step, got checkpoint={steps}")
    return min(steps, max(length, 1))


def run(
    jaxpr: Jaxpr, consts, carry, xs, choice: int | Policy | Automatic, *, length: int, reverse: bool, unroll: int
) -> list:
    """Final carry and stacked outputs, as `control_flow.scan.scan`."""
    options: dict[str, Any] = {"reverse": reverse, "unroll": unroll}
    if not isinstance(choice, int):
        policy = choice
        step, _ = recorded(
            lambda *values: checkpointed_call(jaxpr, values, "step", policy, prevent_cse=False), jaxpr.in_avals, "step"
        )
        return scan(step, consts, carry, xs, length=length, **options)
    steps = choice
    n_carry, count = len(carry), length // steps
    whole = count * steps
    first, last = ((length - whole, length), (0, length - whole)) if reverse else ((0, whole), (whole, length))
    body = _segment(jaxpr, consts, xs, steps, options)
    segments = [reshape(_cut(x, *first), (count, steps, *aval_of(x).shape[1:])) for x in xs]
    outer, _ = recorded(
        lambda *values: _checkpoint(body, values),
        [*jaxpr.in_avals[: len(consts) + n_carry], *[x.update(shape=x.shape[1:]) for x in map(aval_of, segments)]],
        "segments",
    )
    carry, ys = parts(scan(outer, consts, carry, segments, length=count, reverse=reverse), n_carry)
    ys = [reshape(y, (whole, *aval_of(y).shape[2:])) for y in ys]
    if whole == length:
        return [*carry, *ys]
    rest = _segment(jaxpr, consts, xs, length - whole, options)
    carry, more = parts(_checkpoint(rest, [*consts, *carry, *[_cut(x, *last) for x in xs]]), n_carry)
    pairs = [(b, a) if reverse else (a, b) for a, b in zip(ys, more, strict=True)]
    return [*carry, *[concatenate(pair, 0) for pair in pairs]]


def _near_root(length: int) -> int:
    """A number of steps near the square root of `length`: one that divides it, if there is one within a factor of 3 / 2."""
    root = math.sqrt(length)
    near = [k for k in range(max(1, math.ceil(root / 1.5)), math.floor(root * 1.5) + 1) if length % k == 0]
    return min(near, key=lambda k: abs(math.log(k / root)), default=max(1, round(root)))


def _segment(jaxpr: Jaxpr, consts, xs, steps: int, options: dict) -> Jaxpr:
    """The program of a scan over so many steps: (consts..., carry..., slices of xs...) -> (carry..., slices of ys...)."""
    n_consts, n_xs = len(consts), len(xs)
    n_carry = len(jaxpr.invars) - n_consts - n_xs

    def several(*values):
        held, carry, slices = parts(values, n_consts, n_carry)
        return scan(jaxpr, held, carry, slices, length=steps, **options)

    slices = [x.update(shape=(steps, *x.shape[1:])) for x in map(aval_of, xs)]
    return recorded(several, [*jaxpr.in_avals[: n_consts + n_carry], *slices], "segment")[0]


def _checkpoint(jaxpr: Jaxpr, values) -> list:
    return checkpointed_call(jaxpr, values, "segment", checkpoint_policies.nothing_saveable, prevent_cse=False)


def _cut(x, start: int, end: int):
    return x if (start, end) == (0, aval_of(x).shape[0]) else slice_in_dim(x, start, end)
