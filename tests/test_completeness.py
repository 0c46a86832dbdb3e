"""How much of JAX's public names is here under the same path: each of them, or a reason that a user accepts.

The names are read from JAX itself, so a new version of it shows here first. Run with `-s` to see the percentage.
"""

import fnmatch
import importlib
import pkgutil
from types import ModuleType

import jax.scipy
import pytest

import funcml

NAMESPACES = (
    "numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "nn", "nn.initializers", "random", "image", "ops",
    "flatten_util", "tree_util", "tree", "scipy",
    *[m.name.removeprefix("jax.") for m in pkgutil.walk_packages(jax.scipy.__path__, "jax.scipy.")],
)  # fmt: skip

#: name, or a pattern of names -> why it is not here
ABSENT = {
    "lax.*_p": "a primitive of JAX for what is a function of other primitives here, or a collective",
    "lax.linalg.*_p": "a primitive object of JAX",
    "lax.rng_uniform": "a generator with a hidden state, which gives other numbers at each run; funcml.random draws from keys",
    "random.*_p": "a primitive object of JAX",
    "lax.after_all": "programs hold no tokens: effects stay in the order in which they were recorded",
    "lax.create_token": "programs hold no tokens: effects stay in the order in which they were recorded",
    "lax.dce_sink": "keeps an unused value from being removed, which `debug.callback` does here",
    "numpy.int1": "StableHLO has no integers of one bit: JAX makes the array and cannot compute with it",
    "numpy.uint1": "StableHLO has no integers of one bit: JAX makes the array and cannot compute with it",
    "numpy.float6_e2m3fn": "XLA refuses floats of six bits",
    "numpy.float6_e3m2fn": "XLA refuses floats of six bits",
}

#: names that JAX 0.10 has and 0.12 has not, or the other way round
OF_SOME_VERSIONS = {
    "numpy.minmax", "numpy.top_k", "lax.log2", "lax.one_minus_square", "lax.polynomial", "lax.psum_scatter_start", "random.Key",
    "scipy.special.erfcinv", "lax.precv", "lax.psend",
}  # fmt: skip


def prefixed(namespace: str, names: str) -> set[str]:
    """The names, each behind its namespace."""
    return {f"{namespace}.{name}" for name in names.split()}


#: names that are being built, by family
TO_COME: dict[str, set[str]] = {
    "lax": prefixed("lax", """
        ragged_all_to_all with_sharding_constraint
    """),
}  # end of the names to come


def names_of_jax() -> list[str]:
    """The public names of each namespace, without those of modules that are no namespaces."""
    found = []
    for namespace in NAMESPACES:
        module = importlib.import_module(f"jax.{namespace}")
        for name in dir(module):
            if not name.startswith("_") and not is_inner_module(namespace, getattr(module, name)):
                found.append(f"{namespace}.{name}")
    return found


def is_inner_module(namespace: str, value: object) -> bool:
    """Whether a value is a module that is none of the namespaces."""
    return isinstance(value, ModuleType) and value.__name__.removeprefix("jax.") not in NAMESPACES


def is_here(path: str) -> bool:
    """Whether `funcml.<path>` exists, by attributes or as a module."""
    value: object = funcml
    for name in path.split("."):
        if not hasattr(value, name):
            try:
                importlib.import_module(f"funcml.{path.rpartition('.')[0]}")
            except ImportError:
                return False
        if not hasattr(value, name):
            return False
        value = getattr(value, name)
    return True


def reason(path: str, table=ABSENT) -> str | None:
    """Why a name is not here, if there is a reason for it."""
    return next((why for pattern, why in table.items() if fnmatch.fnmatchcase(path, pattern)), None)


NAMES = names_of_jax()
HERE = {path for path in NAMES if is_here(path)}


def test_each_name_is_here_or_has_a_reason():
    excused = OF_SOME_VERSIONS.union(*TO_COME.values())
    lost = [path for path in NAMES if path not in HERE and path not in excused and not reason(path)]
    wanted = [path for path in NAMES if not reason(path)]
    print(f"\n{100 * len(HERE & set(wanted)) / len(wanted):.1f} % of {len(wanted)} names of JAX {jax.__version__}")
    assert not lost, "neither here nor absent for a reason: " + " ".join(lost)


@pytest.mark.parametrize("pattern", ABSENT)
def test_no_reason_is_stale(pattern):
    meant = [path for path in NAMES if fnmatch.fnmatchcase(path, pattern)]
    assert meant, f"JAX has no name {pattern}"
    present = [path for path in meant if path in HERE]
    assert not present or "*" in pattern, f"{present} are here; strike them from the list"


def test_names_are_read():
    assert len(NAMES) > 1000
    assert {"numpy.sin", "scipy.stats.norm.pdf", "lax.linalg.cholesky", "tree.map"} <= set(NAMES)


@pytest.mark.parametrize("path, there", [("numpy.sin", True), ("numpy.linalg.norm", True), ("numpy.no_such_name", False)])
def test_presence_is_seen(path, there):
    assert is_here(path) == there


def test_a_reason_is_found_by_pattern():
    assert reason("lax.a_p", {"lax.*_p": "why"}) == "why" and reason("lax.a", {"lax.*_p": "why"}) is None
