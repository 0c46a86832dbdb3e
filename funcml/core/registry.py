"""The registry of pytree node types: jaxlib's C++ one, which all JAX libraries share.

    tree_util  : () -> module                 jax.tree_util, imported at the first call
    on_load    : (() -> None) -> None         run when that happens (now, if it has happened)
    register_* : (class, ...)                 makes a class a node, for funcml and for JAX

Importing jax takes longer than importing all of funcml, so it waits until the first tree is flattened. It
has to be jax and not only jaxlib: jax registers OrderedDict, defaultdict and Partial from Python, and keeps
further registries that must learn of each new node type.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Hashable, Iterable
from types import ModuleType
from typing import Any, TypeVar

__all__ = [
    "on_load",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "static",
    "tree_util",
]

_Class = TypeVar("_Class", bound=type)

_tree_util: ModuleType | None = None
_waiting: list[Callable[[], object]] = []
_lock = threading.RLock()


def tree_util() -> ModuleType:
    """The module `jax.tree_util`, with every registration that waited in `on_load` made."""
    global _tree_util
    if _tree_util is None:
        with _lock:
            from jax import tree_util as loaded

            while _waiting:
                _waiting.pop(0)()
            _tree_util = loaded
    return _tree_util


def on_load(register: Callable[[], object]) -> None:
    """Calls `register()` once jax is loaded: so a module of funcml can register its classes when imported."""
    with _lock:
        if _tree_util is None:
            _waiting.append(register)
            return
    register()


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]] | None = None,
) -> None:
    """Makes a class a node, for funcml and for JAX: `flatten_func(x) -> (children, aux)`,
    `unflatten_func(aux, children) -> x`. `aux` is static: it must be hashable and comparable.

    >>> class Pair:
    ...     def __init__(self, x, y): self.x, self.y = x, y
    >>> register_pytree_node(Pair, lambda p: ((p.x, p.y), None), lambda aux, children: Pair(*children))
    >>> from funcml import tree
    >>> tree.leaves(Pair(1, (2, 3)))
    [1, 2, 3]
    """
    tree_util().register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


def register_pytree_node_class(cls: _Class) -> _Class:
    """Makes a class with `tree_flatten(self)` and classmethod `tree_unflatten(cls, aux, children)` a node."""
    return tree_util().register_pytree_node_class(cls)


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """As `register_pytree_node`, with `flatten_with_keys(x) -> ((key, child) pairs, aux)`, so that key paths
    name the children. `flatten_func` is a faster way to the same children without keys."""
    tree_util().register_pytree_with_keys(nodetype, flatten_with_keys, unflatten_func, flatten_func)


def register_pytree_with_keys_class(cls: _Class) -> _Class:
    """As `register_pytree_node_class`, for a class with `tree_flatten_with_keys`."""
    return tree_util().register_pytree_with_keys_class(cls)


def register_dataclass(
    nodetype: Any = None,
    data_fields: Iterable[str] | None = None,
    meta_fields: Iterable[str] | None = None,
    drop_fields: Iterable[str] = (),
) -> Any:
    """Makes a dataclass a node: data fields are children, meta fields are static.

    Without field names, a field made by `static()` (or with `metadata={"static": True}`) is static and the
    others are data. Usable as `@register_dataclass` and as
    `@register_dataclass(data_fields=..., meta_fields=...)`.

    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     w: float
    ...     name: str = static(default="dense")
    >>> from funcml import tree
    >>> tree.map(lambda x: 2 * x, Layer(1.5))
    Layer(w=3.0, name='dense')
    """
    if nodetype is None:
        return lambda cls: register_dataclass(cls, data_fields, meta_fields, drop_fields)
    named = [None if names is None else list(names) for names in (data_fields, meta_fields)]
    return tree_util().register_dataclass(nodetype, *named, drop_fields=tuple(drop_fields))


def register_static(cls: _Class) -> _Class:
    """Makes a class with `__hash__` and `__eq__` a node without leaves: its instances are static data."""
    return tree_util().register_static(cls)


def static(**kwargs: Any) -> Any:
    """A `dataclasses.field` that `register_dataclass` takes as static."""
    metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
    return dataclasses.field(metadata=metadata, **kwargs)
