"""The key order of dicts: a rebuilt tree keeps the order in which the user inserted the keys.

    ordered_unflatten : (tree, its treedef) -> ([leaf] -> tree)
    map_in_order      : (f, tree, others) -> tree      for keys that have no sorted order

The registry takes a dict's leaves in the order of its sorted keys, and `treedef.unflatten` inserts them in
that order. So only trees that hold a dict in another order need anything else than `treedef.unflatten`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from funcml.core.registry import tree_util

if TYPE_CHECKING:
    from jax.tree_util import PyTreeDef

__all__ = ["map_in_order", "ordered_unflatten"]

_IsLeaf = Callable[[Any], bool] | None


def ordered_unflatten(tree: Any, treedef: PyTreeDef, is_leaf: _IsLeaf) -> Callable[[Iterable[Any]], Any]:
    """Leaves, in the order of `treedef`, -> a tree like `tree`. It keeps no leaf of `tree` alive."""
    if _is_sorted(tree, treedef, is_leaf):
        return treedef.unflatten
    build, count = _builder([tree], is_leaf), treedef.num_leaves

    def unflatten(leaves):
        leaves = list(leaves)
        if len(leaves) != count:
            raise ValueError(f"expected {count} leaves for {treedef}, got {len(leaves)}")
        [built] = build(iter(leaves))
        return built

    return unflatten


def _is_sorted(tree: Any, treedef: PyTreeDef, is_leaf: _IsLeaf) -> bool:
    """Whether every dict has its keys in sorted order. Costs by the inner node, hardly by the leaf."""
    registry = tree_util().default_registry
    unseen = treedef.num_nodes - treedef.num_leaves
    level = [tree] if unseen else []
    while level:
        children: list[Any] = []
        for node in level:
            if type(node) is not dict:
                children += registry.flatten_one_level(node)[0]
            elif list(node) == sorted(node):
                children += node.values()
            else:
                return False
        unseen -= len(level)
        level = _inner_nodes(children, is_leaf) if unseen else []
    return True


def _inner_nodes(trees: Iterable[Any], is_leaf: _IsLeaf) -> list[Any]:
    is_node = tree_util().default_registry.is_node
    kinds = {kind for kind in set(map(type, trees)) if is_node(kind)}
    return [tree for tree in trees if type(tree) in kinds and not (is_leaf is not None and is_leaf(tree))]


def _descends(tree: Any, is_leaf: _IsLeaf) -> bool:
    return type(tree) is dict and not (is_leaf is not None and is_leaf(tree))


def _flatten_to_dicts(trees: list[Any], is_leaf: _IsLeaf) -> tuple[list[Any], PyTreeDef]:
    """The flattened list `trees`, in which dicts are leaves."""
    stop = (
        (lambda tree: type(tree) is dict)
        if is_leaf is None
        else (lambda tree: tree is not trees and (type(tree) is dict or is_leaf(tree)))
    )
    return tree_util().default_registry.flatten(trees, stop)


def _builder(trees: list[Any], is_leaf: _IsLeaf) -> Callable[[Iterator[Any]], Iterable[Any]]:
    """Leaves of `trees` -> trees like them, one after the other."""
    tops, treedef = _flatten_to_dicts(trees, is_leaf)
    parts = [_dict_builder(top, is_leaf) if _descends(top, is_leaf) else next for top in tops]
    return lambda leaves: treedef.unflatten([part(leaves) for part in parts])


def _dict_builder(template: dict, is_leaf: _IsLeaf) -> Callable[[Iterator[Any]], dict]:
    inserted, keys = list(template), sorted(template)
    nested = _inner_nodes(template.values(), is_leaf)
    build = _builder([template[key] for key in keys], is_leaf) if nested else iter

    def build_dict(leaves):
        built = dict(zip(keys, build(leaves)))  # zip asks for a leaf only once it has a key
        return {key: built[key] for key in inserted}

    return build_dict


def map_in_order(f: Callable[..., Any], tree: Any, others: Sequence[Any], is_leaf: _IsLeaf) -> Any:
    """`map` that visits the leaves of dicts in the order of insertion."""
    tops, treedef = _flatten_to_dicts([tree], is_leaf)
    columns = [treedef.flatten_up_to([other]) for other in others]

    def mapped(top, *below):
        if not _descends(top, is_leaf):
            return f(top, *below)
        for other in below:
            if type(other) is not dict or other.keys() != top.keys():
                got = f"keys {list(other)}" if isinstance(other, dict) else f"a {type(other).__name__}"
                raise ValueError(f"tree.map: got {got} where the first tree has a dict with keys {list(top)}")
        return {key: map_in_order(f, top[key], [other[key] for other in below], is_leaf) for key in top}

    return treedef.unflatten(map(mapped, tops, *columns))[0]
