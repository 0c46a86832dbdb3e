"""Runs the benches and prints a table of ratios.

    python bench/run.py                        all of them
    python bench/run.py eager dispatch         some of them
    python bench/run.py --quick --json out.json
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys
from collections.abc import Iterable

from timing import Row, Sample

BENCHES = ("tracing", "compiled", "eager", "dispatch", "startup", "memory", "nesting")


def main() -> None:
    """Reads the arguments, runs, prints."""
    parser = argparse.ArgumentParser(description="Compares funcml with JAX (and torch.func, if it is installed).")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which of {', '.join(BENCHES)}; all by default")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--json", metavar="FILE", help="write the rows to FILE as well")
    options = parser.parse_args()
    unknown = set(options.names) - set(BENCHES)
    if unknown:
        parser.error(f"no bench is called {', '.join(sorted(unknown))}; there is {', '.join(BENCHES)}")
    found: list[Row] = []
    for name in options.names or BENCHES:
        for row in importlib.import_module(name).rows(options.quick):
            print(f"{row.name}: {_amount(row.ours, row.unit)}, {row.peer} {_amount(row.theirs, row.unit)}",
                  file=sys.stderr, flush=True)
            found.append(row)
    print(_header())
    print(table(found))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"machine": _header(), "rows": [_as_dict(row) for row in found]}, file, indent=1)


def table(rows: Iterable[Row]) -> str:
    """The rows as a table in Markdown: the ratio is the peer's time (or bytes) over ours."""
    lines = ["| bench | what | funcml | peer | it takes | ratio | goal | n |", "|---|---|--:|---|--:|--:|---|--:|"]
    for row in rows:
        goal = "" if row.goal is None else f">= {row.goal:.3g} {'met' if row.ratio >= row.goal else 'MISSED'}"
        lines.append(
            f"| {row.section} | {row.name} | {_amount(row.ours, row.unit)} | {row.peer} | {_amount(row.theirs, row.unit)} "
            f"| {row.ratio:.2f} | {goal} | {row.ours.n} |"
        )
    return "\n".join(lines)


def _as_dict(row: Row) -> dict:
    return {**row._asdict(), "ours": row.ours._asdict(), "theirs": row.theirs._asdict(), "ratio": row.ratio}


_SCALES = {
    "s": (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)),
    "B": (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)),
}


def _amount(sample: Sample, unit: str) -> str:
    scales = _SCALES[unit]
    name, scale = next((s for s in scales if sample.seconds >= s[1]), scales[-1])
    return f"{sample.seconds / scale:.3g} {name}"


def _header() -> str:
    from importlib.metadata import version

    return f"Python {platform.python_version()}, jax {version('jax')}, {platform.processor() or platform.machine()}\n"


if __name__ == "__main__":
    main()
