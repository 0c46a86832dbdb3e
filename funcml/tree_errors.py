"""What is wrong with a tree, said with key paths.

    differences     : (got, expected) -> Difference, ...      where two trees part
    repeats         : (prefix, full treedef) -> [int]         how often each leaf of the prefix is repeated
    check_sortable  : tree -> None      raises where a dict's keys have no order
    check_hashable  : treedef -> None   raises where static data cannot serve as part of a cache key

A tree is looked at through a `View`: its treedef and its leaves. So a bare treedef can be compared as well
(its leaves are placeholders). A registered class is rebuilt only to learn the names of children and fields.
"""

from __future__ import annotations

import copy
import reprlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from funcml.core.avals import dtype_text
from funcml.core.registry import tree_util

if TYPE_CHECKING:
    from jax.tree_util import PyTreeDef

__all__ = [
    "Difference",
    "View",
    "check_hashable",
    "check_sortable",
    "children_with_keys",
    "differences",
    "is_sortable",
    "repeats",
]


class _Placeholder:
    """Stands for a leaf of which only the place is known."""

    def __repr__(self) -> str:
        return "*"


_PLACEHOLDER = _Placeholder()


class View(NamedTuple):
    """A tree as its treedef and its leaves."""

    treedef: PyTreeDef
    leaves: Sequence[Any]

    @classmethod
    def of_treedef(cls, treedef: PyTreeDef) -> View:
        return cls(treedef, [_PLACEHOLDER] * treedef.num_leaves)

    @property
    def is_leaf(self) -> bool:
        return self.treedef.node_data() is None

    def children(self) -> list[tuple[Any, View]]:
        """The children, each with its key."""
        treedefs = self.treedef.children()
        views, start = [], 0
        for treedef in treedefs:
            views.append(View(treedef, self.leaves[start : start + treedef.num_leaves]))
            start += treedef.num_leaves
        return list(zip(self._keys(len(treedefs)), views))

    def _keys(self, count: int) -> list[Any]:
        jtu = tree_util()
        kind, aux = self.treedef.node_data()
        if kind in (tuple, list):
            return [jtu.SequenceKey(i) for i in range(count)]
        if kind is dict:
            return [jtu.DictKey(key) for key in aux]
        keyed = children_with_keys(self.rebuilt())
        if keyed is None or len(keyed) != count:
            return [jtu.FlattenedIndexKey(i) for i in range(count)]
        return [key for key, _ in keyed]

    def rebuilt(self) -> Any:
        """The tree itself, or None where its class refuses these leaves."""
        try:
            return self.treedef.unflatten(self.leaves)
        except Exception:  # whatever a user's constructor raises
            return None

    def __str__(self) -> str:
        if self.is_leaf:
            return _leaf_text(self.leaves[0])
        kind = self.treedef.node_data()[0]
        count = len(self.treedef.children())
        if kind is type(None):
            return "None"
        if issubclass(kind, dict):
            keys = ", ".join(repr(getattr(key, "key", key)) for key, _ in self.children())
            return f"{_article(kind)} with keys {keys}" if keys else f"{_article(kind)} without keys"
        if kind in (tuple, list):
            return f"a {kind.__name__} of {count}"
        return f"{kind.__name__} with {count} {'child' if count == 1 else 'children'}"


def children_with_keys(tree: Any) -> list[tuple[Any, Any]] | None:
    """The children of one node, each with its key; None for a leaf."""
    jtu = tree_util()
    one_level = jtu.default_registry.flatten_one_level_with_keys(tree)
    if one_level is None:
        return None
    keyed = list(one_level[0])
    fields = getattr(type(tree), "_fields", ()) if isinstance(tree, tuple) else ()
    if len(fields) == len(keyed) > 0:  # jaxlib 0.10 gives every child of a namedtuple the first field's name
        return [(jtu.GetAttrKey(field), child) for field, (_, child) in zip(fields, keyed)]
    return keyed


class Difference(NamedTuple):
    """A place where two trees part. As text: `at ['w'] has f32[3], expected f32[4]`."""

    path: tuple[Any, ...]
    got: str
    expected: str

    def __str__(self) -> str:
        return f"{self.place()}has {self.got}, expected {self.expected}"

    def place(self) -> str:
        """`at ['w'] `, or nothing at the root."""
        return f"at {tree_util().keystr(self.path)} " if self.path else ""


def differences(
    got: View, expected: View, *, leaf_types: bool = False, prefix: bool = False, path: tuple[Any, ...] = ()
) -> Iterator[Difference]:
    """The places where `got` differs from `expected`, from the left, each at the highest node that differs.

    With `prefix`, a leaf of `got` may stand for a whole subtree of `expected`. With `leaf_types`, two leaves
    also differ if their shapes or dtypes do.
    """
    if got.is_leaf and (prefix or expected.is_leaf):
        if leaf_types and expected.is_leaf and str(got) != str(expected):
            yield Difference(path, str(got), str(expected))
    elif got.is_leaf or expected.is_leaf or not _same_kind(got, expected):
        yield Difference(path, str(got), str(expected))
    elif static := _static_difference(got, expected):
        yield Difference(path, *static)
    else:
        for (key, below), (_, expected_below) in zip(got.children(), expected.children()):
            yield from differences(
                below, expected_below, leaf_types=leaf_types, prefix=prefix, path=(*path, key)
            )


def repeats(prefix: PyTreeDef, full: PyTreeDef) -> list[int] | None:
    """How many leaves of `full` lie below each leaf of `prefix`; None if it is not a prefix."""
    data = prefix.node_data()
    if data is None:
        return [full.num_leaves]
    if full.node_data() is None or not _equal(data, full.node_data()):
        return None
    counts: list[int] = []
    parts, full_parts = prefix.children(), full.children()
    if len(parts) != len(full_parts):
        return None
    for part, full_part in zip(parts, full_parts):
        below = repeats(part, full_part)
        if below is None:
            return None
        counts += below
    return counts


def check_sortable(tree: Any, what: str = "tree", is_leaf=None) -> None:
    """Raises ValueError at the first dict in `tree` whose keys cannot be sorted."""
    for path, keys in _unsortable((), tree, is_leaf):
        shown = ", ".join(f"{key!r} ({type(key).__name__})" for key in keys)
        raise ValueError(
            f"{what}{tree_util().keystr(path)}: the keys of this dict cannot be sorted ('<' not supported): {shown}. "
            "The leaves of a dict are taken in the order of its sorted keys. "
            "Use keys of one type, or collections.OrderedDict, whose own order counts."
        ) from None


def check_hashable(treedef: PyTreeDef, what: str = "argument") -> None:
    """Raises TypeError if static data in `treedef` cannot be compared, as a cache key has to be.

    Such data is an array, or whatever has no plain `==`, in a meta field of a dataclass or in the auxiliary
    data of a registered class.
    """
    for path, owner, name, value in _static_data((), View.of_treedef(treedef)):
        if not _usable_as_key(value):
            field = f"static field {name!r}" if name else "static data"
            raise TypeError(
                f"{what}{tree_util().keystr(path)}: {field} of {owner.__name__} is not hashable: "
                f"it holds {_leaf_text(value)} ({type(value).__name__}). "
                "Static data is part of the key of compiled programs, so == must give True or False. "
                "Make it a data field, or hold a tuple of numbers instead of an array."
            )


def is_sortable(tree: Any, is_leaf=None) -> bool:
    """Whether the keys of every dict in `tree` can be sorted."""
    return next(_unsortable((), tree, is_leaf), None) is None


def _same_kind(got: View, expected: View) -> bool:
    kind, other_kind = got.treedef.node_data()[0], expected.treedef.node_data()[0]
    if kind is not other_kind or len(got.treedef.children()) != len(expected.treedef.children()):
        return False
    return not issubclass(kind, dict) or str(got) == str(expected)


def _static_difference(got: View, expected: View) -> tuple[str, str] | None:
    """The static data of two nodes of one class, as texts, where it differs."""
    (kind, aux), (_, other_aux) = got.treedef.node_data(), expected.treedef.node_data()
    if _equal(aux, other_aux):
        return None
    for (name, value), (_, other) in zip(_parts(got, aux), _parts(expected, other_aux)):
        if not _equal(value, other):
            label = f"{kind.__name__} with static {name or 'data'}"
            return f"{label} = {reprlib.repr(value)}", reprlib.repr(other)
    return f"{kind.__name__} with static data {reprlib.repr(aux)}", reprlib.repr(other_aux)


def _static_data(path: tuple[Any, ...], view: View) -> Iterator[tuple[tuple, type, str | None, Any]]:
    """All static data below `view`: (key path, class that holds it, field name if known, value)."""
    if view.is_leaf:
        return
    kind, aux = view.treedef.node_data()
    if kind not in (dict, tuple, list) and aux is not None:
        for name, value in _parts(view, aux):
            yield path, kind, name, value
    for key, child in view.children():
        yield from _static_data((*path, key), child)


def _parts(view: View, aux: Any) -> list[tuple[str | None, Any]]:
    """The elements of a node's auxiliary data, each with the name of the attribute that holds it, if any."""
    if isinstance(aux, dict):
        return [(str(key), value) for key, value in aux.items()]
    attributes = _attributes(view.rebuilt())
    values = aux if isinstance(aux, tuple | list) else (aux,)
    return [(next((n for n, held in attributes if held is value), None), value) for value in values]


def _attributes(instance: Any) -> list[tuple[str, Any]]:
    names: Any = getattr(instance, "__dict__", None) or getattr(type(instance), "__slots__", ())
    return [(name, getattr(instance, name, None)) for name in names]


def _usable_as_key(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_usable_as_key, value))
    if isinstance(value, dict):
        return all(map(_usable_as_key, value.values()))
    try:
        hash(value)
        other = value
    except TypeError:
        if hasattr(value, "shape"):
            return False
        other = _copied(value)
    try:
        bool(value == other)
    except Exception:  # arrays somewhere inside: the truth value of an array is ambiguous
        return False
    return True


def _copied(value: Any) -> Any:
    """A deep copy if it can be made. Compared with itself, a value hides the arrays that it holds."""
    try:
        return copy.deepcopy(value)
    except Exception:  # whatever a user's class raises
        return value


def _equal(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except Exception:  # arrays in static data
        return False


def _unsortable(path: tuple[Any, ...], tree: Any, is_leaf) -> Iterator[tuple[tuple[Any, ...], list[Any]]]:
    if is_leaf is not None and is_leaf(tree):
        return
    if type(tree) is dict:
        try:
            keyed = [(tree_util().DictKey(key), tree[key]) for key in sorted(tree)]
        except TypeError:
            yield path, list(tree)
            return
    else:
        keyed = children_with_keys(tree) or []
    for key, child in keyed:
        yield from _unsortable((*path, key), child, is_leaf)


def _leaf_text(leaf: Any) -> str:
    """`f32[3,4]` for what has a shape and a dtype, else the type: `an int`."""
    if leaf is _PLACEHOLDER:
        return "a leaf"
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if isinstance(shape, tuple) and hasattr(dtype, "name"):
        return f"{dtype_text(dtype)}[{','.join(map(str, shape))}]"
    return _article(type(leaf))


def _article(kind: type) -> str:
    name = kind.__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
