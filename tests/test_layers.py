"""The order of the layers, read from the source; and that the reader sees each kind of breach."""

from pathlib import Path

import pytest

from tests.layers import violations

FUNCML = Path(__file__).parent.parent / "funcml"


def test_funcml_keeps_its_layers():
    found = violations(FUNCML)
    assert not found, "\n".join(found)


def planted(tmp_path: Path, files: dict[str, str]) -> list[str]:
    """The violations in a package `p` made of `files`: module -> source."""
    root = tmp_path / "p"
    for name, source in {"__init__": "", **files}.items():
        path = root / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(source)
    return violations(root)


IN_ORDER = {
    "__init__": """
from . import numpy
from .api import grad
import p.lowering.execute
""",
    "core/ir": """
import numpy as np
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from p.core.trace import Tracer
""",
    "core/trace": """
from p.core import ir
from .ir import Var
""",
    "core/registry": """
def tree_util():
    from jax import tree_util
    return tree_util
""",
    "tree": "from p.core.registry import tree_util",
    "primitives/elementwise": """
from ..core.ir import Var
from ..tree import flatten
""",
    "transforms/jvp": """'Unlike jax.jvp and jax.numpy.'
from p.primitives.elementwise import sin
""",
    "control_flow/scan": "from ..transforms import jvp",
    "lowering/pjrt": """
def client():
    import jax.extend.backend as jb
    from jax._src import xla_bridge
    return jb.get_backend()
""",
    "lowering/execute": """
from p.lowering import pjrt
from p.control_flow.scan import scan
""",
    "api": "from p.lowering.execute import run",
    "numpy": "from p import api",
    "interop/read": """
import jax
sin = jax.numpy.sin
""",
    "optax": """
def __getattr__(name):
    import optax
    return getattr(optax, name)
""",
}


def test_a_package_in_order_has_no_violations(tmp_path):
    assert planted(tmp_path, IN_ORDER) == []


BREACHES = {
    "an import to the right": (
        {"core/ir": "from p.primitives.elementwise import sin", "primitives/elementwise": ""},
        "core/ir.py:1: upward import of p.primitives.elementwise",
    ),
    "a relative import to the right": (
        {"transforms/jvp": "x = 1\nfrom .. import api", "api": ""},
        "transforms/jvp.py:2: upward import of p.api",
    ),
    "core imports dtypes": (
        {"core/avals": "import p.dtypes", "dtypes": ""},
        "core/avals.py:1: upward import of p.dtypes",
    ),
    "a module imports the package itself": (
        {"numpy": "from p import grad"},
        "numpy.py:1: upward import of p",
    ),
    "two modules of one layer in a circle": (
        {"api": "from p import numpy", "numpy": "from p.api import jit"},
        "cycle: ",
    ),
    "a circle through a package's __init__": (
        {
            "numpy/__init__": "from p.numpy import linalg",
            "numpy/linalg": "import p.api",
            "numpy/basic": "",
            "api": "import p.numpy.basic",
        },
        "cycle: ",
    ),
    "a module that takes a name from its own package": (
        {"numpy/linalg": "from . import add", "numpy/__init__": "from .linalg import norm\nadd = 1"},
        "cycle: ",
    ),
    "an import inside a function": (
        {"api": "def jit():\n    from p.core import ir", "core/ir": ""},
        "api.py:2: import inside a function of p.core.ir",
    ),
    "an import inside a method, of the standard library": (
        {"core/ir": "class Var:\n    def f(self):\n        import math"},
        "core/ir.py:3: import inside a function of math",
    ),
    "an import by name": (
        {"api": "import importlib\ndef f(name):\n    return importlib.import_module(name)"},
        "api.py:3: import inside a function of a name known only at run time",
    ),
    "jax outside the backend": (
        {"api": "import jax"},
        "api.py:1: jax: only",
    ),
    "jax inside a function of the core": (
        {"core/ir": "def f():\n    import jax"},
        "core/ir.py:2: import inside a function of jax",
    ),
    "jax.numpy in the lowering": (
        {"lowering/array": "def f(x):\n    import jax\n    return jax.numpy.sin(x)"},
        "lowering/array.py:3: jax.numpy.sin: only interop",
    ),
    "jax.lax under another name": (
        {"lowering/array": "def f(x):\n    from jax import lax as l"},
        "lowering/array.py:2: jax.lax: only interop",
    ),
    "jaxlib outside pjrt": (
        {"lowering/execute": "def f():\n    from jaxlib import _jax"},
        "lowering/execute.py:2: jaxlib._jax: private",
    ),
    "a private name by way of an alias": (
        {"interop/read": "import jax.extend as je\nx = je.core._y"},
        "interop/read.py:2: jax.extend.core._y: private",
    ),
}


@pytest.mark.parametrize("files, sentence", BREACHES.values(), ids=BREACHES)
def test_a_breach_is_seen(tmp_path, files, sentence):
    found = planted(tmp_path, files)
    assert any(sentence in line for line in found), found
