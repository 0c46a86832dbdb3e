"""The public face: `__all__`, docstrings, and every example in a docstring of funcml run as it stands."""

import ast
import doctest
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.layers import FACE, rank, source_files

FUNCML = Path(__file__).parent.parent / "funcml"
FILES = source_files(FUNCML)
EARLY = ("dtypes", "tree", "tree_util")  # of an early layer, and yet for users
INSIDE = ("arguments", "interop", "lowering")  # of the last layer, and yet not for users
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def is_public(name: str) -> bool:
    """funcml, and the modules right below it that are for users."""
    parts = name.split(".")
    place = ".".join(parts[1:])
    late = len(parts) <= 2 and rank(place) >= FACE and place not in INSIDE
    return place in EARLY or (late and not place.startswith("_"))


PUBLIC = [name for name in FILES if is_public(name)]


def faults(module: ModuleType, source: str) -> list[str]:
    """What is wrong with a public module, a sentence each."""
    names = getattr(module, "__all__", None)
    if names is None:
        return [f"{module.__name__} has no __all__"]
    found = [f"{name} stands twice in __all__" for name in sorted(set(names)) if names.count(name) > 1]
    found += [f"{name} is in __all__ and does not exist" for name in names if not hasattr(module, name)]
    found += [f"{name} is public and not in __all__" for name in own_names(module) if name not in names]
    own = [name for name in names if is_from(module, getattr(module, name, None))]
    found += [f"{name} has no docstring" for name in own if undocumented(getattr(module, name))]
    if names not in (sorted(names), sorted(names, key=str.casefold)) and not is_grouped(source):
        found.append("__all__ is neither sorted nor divided by comments into groups")
    return found


def own_names(module: ModuleType) -> list[str]:
    """The functions and classes that the module itself defines and does not hide behind an underscore."""
    return [name for name, value in vars(module).items()
            if not name.startswith("_") and (inspect.isroutine(value) or inspect.isclass(value))
            and getattr(value, "__module__", None) == module.__name__]


def is_from(module: ModuleType, value: object) -> bool:
    """False for what another package made, jax's pytree keys for example."""
    made_in = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None)
    return str(made_in).partition(".")[0] == module.__name__.partition(".")[0]


def undocumented(value: object) -> bool:
    """True for a function, class, module or other callable without a text of its own."""
    if not callable(value) and not inspect.ismodule(value):
        return False
    is_instance = not (inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value))
    return not value.__doc__ or (is_instance and value.__doc__ == type(value).__doc__)


def is_grouped(source: str) -> bool:
    """Whether a comment stands inside the list that is assigned to `__all__`."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            lines = source.splitlines()[node.lineno - 1 : node.end_lineno]
            return any("#" in line for line in lines)
    return False


@pytest.mark.parametrize("name", PUBLIC)
def test_public_module(name):
    module = importlib.import_module(name)
    found = faults(module, FILES[name].read_text())
    assert not found, "\n".join(found)


class CloseNumbers(doctest.OutputChecker):
    """Text as doctest compares it; but numbers with a point only to five digits, since processors round the sixth differently."""

    NUMBER = re.compile(r"-?\d+\.\d*(?:e[+-]?\d+)?")

    def check_output(self, want, got, optionflags):
        if super().check_output(want, got, optionflags):
            return True
        numbers = [[float(x) for x in self.NUMBER.findall(text)] for text in (want, got)]
        if len(numbers[0]) != len(numbers[1]) or not np.allclose(*numbers, rtol=1e-5, atol=1e-12):
            return False
        return super().check_output(self.NUMBER.sub("#", want), self.NUMBER.sub("#", got), optionflags)


def run_examples(module: ModuleType) -> str:
    """What doctest says about the module's examples: nothing, if all is well."""
    runner = doctest.DocTestRunner(CloseNumbers(), optionflags=OPTIONS, verbose=False)
    said: list[str] = []
    for example in doctest.DocTestFinder().find(module, module.__name__):
        runner.run(example, out=said.append)
    return "".join(said)


@pytest.mark.parametrize("name", FILES)
def test_examples_in_docstrings(name):
    said = run_examples(importlib.import_module(name))
    assert not said, said


@pytest.mark.parametrize(("want", "got", "same"), [
    ("Array(1.2345678, dtype=float32)", "Array(1.2345679, dtype=float32)", True),
    ("Array(1.2345678, dtype=float32)", "Array(1.2346, dtype=float32)", False),
    ("Array(1.2345678, dtype=float32)", "Array(1.2345679, dtype=float64)", False),
    ("[1.0, 2.0]", "[1.0]", False),
    ("[ 1.5, -2.25]", "[1.5, -2.2500001]", False),
    ("[1.5, -2.25]", "[1.5, -2.2500001]", True),
])  # fmt: skip
def test_examples_may_differ_in_the_last_digits_only(want, got, same):
    assert CloseNumbers().check_output(want + "\n", got + "\n", OPTIONS) == same


def planted(source: str) -> ModuleType:
    module = ModuleType("planted")
    exec(source, module.__dict__)
    return module


GOOD = '''
__all__ = ["Thing", "documented", "pi"]
pi = 3.14
class Thing:
    """A thing."""
def documented():
    """Does it."""
def _hidden():
    pass
'''


@pytest.mark.parametrize("source, fault", [
    (GOOD, ""),
    ("x = 1", "has no __all__"),
    (GOOD.replace('"pi"', '"pi", "tau"'), "tau is in __all__ and does not exist"),
    (GOOD.replace('"pi"', '"pi", "pi"'), "pi stands twice"),
    (GOOD.replace("_hidden", "shown"), "shown is public and not in __all__"),
    (GOOD.replace('"""Does it."""', "pass"), "documented has no docstring"),
    (GOOD.replace('["Thing", ', '["pi", "Thing", ').replace(', "pi"]', "]"), "neither sorted nor divided"),
    (GOOD.replace('["Thing", ', '[\n    # all\n    "pi", "Thing", ').replace(', "pi"]', "]"), ""),
    (GOOD + "class Op:\n    'An operation.'\n    def __call__(self): ...\n"
            "__all__ = ['Op', 'Thing', 'add', 'documented', 'pi']\nadd = Op()", "add has no docstring"),
], ids=["good", "absent", "missing", "twice", "forgotten", "undocumented", "unsorted", "grouped", "instance"])
def test_faults_are_seen(source, fault):
    found = faults(planted(source), source)
    assert found == [] if not fault else any(fault in line for line in found)


@pytest.mark.parametrize("result, said", [("3", ""), ("4", "Expected:")])
def test_a_wrong_example_is_seen(result, said):
    module = planted(f"def add(x, y):\n    '>>> add(1, 2)\\n{result}'\n    return x + y")
    assert said in run_examples(module) and bool(said) == bool(run_examples(module))
