"""The public face: `__all__`, docstrings, and every example in a docstring of funcml run as it stands."""

import ast
import doctest
import importlib
import inspect
from pathlib import Path
from types import ModuleType

import pytest

from tests.layers import FACE, rank, source_files

FUNCML = Path(__file__).parent.parent / "funcml"
FILES = source_files(FUNCML)
INSIDE = ("interop", "lowering")  # of the last layer, but no user imports them by name
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def is_public(name: str) -> bool:
    """funcml, and the modules right below it that are for users."""
    parts = name.split(".")
    place = ".".join(parts[1:])
    early = rank(place) < FACE and parts[-1] not in ("dtypes", "tree", "tree_util")
    return len(parts) <= 2 and not early and place not in INSIDE and not place.startswith("_")


PUBLIC = [name for name in FILES if is_public(name)]


def faults(module: ModuleType, source: str) -> list[str]:
    """What is wrong with a public module, a sentence each."""
    names = getattr(module, "__all__", None)
    if names is None:
        return [f"{module.__name__} has no __all__"]
    found = [f"{name} stands twice in __all__" for name in sorted(set(names)) if names.count(name) > 1]
    found += [f"{name} is in __all__ and does not exist" for name in names if not hasattr(module, name)]
    found += [f"{name} is public and not in __all__" for name in own_names(module) if name not in names]
    found += [f"{name} has no docstring" for name in names if undocumented(getattr(module, name, None))]
    if names not in (sorted(names), sorted(names, key=str.casefold)) and not is_grouped(source):
        found.append("__all__ is neither sorted nor divided by comments into groups")
    return found


def own_names(module: ModuleType) -> list[str]:
    """The functions and classes that the module itself defines and does not hide behind an underscore."""
    return [name for name, value in vars(module).items()
            if not name.startswith("_") and (inspect.isroutine(value) or inspect.isclass(value))
            and getattr(value, "__module__", None) == module.__name__]


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
    assert "\n".join(faults(module, FILES[name].read_text())) == ""


@pytest.mark.parametrize("name", FILES)
def test_examples_in_docstrings(name):
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    said: list[str] = []
    for example in doctest.DocTestFinder().find(module, module.__name__):
        runner.run(example, out=said.append)
    assert "".join(said) == ""


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
    module = ModuleType("planted")
    exec(source, module.__dict__)
    found = faults(module, source)
    assert found == [] if not fault else any(fault in line for line in found)
