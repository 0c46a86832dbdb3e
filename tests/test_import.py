"""`import funcml` is light: it loads neither jax nor what stands on it."""

import subprocess
import sys

HEAVY = ("jax", "jaxlib", "optax", "scipy", "matplotlib", "sklearn")


def loaded_by(statement: str) -> set[str]:
    """Which of HEAVY a fresh process holds after the statement."""
    program = f"{statement}\nimport sys\nprint(*[name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_funcml_loads_no_backend():
    assert loaded_by("import funcml") == set()


def test_the_question_sees_a_backend():
    assert {"jax", "jaxlib"} <= loaded_by("import jax")
