"""funcml.tree: against jax.tree where both define the answer, else by the words of the messages."""

import collections
import dataclasses
import functools
import operator
import pickle
import subprocess
import sys

import jax
import jax.tree_util as jtu
import numpy as np
import optax
import pytest

from funcml import tree, tree_util
from funcml.core import registry

Point = collections.namedtuple("Point", "x y")


@tree.register_dataclass
@dataclasses.dataclass
class Layer:
    w: object
    b: object
    name: object = tree.static(default="dense")


@tree.register_pytree_node_class
class Box:
    """A class without keys, whose static data is a dict."""

    def __init__(self, inside, label):
        self.inside, self.label = inside, label

    def tree_flatten(self):
        return (self.inside,), {"label": self.label}

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(children[0], aux["label"])

    def __eq__(self, other):
        return isinstance(other, Box) and (self.inside, self.label) == (other.inside, other.label)


@tree.register_pytree_with_keys_class
class Strict:
    """A class that refuses leaves that are not numbers, as its unflattening is asked to with placeholders."""

    def __init__(self, value):
        if not isinstance(value, int | float):
            raise TypeError("a number, please")
        self.value = value

    def tree_flatten_with_keys(self):
        return ((jtu.GetAttrKey("value"), self.value),), None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)


@tree.register_static
@dataclasses.dataclass(frozen=True)
class Mode:
    name: str


PARAMS = {"w": np.ones((2, 3), np.float32), "b": np.zeros(3, np.float32)}
TREES = {
    "leaf": 1,
    "none": None,
    "nested": {"b": [1, (2, None)], "a": {"z": 3, "y": ()}},
    "namedtuple": Point(1, Point(2, 3)),
    "ordered": collections.OrderedDict([("b", 1), ("a", {"d": 2, "c": 3})]),
    "default": collections.defaultdict(int, b=1, a=[2]),
    "dataclass": Layer(1, {"z": 2, "y": 3}),
    "class": [Box({"b": 1, "a": 2}, "l")],
    "static": (Mode("train"), 4),
    "partial": tree.Partial(operator.add, 5),
    "optax": optax.chain(optax.clip(1.0), optax.adam(1e-3)).init({"w": np.ones(2), "b": np.ones(3)}),
    "masked": optax.masked(optax.sgd(0.1, 0.9), {"w": True, "b": False}).init(
        {"w": np.ones(2), "b": np.ones(1)}
    ),
}


def same(a, b):
    """Equal leaves and structure."""
    (xs, s), (ys, t) = jtu.tree_flatten(a), jtu.tree_flatten(b)
    return s == t and all(np.array_equal(x, y) for x, y in zip(xs, ys))


@pytest.mark.parametrize("name", TREES)
def test_agrees_with_jax(name):
    t = TREES[name]
    leaves, treedef = tree.flatten(t)
    jax_leaves, jax_treedef = jax.tree.flatten(t)
    assert treedef == jax_treedef and hash(treedef) == hash(jax_treedef)
    assert len(leaves) == len(jax_leaves) and all(map(operator.is_, leaves, jax_leaves))
    assert all(map(operator.is_, tree.leaves(t), leaves)) and tree.structure(t) == treedef
    assert same(tree.unflatten(treedef, leaves), t)
    keyed, jax_keyed = tree.leaves_with_path(t), jtu.tree_leaves_with_path(t)
    assert [path for path, _ in keyed] == [path for path, _ in jax_keyed]
    assert all(ours is theirs for (_, ours), (_, theirs) in zip(keyed, jax_keyed))

    def double(x):
        return 2 * x

    def named(path, x, y):
        return f"{jtu.keystr(path)} {np.sum(x)} {np.sum(y)}"

    assert same(tree.map(double, t), jax.tree.map(double, t))
    assert same(tree.map(operator.add, t, t), jax.tree.map(operator.add, t, t))
    assert same(tree.map_with_path(named, t, t), jtu.tree_map_with_path(named, t, t))
    truths = jax.tree.map(np.all, t)
    assert tree.all(truths) == jax.tree.all(truths)


def test_is_leaf():
    t = {"b": (1, None), "a": [(2,), 3]}

    def is_tuple(x):
        return isinstance(x, tuple)

    for is_leaf in (None, is_tuple, lambda x: x is None, lambda x: isinstance(x, list), lambda x: True):
        assert tree.flatten(t, is_leaf=is_leaf) == jax.tree.flatten(t, is_leaf=is_leaf)
        assert tree.leaves_with_path(t, is_leaf=is_leaf) == jtu.tree_leaves_with_path(t, is_leaf=is_leaf)
        for ours, theirs in ((tree.map, jax.tree.map), (tree.map_with_path, jtu.tree_map_with_path)):
            expected = theirs(lambda *x: str(x), t, is_leaf=is_leaf)
            assert ours(lambda *x: str(x), t, is_leaf=is_leaf) == expected
    at_a = dict(is_leaf=lambda path, x: bool(path) and path[0].key == "a", is_leaf_takes_path=True)
    assert tree.flatten_with_path(t, **at_a) == jtu.tree_flatten_with_path(t, **at_a)
    assert tree.map_with_path(lambda path, x: x, t, **at_a) == t


def test_map_takes_deeper_trees_after_the_first():
    first, other = {"a": 1, "b": None}, {"a": [2, 3], "b": None}
    assert tree.map(lambda x, y: (x, y), first, other) == {"a": (1, [2, 3]), "b": None}


def test_reductions():
    t = {"b": [1.0, 2.0], "a": (3.0, None)}
    assert tree.reduce(lambda x, y: x + [y], t, []) == [3.0, 1.0, 2.0]
    assert tree.reduce(operator.sub, t) == 0.0
    assert tree.reduce(operator.sub, t, initializer=10.0) == 4.0
    assert tree.reduce(lambda n, x: n + isinstance(x, list), t, 0, is_leaf=lambda x: isinstance(x, list)) == 1
    nested = functools.partial(tree.reduce_associative, lambda x, y: (x, y))
    assert nested([1, 2, 3, 4, 5]) == jax.tree.reduce_associative(lambda x, y: (x, y), [1, 2, 3, 4, 5])
    assert nested([], identity=7) == 7 and nested([3], identity=7) == 3
    with pytest.raises(TypeError, match="no leaves; give identity="):
        nested(())
    assert tree.all([True, 1]) and not tree.all([True, 0]) and tree.all({})


def test_transpose():
    outer, inner = tree.structure([0, 0, 0]), tree.structure({"a": 0, "b": (0, 0)})
    t = [{"a": i, "b": (10 * i, 100 * i)} for i in (1, 2, 3)]
    expected = {"a": [1, 2, 3], "b": ([10, 20, 30], [100, 200, 300])}
    assert tree.transpose(outer, inner, t) == expected == tree.transpose(outer, None, t)
    with pytest.raises(TypeError, match=r"Mismatch in tree.transpose: .* outer PyTreeDef\(\[\*, \*\]\)"):
        tree.transpose(tree.structure([0, 0]), inner, t)
    with pytest.raises(TypeError, match="Mismatch"):
        tree.transpose(outer, tree.structure((0, 0)), t)


def test_broadcast():
    full = {"b": (0, {"d": 0, "c": 0}), "a": None}
    assert tree.broadcast(5, full) == {"b": (5, {"d": 5, "c": 5}), "a": None}
    assert tree.broadcast({"b": (1, 2), "a": None}, full) == {"b": (1, {"d": 2, "c": 2}), "a": None}
    assert list(tree.broadcast({"b": (1, 2), "a": None}, full)) == ["b", "a"]
    assert tree.broadcast([(1, 2)], [3], is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2)]
    with pytest.raises(ValueError, match=r"prefix_tree\['b'\] is a tuple of 1, where .* a tuple of 2"):
        tree.broadcast({"b": (1,), "a": None}, full)


# --- the order of dict keys ---


def orders(t):
    """The keys of every dict, outermost first."""
    if isinstance(t, dict):
        return [list(t), *(orders(v) for v in t.values())]
    if isinstance(t, Layer):
        return orders([t.w, t.b])
    if isinstance(t, Box):
        return orders(t.inside)
    return [orders(x) for x in t] if isinstance(t, tuple | list) else []


UNSORTED = {
    "flat": {"b": 1, "a": 2},
    "nested": {"b": {"z": 1, "y": [2, {"q": 3, "p": None}]}, "a": ()},
    "in a list": [{"a": 1}, {"b": 2, "a": (3, {"d": 4, "c": 5})}],
    "in a namedtuple": Point({"b": 1, "a": 2}, {"a": 3, "b": 4}),
    "in a dataclass": Layer({"b": 1, "a": 2}, [{"d": 3, "c": 4}]),
    "in a class": {"y": Box({"b": 1, "a": 2}, "l"), "x": 0},
    "in an OrderedDict": collections.OrderedDict(z={"b": 1, "a": 2}, y=3),
    "in a defaultdict": collections.defaultdict(dict, y={"b": 1, "a": 2}),
    "nones": {"b": None, "a": None},
    "ints": {2: 1, 1: 2},
}


@pytest.mark.parametrize("name", UNSORTED)
def test_rebuilt_trees_keep_the_order_of_keys(name):
    t = UNSORTED[name]
    leaves, treedef = tree.flatten(t)
    seen = []
    mapped = tree.map(lambda x: seen.append(x) or 10 * x, t)
    assert orders(mapped) == orders(t)
    assert mapped == treedef.unflatten([10 * leaf for leaf in leaves]) and type(mapped) is type(t)
    assert seen == leaves, "leaves are visited in the order of flatten"
    assert orders(tree.map_with_path(lambda path, x: x, t)) == orders(t)
    assert orders(tree.broadcast(0, t)) == orders(t)
    assert tree.map(lambda x: x, t, is_leaf=lambda x: x == {"b": 1, "a": 2}) == t
    build = tree.unflattener(t)
    assert build(leaves) == t and orders(build(iter(leaves))) == orders(t)
    for wrong in ([*leaves, 0], leaves[:-1]):
        if len(wrong) != len(leaves):
            with pytest.raises(ValueError):
                build(wrong)


def test_unflattener_of_a_sorted_tree_is_the_registry_s():
    build = tree.unflattener({"a": [{"b": 1, "c": 2}], "z": None})
    assert build.__self__ == tree.structure({"a": [{"b": 1, "c": 2}], "z": None})


def test_order_does_not_enter_the_structure():
    assert tree.structure({"b": 1, "a": 2}) == tree.structure({"a": 1, "b": 2})
    assert tree.map(operator.add, {"b": 1, "a": 2}, {"a": 10, "b": 20}) == {"b": 21, "a": 12}


def test_is_leaf_with_unsorted_dicts_inside_and_around():
    t = {"b": {"d": 1, "c": 2}, "a": [{"y": 3, "x": 4}]}
    mapped = tree.map(lambda x: x, t, is_leaf=lambda x: isinstance(x, dict) and "d" in x)
    assert mapped["b"] is t["b"] and orders(mapped) == orders(t)
    mapped = tree.map(lambda x: x, t, is_leaf=lambda x: isinstance(x, list))
    assert mapped["a"] is t["a"] and orders(mapped) == orders(t)


def test_unsortable_keys():
    assert tree.map(lambda x: x + 1, {"y": 42, 1: 7}) == {"y": 43, 1: 8}
    nested = [{"p": {1: 2, "y": (3, None)}}]
    doubled = tree.map(operator.add, nested, [{"p": {"y": (3, None), 1: 2}}])
    assert doubled == [{"p": {1: 4, "y": (6, None)}}] and orders(doubled) == orders(nested)
    with pytest.raises(ValueError, match=r"got keys \['z'\] where the first .* with keys \[1, 'y'\]"):
        tree.map(operator.add, nested, [{"p": {"z": 1}}])
    words = (
        r"tree\[0\]\['p'\]: the keys of this dict cannot be sorted \('<' not supported\): 1 \(int\), 'y' \(str\)\..*"
        r"Use keys of one type, or collections.OrderedDict"
    )
    for function in (tree.flatten, tree.leaves, tree.structure, tree.leaves_with_path, tree.unflattener):
        with pytest.raises(ValueError, match=words):
            function(nested)
    with pytest.raises(ValueError, match=r"argument 0\.y: the keys"):
        tree.check_sortable(Point(1, nested[0]["p"]), "argument 0")
    tree.check_sortable(nested, is_leaf=lambda x: isinstance(x, dict) and 1 in x)
    tree.check_sortable({"a": 1})
    assert tree.leaves(collections.OrderedDict([("y", 1), (1, 2)])) == [1, 2]


def test_errors_of_user_functions_pass_through():
    def fails(x):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="^mine$"):
        tree.map(fails, [1])
    with pytest.raises(ValueError, match="^mine$"):
        tree.flatten([1], is_leaf=fails)
    with pytest.raises(ValueError, match="^mine$"):
        tree.map(lambda x: x, [1], is_leaf=fails)


# --- mismatches ---


@pytest.mark.parametrize(
    "first, other, words",
    [
        ([1, 2], [1, 2, 3], r"tree 2 has a list of 3, where tree 1 has a list of 2"),
        ({"a": (1, 2)}, {"a": [1, 2]}, r"tree 2 at \['a'\] has a list of 2, where tree 1 has a tuple of 2"),
        ({"a": 1}, {"b": 1}, r"tree 2 has a dict with keys 'b', where tree 1 has a dict with keys 'a'"),
        ({"a": [1]}, {"a": np.ones(3)}, r"tree 2 at \['a'\] has f64\[3\], where tree 1 has a list of 1"),
        (Point(1, None), Point(1, 2), r"tree 2 at \.y has an int, where tree 1 has None"),
        (Layer(1, 2), Layer(1, 2, "conv"), r"tree 2 has 'conv', where .* Layer with static name = 'dense'"),
        (Box([1], "l"), Box([], "l"), r"tree 2 at \[<flat index 0>\] has a list of 0"),
        (
            collections.OrderedDict(a=1, b=2),
            collections.OrderedDict(b=1, a=2),
            "tree 2 has an OrderedDict with keys 'b', 'a', where tree 1 has .* with keys 'a', 'b'",
        ),
    ],
)
def test_map_says_where_trees_differ(first, other, words):
    for function in (tree.map, tree.map_with_path):
        with pytest.raises(ValueError, match=rf"tree\.{function.__name__}: {words}"):
            function(lambda *x: x, first, other)


def test_map_names_the_tree_at_fault():
    with pytest.raises(ValueError, match=r"tree 3 at \[1\] has an int, where tree 1 has a tuple of 1"):
        tree.map(lambda *x: x, [0, (1,)], [0, (1,)], [0, 1])


def test_diff():
    f32 = np.float32
    got = {"layer": {"w": np.ones(3, f32), "b": 1}, "mu": {"a": 1, "b": 2}, "n": None}
    expected = {"layer": {"w": np.ones(4, f32), "b": 1.0}, "mu": (1, 2), "n": None}
    assert [str(d) for d in tree.diff(got, expected)] == [
        "at ['layer']['b'] has an int, expected a float",
        "at ['layer']['w'] has f32[3], expected f32[4]",
        "at ['mu'] has a dict with keys 'a', 'b', expected a tuple of 2",
    ]
    assert len(tree.diff(got, expected, limit=1)) == 1
    assert tree.diff(got, got) == []
    assert [str(d) for d in tree.diff(np.ones(3, f32), np.ones(3))] == ["has f32[3], expected f64[3]"]
    place = tree.diff([Layer(1, None)], [Layer(1, ())])[0]
    assert (place.path, place.got, place.expected) == (
        (tree.SequenceKey(0), tree.GetAttrKey("b")), "None", "a tuple of 0",
    )
    state = TREES["optax"]
    assert str(tree.diff(state, state[:1])[0]) == "has a tuple of 2, expected a tuple of 1"


def test_diff_of_static_data():
    found = tree.diff(Layer(1, 2, "dense"), Layer(1, 2, "conv"))
    assert [str(d) for d in found] == ["has Layer with static name = 'dense', expected 'conv'"]
    found = tree.diff([Box(1, "l")], [Box(1, "m")])
    assert [str(d) for d in found] == ["at [0] has Box with static label = 'l', expected 'm'"]
    found = tree.diff(Layer(1, 2, np.ones(2)), Layer(1, 2, np.ones(2)))
    assert "static name = array([1., 1.])" in str(found[0])


def test_explain_difference():
    a, b = tree.structure(Point(1, {"a": 1, "b": 2})), tree.structure(Point(1, (1, 2)))
    assert tree.explain_difference(a, b) == (
        "tree structure differs at .y: got a dict with keys 'a', 'b', expected a tuple of 2"
    )
    assert tree.explain_difference(a, a) == ""
    assert tree.explain_difference(tree.structure(1), tree.structure([1]), "the carry of scan") == (
        "the carry of scan differs at the root: got a leaf, expected a list of 1"
    )
    strict = tree.explain_difference(tree.structure([Strict(1)]), tree.structure([Strict]))
    assert strict == "tree structure differs at [0]: got Strict with 1 child, expected a leaf"


def test_flatten_prefix():
    full = ({"b": 1, "a": (2, 3)}, None, [4])
    expected = [0, 0, 0, None]
    for whole in (full, tree.structure(full)):
        assert tree.flatten_prefix((0, None, None), whole) == expected
        assert tree.flatten_prefix(7, whole) == [7] * 4
        assert tree.flatten_prefix(None, whole) == [None] * 4
        assert tree.flatten_prefix(({"a": (1, None), "b": 2}, None, 3), whole) == [1, None, 2, 3]
        assert tree.flatten_prefix((0, 5, [6]), whole) == [0, 0, 0, 6]
    assert tree.flatten_prefix([(1, 2)], [[3, 4]], is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2)] * 2
    assert tree.flatten_prefix((0, 1), tree.structure((Strict(1), Strict(2)))) == [0, 1]


@pytest.mark.parametrize(
    "prefix, full, words",
    [
        ((0, 0), (1, 2, 3), r"in_axes is a tuple of 2, where the tree has a tuple of 3"),
        ((0, {"a": 0}), (1, {"b": 2}), r"in_axes\[1\] is a dict with keys 'a', where .* with keys 'b'"),
        (({"a": [0]},), ({"a": 1.0},), r"in_axes\[0\]\['a'\] is a list of 1, where the tree has a float"),
        ([0], (1,), r"in_axes is a list of 1, where the tree has a tuple of 1"),
    ],
)
def test_flatten_prefix_says_where_it_is_not_one(prefix, full, words):
    with pytest.raises(ValueError, match=f"in_axes must be a prefix of the tree it belongs to; pytree structure error: {words}"):
        tree.flatten_prefix(prefix, full)
    with pytest.raises(ValueError, match="out_axes must be a prefix"):
        tree.flatten_prefix(prefix, tree.structure(full), "out_axes")


# --- static data ---


def test_metadata_of_static_fields_has_the_last_word():
    assert tree.static(metadata={"unit": "m"}).metadata == {"static": True, "unit": "m"}
    assert tree.static(metadata={"static": False}).metadata == {"static": False}



def test_check_hashable():
    for treedef in map(tree.structure, TREES.values()):
        tree.check_hashable(treedef)
    usable = ["dense", 1.5, (1, ("a", None)), operator.add, np, np.float32(1), np.dtype("int8")]
    for value in [*usable, usable, {"a": 2}, {3}]:
        tree.check_hashable(tree.structure(Layer(1, 2, value)))
        tree.check_hashable(tree.structure(Box(1, value)))


@dataclasses.dataclass
class Config:
    values: object


@pytest.mark.parametrize(
    "holder, words",
    [
        (Layer(1, 2, np.ones(3)), r"argument 0\[1\]: static field 'name' of Layer .* f64\[3\] \(ndarray\)"),
        (Layer(1, 2, np.ones(1)), r"static field 'name' of Layer .* holds f64\[1\]"),
        (Layer(1, 2, (1, [np.ones(3)])), r"static field 'name' of Layer .* holds a tuple"),
        (Layer(1, 2, Config((np.ones(3),))), r"static field 'name' of Layer .* holds a Config"),
        (Box(1, np.ones(3)), r"argument 0\[1\]: static field 'label' of Box .* holds f64\[3\]"),
        ({"k": Layer(Box(1, np.ones(2)), 2)}, r"argument 0\[1\]\['k'\]\.w: static field 'label' of Box"),
    ],
)
def test_check_hashable_names_the_field(holder, words):
    with pytest.raises(TypeError, match=f"{words}.*Make it a data field"):
        tree.check_hashable(tree.structure((0, holder)), "argument 0")


# --- registration, treedefs, keys ---


def test_registered_classes_are_known_to_jax():
    for t in (Layer(1, 2), Box(1, "l"), Mode("train")):
        assert same(jax.tree.map(lambda x: x, t), t)
        assert type(jax.eval_shape(lambda x: x, t)) is type(t)
    assert jax.tree.leaves(Mode("eval")) == []


def test_register_dataclass_with_field_names():
    @tree.register_dataclass(data_fields=["x"], meta_fields=["n"])
    @dataclasses.dataclass
    class Named:
        n: int
        x: object

    assert tree.leaves(Named(3, (1, 2))) == [1, 2]
    assert tree.structure(Named(3, 1)) != tree.structure(Named(4, 1))

    with pytest.raises(ValueError, match="Missing fields: {'n'}"):
        tree.register_dataclass(dataclasses.make_dataclass("Short", ["n", "x"]), ["x"], [])
    with pytest.raises(ValueError, match="Duplicate"):
        tree.register_dataclass(Layer)


def test_register_functions():
    class Pair:
        def __init__(self, x, y):
            self.x, self.y = x, y

    tree.register_pytree_with_keys(
        Pair,
        lambda p: (((tree.GetAttrKey("x"), p.x), (tree.GetAttrKey("y"), p.y)), None),
        lambda aux, children: Pair(*children),
    )
    assert [tree.keystr(path) for path, _ in tree.leaves_with_path(Pair(1, [2]))] == [".x", ".y[0]"]
    assert tree.map(lambda x: -x, Pair(1, [2])).y == [-2]


def test_keys_and_keystr():
    keys = (tree.DictKey("a"), tree.SequenceKey(0), tree.GetAttrKey("mu"), tree.FlattenedIndexKey(2))
    assert tree.keystr(keys) == "['a'][0].mu[<flat index 2>]"
    assert tree.keystr(keys, simple=True, separator="/") == "a/0/mu/2"
    assert tree.DictKey is jtu.DictKey and tree.PyTreeDef is jtu.PyTreeDef and tree.Partial is jtu.Partial


def test_one_level():
    assert tree.flatten_one_level({"b": [1], "a": 2}) == ((2, [1]), ("a", "b"))
    keyed, _ = tree.flatten_one_level_with_keys(Point(1, [2]))
    assert keyed == [(tree.GetAttrKey("x"), 1), (tree.GetAttrKey("y"), [2])]
    with pytest.raises(ValueError):
        tree.flatten_one_level_with_keys(1)


def test_treedefs():
    treedef = tree.structure([(1, 2), 3, {"a": None}])
    assert tree.treedef_children(treedef) == [tree.structure(t) for t in ((1, 2), 3, {"a": None})]
    assert tree.treedef_tuple([treedef, tree.structure(0)]) == tree.structure(([(1, 2), 3, {"a": None}], 0))
    assert tree.treedef_is_leaf(tree.structure(0)) and not tree.treedef_is_leaf(treedef)
    assert tree.all_leaves([1, 2]) and not tree.all_leaves([1, None])
    assert tree.all_leaves([(1, 2)], is_leaf=lambda x: isinstance(x, tuple))
    assert tree.is_tree_node(Layer) and tree.is_tree_node(Point) and not tree.is_tree_node(np.ndarray)
    with pytest.raises(ValueError):
        tree.unflatten(treedef, [1])


@pytest.mark.parametrize("name", ["nested", "namedtuple", "ordered", "default", "optax"])
def test_treedefs_pickle(name):
    treedef = tree.structure(TREES[name])
    again = pickle.loads(pickle.dumps(treedef))
    assert again == treedef and hash(again) == hash(treedef)


def test_tree_util_has_the_names_of_jax():
    ours = set(tree_util.__all__)
    theirs = {name for name in vars(jtu) if not name.startswith("_")}
    assert ours <= theirs
    assert {name for name in theirs - ours if callable(getattr(jtu, name))} == set()
    assert all(getattr(tree_util, name) is not None for name in ours)
    with pytest.raises(AttributeError, match="'funcml.tree_util' has no attribute 'nope'"):
        _ = tree_util.nope
    with pytest.raises(AttributeError, match="'funcml.tree' has no attribute 'nope'"):
        _ = tree.nope


def test_tree_has_the_names_of_jax():
    theirs = {name for name in vars(jax.tree) if not name.startswith("_")}
    assert theirs <= set(tree.__all__)
    assert all(hasattr(tree, name) for name in tree.__all__)


# --- loading ---


def run_python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_does_not_load_jax_and_first_use_does():
    out = run_python("""
import collections, sys
from funcml import tree
from funcml.core.registry import on_load
class Early:
    def __init__(self, x): self.x = x
on_load(lambda: tree.register_pytree_node(Early, lambda e: ((e.x,), None), lambda _, xs: Early(*xs)))
print([m for m in sys.modules if m.split('.')[0] in ('jax', 'jaxlib')])
stub = tree.flatten_leaves
print(stub([Early(1), collections.OrderedDict(b=2, a=3), collections.defaultdict(int, c=4)])[0])
print(tree.flatten_leaves is not stub, stub([5])[0])
import jax
print(jax.tree.leaves(Early(6)))
from jax._src import xla_bridge
print(xla_bridge.backends_are_initialized())
""")
    assert out.splitlines() == ["[]", "[1, 2, 3, 4]", "True [5]", "[6]", "False"]


def test_on_load_runs_at_once_when_loaded():
    called = []
    registry.tree_util()
    registry.on_load(lambda: called.append(1))
    assert called == [1]
