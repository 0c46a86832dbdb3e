"""Policies of `checkpoint`: which results are kept for the backward pass.

    policy : (primitive, *avals, **params) -> bool | Saveable | Recompute | Offloadable        asked of each equation
    Automatic(memory)                                                                         sees the whole program

Policies are parameters of equations, so each compares and hashes by what it does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from funcml.primitives.contraction import dot_general_p
from funcml.primitives.identities import name_p

__all__ = ["Automatic", "Offloadable", "Policy", "Recompute", "Saveable", "checkpoint_policies", "saves"]

Policy = Callable[..., Any]


class _Verdict:
    """An answer of a policy that has nothing to add."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


#: what a policy may answer in the place of True and of False
Saveable, Recompute = _Verdict("Saveable"), _Verdict("Recompute")


class Offloadable(NamedTuple):
    """The answer of a policy that wants a result kept in another memory: `src` and `dst` name memories.

    On CPU, where device memory is the host's, this is to keep it. Other devices keep it too, in their own memory.
    """

    src: str
    dst: str


def saves(policy: Policy, primitive, avals, params) -> bool:
    """Whether a policy keeps the results of an equation; TypeError for an answer that is none."""
    verdict = policy(primitive, *avals, **params)
    if isinstance(verdict, bool | np.bool_):
        return bool(verdict)
    if verdict is Saveable or isinstance(verdict, Offloadable):
        return True
    if verdict is Recompute or verdict is None:
        return False
    raise TypeError(
        f"a checkpoint policy must answer True, False, Saveable, Recompute or Offloadable(src=, dst=), not {verdict!r} "
        f"(asked of `{primitive}`)"
    )


class Automatic(NamedTuple):
    """The policy "auto": keeps what a minimum cut of the program says, in no more than `memory` bytes if that is given."""

    memory: int | None


@dataclass(frozen=True)
class _Named:
    """Whether a name is among these (or, with `among=False`, not among them)."""

    names: frozenset[str]
    among: bool

    def __call__(self, primitive, *avals, **params) -> bool:
        return primitive is name_p and (params["name"] in self.names) == self.among


@dataclass(frozen=True)
class _Except:
    """Whether an equation is not a name among these."""

    names: frozenset[str]

    def __call__(self, primitive, *avals, **params) -> bool:
        return not (primitive is name_p and params["name"] in self.names)


@dataclass(frozen=True)
class _Either:
    """Whether one of two policies saves."""

    first: Policy
    second: Policy

    def __call__(self, primitive, *avals, **params) -> bool:
        return any(saves(policy, primitive, avals, params) for policy in (self.first, self.second))


@dataclass(frozen=True)
class _OffloadedDots:
    """Offloads the products that `dots_with_no_batch_dims_saveable` saves."""

    place: Offloadable

    def __call__(self, primitive, *avals, **params):
        return self.place if checkpoint_policies.dots_with_no_batch_dims_saveable(primitive, **params) else Recompute


@dataclass(frozen=True)
class _OffloadedNames:
    """Saves some names and offloads others."""

    saved: frozenset[str]
    offloaded: frozenset[str]
    place: Offloadable

    def __call__(self, primitive, *avals, **params):
        if primitive is name_p and params["name"] in self.saved:
            return Saveable
        return self.place if primitive is name_p and params["name"] in self.offloaded else Recompute


class checkpoint_policies:
    """Policies `policy(primitive, *avals, **params)`: whether the results of an equation are saved."""

    @staticmethod
    def everything_saveable(primitive, *avals, **params) -> bool:
        """Saves all: as if there were no checkpoint."""
        return True

    @staticmethod
    def nothing_saveable(primitive, *avals, **params) -> bool:
        """Saves nothing but the inputs; the default."""
        return False

    @staticmethod
    def dots_saveable(primitive, *avals, **params) -> bool:
        """Saves the results of `dot_general`."""
        return primitive is dot_general_p

    checkpoint_dots = dots_saveable

    @staticmethod
    def dots_with_no_batch_dims_saveable(primitive, *avals, **params) -> bool:
        """Saves the results of `dot_general` without batch dimensions: the weights' products of a transformer."""
        return primitive is dot_general_p and not params["dimension_numbers"][1][0]

    checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable

    @staticmethod
    def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
        """As `dots_with_no_batch_dims_saveable`, but in another memory; see `Offloadable`."""
        return _OffloadedDots(Offloadable(offload_src, offload_dst))

    @staticmethod
    def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
        """Saves what `checkpoint_name` gave one of these names."""
        return _Named(frozenset(names_which_can_be_saved), True)

    @staticmethod
    def save_any_names_but_these(*names_not_to_save: str) -> Policy:
        """Saves what `checkpoint_name` gave a name, except these."""
        return _Named(frozenset(names_not_to_save), False)

    @staticmethod
    def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
        """Saves all but what `checkpoint_name` gave one of these names."""
        return _Except(frozenset(names_not_to_save))

    @staticmethod
    def save_and_offload_only_these_names(
        *, names_which_can_be_saved, names_which_can_be_offloaded, offload_src: str, offload_dst: str
    ) -> Policy:
        """Saves what has one of some names and offloads what has one of others; see `Offloadable`.

        ValueError for a name that is among both.
        """
        saved, offloaded = frozenset(names_which_can_be_saved), frozenset(names_which_can_be_offloaded)
        if both := sorted(saved & offloaded):
            raise ValueError(
                f"save_and_offload_only_these_names: a name is saved or offloaded, but {', '.join(map(repr, both))} is to be "
                f"both: the names should be exclusive and should not overlap"
            )
        return _OffloadedNames(saved, offloaded, Offloadable(offload_src, offload_dst))

    @staticmethod
    def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
        """Saves what either policy saves."""
        return _Either(policy_1, policy_2)
