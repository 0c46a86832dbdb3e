"""What to keep of a program whose results a later one needs, and what to compute again: a minimum cut.

    Recomputation(equations, free, wanted, cost)     the problem
        .kept(rate, memory) -> variables             its solution

Of each equation we ask whether it runs again (x = 1), of each variable whether it is needed then (y = 1). A variable that is
wanted is needed, and so is what an equation that runs again takes. One that is needed, and whose equation does not run again,
is kept. So the least price

    rate * sum of bytes of v over (y_v = 1, x = 0 of the equation of v)   +   sum of operations of e over (x_e = 1)

is that of a minimum cut: e is joined to v with the price of keeping v, the source to e with the price of running e again, and
an operand to the equation that takes it, and a wanted variable to the sink, without limit (after the project selection of
J. Picard, Management Science 22, 1976). `rate` says how many operations a byte is worth. The bytes kept fall as it rises, along
the convex hull of all choices; the rate at which they fit is found from the slopes of its edges (M. Eisner and D. Severance,
JACM 23, 1976), and what room is left there is filled by what saves the most operations a byte.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from funcml.core.ir import Eqn, Var
from funcml.transforms.costs import bytes_of

__all__ = ["Network", "Recomputation"]

_SOURCE, _SINK = 0, 1


class Network:
    """A directed graph with integer capacities, and the sides of its minimum cut (Y. Dinitz's algorithm)."""

    def __init__(self):
        self.ends: list[int] = []  # of edge i; edge i ^ 1 is its reverse
        self.at: list[list[int]] = [[], []]  # edges that leave a node; nodes 0 and 1 are the source and the sink

    def node(self) -> int:
        """A new node."""
        self.at.append([])
        return len(self.at) - 1

    def edge(self, start: int, end: int) -> None:
        """A new edge."""
        self.at[start].append(len(self.ends))
        self.at[end].append(len(self.ends) + 1)
        self.ends += [end, start]

    def source_side(self, capacities: Sequence[int]) -> list[bool]:
        """Which nodes are on the source's side of a minimum cut; `capacities` of the edges in order of their making."""
        left = [c for capacity in capacities for c in (capacity, 0)]
        while True:
            level = self._levels(left)
            if level[_SINK] < 0:
                return [found >= 0 for found in level]
            self._saturate(left, level)

    def _levels(self, left: list[int]) -> list[int]:
        level = [-1] * len(self.at)
        level[_SOURCE] = 0
        queue = deque([_SOURCE])
        while queue:
            node = queue.popleft()
            for edge in self.at[node]:
                end = self.ends[edge]
                if left[edge] and level[end] < 0:
                    level[end] = level[node] + 1
                    queue.append(end)
        return level

    def _saturate(self, left: list[int], level: list[int]) -> None:
        """Sends what can be sent along paths that go up a level with each edge."""
        following = [0] * len(self.at)
        path: list[int] = []
        node = _SOURCE
        while True:
            if node == _SINK:
                sent = min(left[edge] for edge in path)
                for edge in path:
                    left[edge] -= sent
                    left[edge ^ 1] += sent
                stuck = next(i for i, edge in enumerate(path) if not left[edge])
                node = self.ends[path[stuck] ^ 1]
                del path[stuck:]
                continue
            edges = self.at[node]
            while following[node] < len(edges):
                edge = edges[following[node]]
                if left[edge] and level[self.ends[edge]] == level[node] + 1:
                    path.append(edge)
                    node = self.ends[edge]
                    break
                following[node] += 1
            else:
                if not path:
                    return
                node = self.ends[path.pop() ^ 1]
                following[node] += 1


class _Choice(NamedTuple):
    """Variables that are kept, their bytes, and the operations that are done again."""

    kept: list[Var]
    bytes: int
    operations: int


class Recomputation:
    """The `wanted` variables, to be had once more from those that are `free` and from some that are kept.

    `cost(eqn)` is the operations of running an equation again, None if it must not run twice. A variable that is not free and
    that no equation gives can only be kept.
    """

    def __init__(
        self, equations: Sequence[Eqn], free: Collection[Var], wanted: Iterable[Var], cost: Callable[[Eqn], int | None]
    ):
        self.maker = {v: (eqn, amount) for eqn in equations if (amount := cost(eqn)) is not None for v in eqn.outvars}
        self.free = set(free)
        self.wanted = [v for v in dict.fromkeys(wanted) if v not in self.free]
        self.network = Network()
        self.bytes: list[int] = []  # a part of the capacity of each edge, which is worth the rate
        self.fixed: list[int | None] = []  # the other part; None: no limit
        self.needed: dict[Var, int] = {}  # the node of each variable that may be needed
        self.again: dict[int, int] = {}  # the node of each equation that may run again, by its id
        for eqn, amount in self._relevant(equations):
            node = self.again[id(eqn)] = self.network.node()
            self._join(_SOURCE, node, amount)
            for a in self._operands(eqn):
                self._join(self._variable(a), node, None)
        for v in self.wanted:
            self._join(self._variable(v), _SINK, None)

    def _relevant(self, equations: Sequence[Eqn]) -> list[tuple[Eqn, int]]:
        """The equations that lead to what is wanted and may run again, in order, and their costs."""
        needed, found = set(self.wanted), []
        for eqn in reversed(equations):
            made = [v for v in eqn.outvars if v in needed and v in self.maker]
            if made:
                found.append(self.maker[made[0]])
                needed.update(self._operands(eqn))
        return found[::-1]

    def _operands(self, eqn: Eqn) -> list[Var]:
        return [a for a in eqn.invars if type(a) is Var and a not in self.free]

    def _join(self, start: int, end: int, fixed: int | None, of_bytes: int = 0) -> None:
        self.network.edge(start, end)
        self.bytes.append(of_bytes)
        self.fixed.append(fixed)

    def _variable(self, v: Var) -> int:
        """The node of a variable, joined to that of its equation."""
        node = self.needed.get(v)
        if node is None:
            node = self.needed[v] = self.network.node()
            start = self.again[id(self.maker[v][0])] if v in self.maker else _SOURCE
            self._join(start, node, 0, bytes_of(v.aval))
        return node

    def choice(self, kept: Collection[Var]) -> _Choice:
        """Those of `kept` that are used when the rest is computed again, and what that costs."""
        kept = set(kept)
        used: dict[Var, None] = {}
        runs: dict[int, int] = {}
        seen: set[Var] = set()
        stack = list(reversed(self.wanted))
        while stack:
            v = stack.pop()
            if v in seen or v in self.free:
                continue
            seen.add(v)
            if v in kept or v not in self.maker:
                used[v] = None
                continue
            eqn, amount = self.maker[v]
            runs[id(eqn)] = amount
            stack += [a for a in eqn.invars if type(a) is Var]
        return _Choice(list(used), sum(bytes_of(v.aval) for v in used), sum(runs.values()))

    def cheapest(self, rate: Fraction) -> _Choice:
        """The choice of least price, if a byte is worth `rate` operations."""
        finite = [b * rate.numerator + (f or 0) * rate.denominator for b, f in zip(self.bytes, self.fixed, strict=True)]
        unlimited = sum(finite) + 1
        side = self.network.source_side(
            [unlimited if f is None else c for c, f in zip(finite, self.fixed, strict=True)]
        )
        return self.choice([v for v, node in self.needed.items() if not side[node] and self._stays(v, side)])

    def _stays(self, v: Var, side: list[bool]) -> bool:
        return v not in self.maker or side[self.again[id(self.maker[v][0])]]

    def kept(self, rate: int, memory: int | None = None) -> list[Var]:
        """The variables to keep if a byte is worth `rate` operations, and more where they must fit in `memory` bytes.

        If nothing fits, those of the fewest bytes.
        """
        over = self.cheapest(Fraction(rate))
        if memory is None or over.bytes <= memory:
            return over.kept
        within = self.cheapest(Fraction(1 + sum(f or 0 for f in self.fixed)))
        while within.bytes < over.bytes and within.bytes <= memory:
            slope = Fraction(within.operations - over.operations, over.bytes - within.bytes)
            between = self.cheapest(slope)
            if between.bytes * slope + between.operations >= over.bytes * slope + over.operations:
                break
            if between.bytes <= memory:
                within = between
            else:
                over = between
        return self._filled(within, over.kept, memory).kept

    def _filled(self, held: _Choice, candidates: list[Var], memory: int) -> _Choice:
        """`held`, and of the candidates those that fit and save operations, the most a byte first."""
        gains = [(v, self.choice([*held.kept, v])) for v in candidates if v not in held.kept]

        def gain(pair) -> Fraction:
            return Fraction(held.operations - pair[1].operations, max(1, bytes_of(pair[0].aval)))

        for v, _ in sorted(gains, key=gain, reverse=True):
            more = self.choice([*held.kept, v])
            if more.bytes <= memory and more.operations < held.operations:
                held = more
        return held
