"""The matrix primitive x rule: every primitive has every rule, or stands in a list with the reason why not.

Run with `-s` to see it printed.
"""

import importlib
import pkgutil

import funcml.primitives
import funcml.transforms
from funcml.core.ir import Primitive
from funcml.lowering.emit import RULES
from funcml.primitives.rows import Elementwise

RULE_NAMES = ("type_rule", "jvp_rule", "transpose_rule", "batch_rule", "lowering")

#: linear in no operand: their derivatives go through other primitives, and nothing transposes them
NOT_LINEAR_IN_ANYTHING = {
    "eig", "hessenberg", "schur", "tridiagonal",
    "argmax", "argmin", "axis_index", "bitcast_convert", "cholesky", "cholesky_update",
    "cumlogsumexp", "cummax", "cummin", "cumprod",
    "eigh", "geqp3", "geqrf", "householder_product", "integer_pow", "iota", "lu", "lu_pivots_to_permutation",
    "pmax", "pmin", "qr",
    "random_unwrap", "random_wrap", "reduce", "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod",
    "reduce_window", "reduce_window_max", "reduce_window_min", "reduce_xor", "rng_bit_generator", "scatter_apply",
    "scatter_max", "scatter_min", "sort", "svd", "threefry2x32", "top_k",
}  # fmt: skip


def primitives() -> dict[str, Primitive]:
    found: dict[str, Primitive] = {}
    for package in (funcml.primitives, funcml.transforms):
        for info in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"{package.__name__}.{info.name}")
            for value in vars(module).values():
                if isinstance(value, Primitive):
                    found[value.name] = value
    return found


def has_rule(p: Primitive, rule: str) -> bool:
    if rule == "lowering":
        return p in RULES
    if rule == "transpose_rule" and isinstance(p, Elementwise) and type(p).transpose_rule is Elementwise.transpose_rule:
        return any(t is not None for t in p.transposes)
    return getattr(type(p), rule) is not getattr(Primitive, rule)


def holes() -> list[str]:
    found = []
    for name, p in primitives().items():
        for rule in RULE_NAMES:
            if has_rule(p, rule):
                continue
            if rule == "transpose_rule" and (isinstance(p, Elementwise) or name in NOT_LINEAR_IN_ANYTHING):
                continue
            found.append(f"{name} has no {rule}")
    return found


def test_every_primitive_has_every_rule():
    table = primitives()
    width = max(map(len, table))
    print("\n" + " " * width, *RULE_NAMES)
    for name, p in sorted(table.items()):
        print(name.ljust(width), *[("x" if has_rule(p, r) else "-").center(len(r)) for r in RULE_NAMES])
    assert not holes(), "\n".join(holes())
    assert len(table) > 100


def test_the_list_of_exceptions_is_not_stale():
    table = primitives()
    unknown = NOT_LINEAR_IN_ANYTHING - set(table)
    linear = {n for n in NOT_LINEAR_IN_ANYTHING & set(table) if has_rule(table[n], "transpose_rule")}
    assert not unknown | linear


def test_names_are_unique():
    assert all(name == p.name for name, p in primitives().items())


def test_an_elementwise_row_with_a_tangent_takes_floats():
    for p in primitives().values():
        if isinstance(p, Elementwise):
            assert len(p.tangents) == len(p.transposes) == p.arity


def test_every_file_of_rules_is_imported():
    import funcml.lowering
    from funcml.lowering import rules

    files = {m.name for m in pkgutil.iter_modules(funcml.lowering.__path__) if m.name.startswith("rules_")}
    assert files <= set(vars(rules))
