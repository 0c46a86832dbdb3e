"""Trees: nested containers whose leaves are arrays.

    flatten   : tree -> [leaf], treedef
    unflatten : treedef, [leaf] -> tree
    map       : (leaf, ... -> leaf), tree, ... -> tree

Nodes are tuples, lists, dicts, namedtuples, None (no children), OrderedDict, defaultdict, and every class
registered here or in `jax.tree_util`: the registry is jaxlib's, so the containers of optax, flax, equinox and
chex are known. Anything else is a leaf. The names are `jax.tree`'s; `funcml.tree_util` has `jax.tree_util`'s.

The leaves of a dict are taken in the order of its sorted keys, so that equal dicts have equal treedefs.
A function that returns a tree like its argument (`map`, `broadcast`, ...) keeps the insertion order of keys.

The first use imports jax (no device is touched).
"""

from __future__ import annotations

import builtins
import functools
import itertools
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any

from funcml.core.registry import (
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    static,
    tree_util,
)
from funcml.tree_errors import (
    Difference,
    View,
    check_hashable,
    check_sortable,
    children_with_keys,
    differences,
    is_sortable,
    repeats,
)
from funcml.tree_order import map_in_order, ordered_unflatten

if TYPE_CHECKING:
    from jax.tree_util import (
        DictKey,
        FlattenedIndexKey,
        GetAttrKey,
        Partial,
        PyTreeDef,
        SequenceKey,
        default_registry,
    )

__all__ = [
    "DictKey",
    "Difference",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all",
    "all_leaves",
    "broadcast",
    "check_hashable",
    "check_sortable",
    "default_registry",
    "diff",
    "explain_difference",
    "flatten",
    "flatten_leaves",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "flatten_prefix",
    "flatten_with_path",
    "is_tree_node",
    "keystr",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "static",
    "structure",
    "transpose",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
    "unflatten",
    "unflattener",
]

KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]
_IsLeaf = Callable[[Any], bool] | None


class _Missing:
    def __repr__(self) -> str:
        return "<no initial value>"


_MISSING: Any = _Missing()

_LOADED_NAMES = frozenset(
    {"DictKey", "FlattenedIndexKey", "GetAttrKey", "Partial", "PyTreeDef", "SequenceKey", "default_registry"}
)


def __getattr__(name: str) -> Any:
    if name not in _LOADED_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(tree_util(), name)
    return value


# --- flatten and unflatten ---


def flatten_leaves(tree: Any, is_leaf: _IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """`flatten` for hot paths, always called as `tree.flatten_leaves(x)`.

    The first call replaces this function by the registry's C++ method, which does not say where an error is:
    on a ValueError call `check_sortable(x, what)`, then raise again.
    """
    fast = globals()["flatten_leaves"] = tree_util().default_registry.flatten
    return fast(tree, is_leaf)


def flatten(tree: Any, is_leaf: _IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a tree, and the structure that is left without them.

    `is_leaf(subtree)` may be true to take a subtree as one leaf. Raises ValueError, with the key path, for a
    dict whose keys cannot be sorted.

    >>> flatten({"b": 1, "a": (2, None)})
    ([2, 1], PyTreeDef({'a': (*, None), 'b': *}))
    """
    try:
        return flatten_leaves(tree, is_leaf)
    except ValueError:
        check_sortable(tree, is_leaf=is_leaf)
        raise


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of this structure with these leaves.

    >>> unflatten(structure({"a": 0, "b": [0]}), [1, 2])
    {'a': 1, 'b': [2]}
    """
    return treedef.unflatten(leaves)


def leaves(tree: Any, is_leaf: _IsLeaf = None) -> list[Any]:
    """The leaves of a tree.

    >>> leaves({"b": 1, "a": (2, None)})
    [2, 1]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: _IsLeaf = None) -> PyTreeDef:
    """The treedef of a tree.

    >>> structure((1, [2, 3]))
    PyTreeDef((*, [*, *]))
    """
    return flatten(tree, is_leaf)[1]


def unflattener(tree: Any, is_leaf: _IsLeaf = None) -> Callable[[Iterable[Any]], Any]:
    """The function from leaves to a tree like `tree`, with the key order of its dicts.

    It is `structure(tree).unflatten` itself where every dict is in sorted order already.

    >>> unflattener({"b": 1, "a": 2})([10, 20])
    {'b': 20, 'a': 10}
    """
    return ordered_unflatten(tree, structure(tree, is_leaf), is_leaf)


# --- map and reduce ---


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: _IsLeaf = None) -> Any:
    """The tree of `f(leaf, ...)` over the leaves of `tree` and what stands at their places in `rest`.

    `tree` is a prefix of each of `rest`. Raises ValueError, with the key path, where it is not.

    >>> map(lambda x, y: x + y, {"b": 1, "a": (2, None)}, {"a": (10, None), "b": 20})
    {'b': 21, 'a': (12, None)}
    """
    try:
        first, treedef = flatten_leaves(tree, is_leaf)
    except ValueError:
        if is_sortable(tree, is_leaf):
            raise
        return map_in_order(f, tree, rest, is_leaf)
    others = _flatten_rest("map", treedef, first, rest)
    return ordered_unflatten(tree, treedef, is_leaf)(list(builtins.map(f, first, *others)))


def map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """As `map`, with `f(key path, leaf, ...)`. Dicts come back sorted by key if `is_leaf_takes_path`.

    >>> map_with_path(lambda path, x: f"{keystr(path)}={x}", {"a": (1, 2)})
    {'a': ("['a'][0]=1", "['a'][1]=2")}
    """
    keyed, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    paths, first = [path for path, _ in keyed], [leaf for _, leaf in keyed]
    others = _flatten_rest("map_with_path", treedef, first, rest)
    build = treedef.unflatten if is_leaf and is_leaf_takes_path else unflattener(tree, is_leaf)
    return build(list(builtins.map(f, paths, first, *others)))


def _flatten_rest(name: str, treedef: PyTreeDef, first: list[Any], rest: tuple[Any, ...]) -> list[list[Any]]:
    """Each of `rest` flattened up to the leaves of the first tree."""
    try:
        return [treedef.flatten_up_to(other) for other in rest]
    except (ValueError, TypeError):
        for number, other in enumerate(rest, 2):
            _check_prefix(name, View(treedef, first), number, other)
        raise


def _check_prefix(name: str, tree: View, number: int, other: Any) -> None:
    for place in differences(tree, _view(other), prefix=True):
        raise ValueError(
            f"tree.{name}: tree {number} {place.place()}has {place.expected}, where tree 1 has {place.got}. "
            "The first tree must have the structure of the others, or end above them."
        ) from None


def reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _MISSING, is_leaf: _IsLeaf = None
) -> Any:
    """`function(... function(initializer, leaf 1) ..., leaf n)`.

    >>> reduce(lambda x, y: x + y, {"a": 1, "b": (2, 3)})
    6
    """
    initial = () if initializer is _MISSING else (initializer,)
    return functools.reduce(function, leaves(tree, is_leaf), *initial)


def reduce_associative(
    operation: Callable[[Any, Any], Any], tree: Any, *, identity: Any = _MISSING, is_leaf: _IsLeaf = None
) -> Any:
    """The leaves combined by an associative operation, in a binary tree of logarithmic depth.

    `identity` is the result for a tree without leaves; without it such a tree is a TypeError.

    >>> reduce_associative(lambda x, y: x + y, [1, (2, 3), [4, 5, 6]])
    21
    """
    values = leaves(tree, is_leaf)
    if values:
        return _combine(operation, values)
    if identity is _MISSING:
        raise TypeError("tree.reduce_associative: the tree has no leaves; give identity=")
    return identity


def _combine(operation, values):
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    return operation(_combine(operation, values[:half]), _combine(operation, values[half:]))


def all(tree: Any, *, is_leaf: _IsLeaf = None) -> bool:
    """Whether all leaves are true.

    >>> all({"a": True, "b": (1, 0)})
    False
    """
    return builtins.all(leaves(tree, is_leaf))


def transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """A tree of structure outer(inner) turned into inner(outer).

    `inner_treedef=None` means the structure of the first subtree. Raises TypeError if the structures differ.

    >>> transpose(structure([0, 0]), None, [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    {'a': [1, 3], 'b': [2, 4]}
    """
    try:
        subtrees = outer_treedef.flatten_up_to(pytree_to_transpose)
        inner = structure(subtrees[0]) if inner_treedef is None else inner_treedef
        rows = [inner.flatten_up_to(subtree) for subtree in subtrees]
    except (ValueError, TypeError) as error:
        raise TypeError(
            f"Mismatch in tree.transpose: expected outer {outer_treedef} of inner {inner_treedef}, "
            f"got {structure(pytree_to_transpose)}: {error}"
        ) from None
    columns = [[row[i] for row in rows] for i in range(inner.num_leaves)]
    return inner.unflatten([outer_treedef.unflatten(column) for column in columns])


# --- prefixes ---


def broadcast(prefix_tree: Any, full_tree: Any, is_leaf: _IsLeaf = None) -> Any:
    """A tree like `full_tree` in which each leaf of `prefix_tree` fills the subtree at its place.

    >>> broadcast((1, 2), (0, {"a": 0, "b": 0}))
    (1, {'a': 2, 'b': 2})
    """
    values = _spread(_view(prefix_tree, is_leaf), full_tree, "prefix_tree")
    return unflattener(full_tree)(values)


def flatten_prefix(prefix_tree: Any, full: Any, what: str = "in_axes", is_leaf: _IsLeaf = None) -> list[Any]:
    """The leaves of `prefix_tree`, one for each leaf of `full` (a tree or a treedef). None is a leaf here.

    Raises ValueError, with the key path, where it is not a prefix; `what` names it in the message.

    >>> flatten_prefix((0, None), (1.0, {"a": 2.0, "b": 3.0}))
    [0, None, None]
    """
    stop = _is_none if is_leaf is None else lambda x: x is None or is_leaf(x)
    try:
        values, treedef = flatten_leaves(prefix_tree, stop)
    except ValueError:
        check_sortable(prefix_tree, what, stop)
        raise
    return _spread(View(treedef, values), full, what)


def _is_none(x: Any) -> bool:
    return x is None


def _view(tree: Any, is_leaf: _IsLeaf = None) -> View:
    leaves, treedef = flatten(tree, is_leaf)
    return View(treedef, leaves)


def _spread(prefix: View, full: Any, what: str) -> list[Any]:
    view = View.of_treedef(full) if isinstance(full, tree_util().PyTreeDef) else _view(full)
    counts = repeats(prefix.treedef, view.treedef)
    if counts is not None:
        return [value for value, count in zip(prefix.leaves, counts) for _ in range(count)]
    place = next(differences(prefix, view, prefix=True))
    raise ValueError(
        f"{what} must be a prefix of the tree it belongs to; pytree structure error: {what}{keystr(place.path)} is {place.got}, "
        f"where the tree has {place.expected}"
    )


# --- key paths ---


def flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """As `flatten`, with (key path, leaf) for each leaf.

    With `is_leaf_takes_path`, the predicate is called as `is_leaf(path, subtree)`.

    >>> flatten_with_path({"a": (1,)})[0]
    [((DictKey(key='a'), SequenceKey(idx=0)), 1)]
    """
    try:
        return tree_util().tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    except ValueError:
        check_sortable(tree, is_leaf=None if is_leaf_takes_path else is_leaf)
        raise


def leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """The (key path, leaf) pairs of a tree.

    >>> [(keystr(path), leaf) for path, leaf in leaves_with_path({"a": (1, 2)})]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A key path as text: `['layer'].w[0]`, or `layer/w/0` with `simple=True, separator="/"`.

    >>> path, leaf = leaves_with_path({"layer": [7]})[0]
    >>> keystr(path), keystr(path, simple=True, separator="/")
    ("['layer'][0]", 'layer/0')
    """
    return tree_util().keystr(keys, simple=simple, separator=separator)


# --- differences ---


def diff(got: Any, expected: Any, *, is_leaf: _IsLeaf = None, limit: int = 3) -> list[Difference]:
    """The first places where two trees differ in structure, or their leaves in shape or dtype.

    Each has `path`, `got` and `expected`; as text it continues a sentence that names the tree.

    >>> import numpy as np
    >>> found = diff({"w": np.ones(3)}, {"w": np.ones(4)})
    >>> f"argument 2 {found[0]}"
    "argument 2 at ['w'] has f64[3], expected f64[4]"
    """
    places = differences(_view(got, is_leaf), _view(expected, is_leaf), leaf_types=True)
    return list(itertools.islice(places, limit))


def explain_difference(got: PyTreeDef, expected: PyTreeDef, what: str = "tree structure") -> str:
    """Where two treedefs first differ, as a sentence; empty if they are equal.

    >>> explain_difference(structure({"a": 1}), structure({"a": (1, 2)}))
    "tree structure differs at ['a']: got a leaf, expected a tuple of 2"
    """
    place = next(differences(View.of_treedef(got), View.of_treedef(expected)), None)
    if place is None:
        return ""
    where = f"at {keystr(place.path)}" if place.path else "at the root"
    return f"{what} differs {where}: got {place.got}, expected {place.expected}"


# --- one node and one treedef ---


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """The children of one node, and its static data; ValueError for a leaf.

    >>> flatten_one_level({"b": [1, 2], "a": 3})
    ((3, [1, 2]), ('a', 'b'))
    """
    return tree_util().flatten_one_level(tree)


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[KeyEntry, Any]], Hashable]:
    """The (key, child) pairs of one node, and its static data; ValueError for a leaf.

    >>> flatten_one_level_with_keys([5])
    ([(SequenceKey(idx=0), 5)], None)
    """
    return children_with_keys(tree) or [], flatten_one_level(tree)[1]


def all_leaves(iterable: Iterable[Any], is_leaf: _IsLeaf = None) -> bool:
    """Whether every element is a leaf.

    >>> all_leaves([1, 2]), all_leaves([1, [2]])
    (True, False)
    """
    return tree_util().all_leaves(iterable, is_leaf)


def is_tree_node(typ: type) -> bool:
    """Whether instances of this type are nodes.

    >>> is_tree_node(dict), is_tree_node(set)
    (True, False)
    """
    return tree_util().default_registry.is_node(typ)


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The treedefs of the immediate children.

    >>> treedef_children(structure([1, (2, 3)]))
    [PyTreeDef(*), PyTreeDef((*, *))]
    """
    return treedef.children()


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The treedef of a tuple of trees.

    >>> treedef_tuple([structure(1), structure([2])])
    PyTreeDef((*, [*]))
    """
    return tree_util().treedef_tuple(treedefs)


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether the treedef is a single node, that is, a leaf or a node without children.

    >>> treedef_is_leaf(structure(1)), treedef_is_leaf(structure([1]))
    (True, False)
    """
    return treedef.num_nodes == 1
