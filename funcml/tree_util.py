"""`funcml.tree` under the names of `jax.tree_util`."""

from typing import TYPE_CHECKING, Any

from funcml import tree as _tree
from funcml.tree import KeyEntry as KeyEntry
from funcml.tree import KeyPath as KeyPath
from funcml.tree import all as tree_all
from funcml.tree import all_leaves as all_leaves
from funcml.tree import broadcast as tree_broadcast
from funcml.tree import flatten as tree_flatten
from funcml.tree import flatten_one_level as flatten_one_level
from funcml.tree import flatten_one_level_with_keys as flatten_one_level_with_keys
from funcml.tree import flatten_with_path as tree_flatten_with_path
from funcml.tree import is_tree_node as is_tree_node
from funcml.tree import keystr as keystr
from funcml.tree import leaves as tree_leaves
from funcml.tree import leaves_with_path as tree_leaves_with_path
from funcml.tree import map as tree_map
from funcml.tree import map_with_path as tree_map_with_path
from funcml.tree import reduce as tree_reduce
from funcml.tree import reduce_associative as tree_reduce_associative
from funcml.tree import register_dataclass as register_dataclass
from funcml.tree import register_pytree_node as register_pytree_node
from funcml.tree import register_pytree_node_class as register_pytree_node_class
from funcml.tree import register_pytree_with_keys as register_pytree_with_keys
from funcml.tree import register_pytree_with_keys_class as register_pytree_with_keys_class
from funcml.tree import register_static as register_static
from funcml.tree import structure as tree_structure
from funcml.tree import transpose as tree_transpose
from funcml.tree import treedef_children as treedef_children
from funcml.tree import treedef_is_leaf as treedef_is_leaf
from funcml.tree import treedef_tuple as treedef_tuple
from funcml.tree import unflatten as tree_unflatten

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
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "default_registry",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_tree, name)
