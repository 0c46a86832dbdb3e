"""How the benches time: contestants take turns, and the median counts.

    interleaved : {name: function}  -> {name: Sample}       seconds a call
    in_processes: {name: command}   -> {name: [output]}     one fresh process a turn
    Row         : one line of the table: what, ours, a peer's, and how often each was timed (or measured, in bytes)

Contestants are timed in rounds, each of them once a round and in an order that turns from round to round, so that a
machine that becomes slower or faster meanwhile does so for all of them.
"""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

__all__ = ["Row", "Sample", "in_processes", "interleaved", "median"]

median = statistics.median


class Sample(NamedTuple):
    """The median of `n` timings, in seconds a call."""

    seconds: float
    n: int


class Row(NamedTuple):
    """One comparison. `ratio` says how many times longer the peer takes; `goal` is the least ratio that is wanted.

    With unit "B" the samples are bytes.
    """

    section: str
    name: str
    ours: Sample
    peer: str
    theirs: Sample
    goal: float | None = None
    unit: str = "s"

    @property
    def ratio(self) -> float:
        """The peer's time (or bytes) over ours."""
        ours, theirs = self.ours.seconds, self.theirs.seconds
        return theirs / ours if ours else 1.0 if ours == theirs else float("inf")


def interleaved(
    contestants: dict[str, Callable[[], Any]],
    *,
    rounds: int,
    calls: int = 1,
    finish: Callable[[Any], Any] | None = None,
) -> dict[str, Sample]:
    """Seconds a call of each contestant: the median over `rounds` turns of `calls` calls.

    `finish` is applied to the last result of a turn and is timed with it: it waits for what still runs on the device.
    Each contestant is called before the first round, so that compilation and caches do not count.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for function in contestants.values():
        _turn(function, 2, finish)
    gc.collect()
    gc.disable()
    try:
        for number in range(rounds):
            for name in _turned(list(contestants), number):
                seconds[name].append(_turn(contestants[name], calls, finish) / calls)
            gc.collect(0)
    finally:
        gc.enable()
    return {name: Sample(median(found), len(found)) for name, found in seconds.items()}


def _turn(function: Callable[[], Any], calls: int, finish: Callable[[Any], Any] | None) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        result = function()
    if finish is not None:
        finish(result)
    return time.perf_counter() - start


def _turned(names: Sequence[str], number: int) -> list[str]:
    at = number % len(names)
    return [*names[at:], *names[:at]]


def in_processes(
    commands: dict[str, Sequence[str]], rounds: int, environment: dict[str, str]
) -> dict[str, list[Any]]:
    """What each command printed as JSON in its last line, in `rounds` fresh processes that take turns."""
    found: dict[str, list[Any]] = {name: [] for name in commands}
    for number in range(rounds):
        for name in _turned(list(commands), number):
            found[name].append(_printed(commands[name], environment))
    return found


def _printed(command: Sequence[str], environment: dict[str, str]) -> Any:
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])
