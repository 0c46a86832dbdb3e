"""The examples run from the command line and do what they promise."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

for _package in ("sklearn", "matplotlib", "tqdm"):
    pytest.importorskip(_package, reason="the extra `examples` is not installed")


def run(script: str, *arguments) -> str:
    """What the example prints; fails with all it wrote, unless it exits with 0."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, ROOT / "examples" / script, *map(str, arguments)]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_digits_learns_to_read(tmp_path):
    picture = tmp_path / "digits.png"
    printed = run("digits.py", "--out", picture)
    accuracy = re.search(r"^Accuracy on the held-out digits: ([\d.]+)%$", printed, re.M)
    assert accuracy and float(accuracy[1]) >= 97, printed
    assert re.search(r"lambda .* h:i32\[\]\. let\n", printed) and "= dot_general[" in printed
    assert re.search(r"^First step [\d.]+ s, .* later ones [\d.]+ ms; all of it [\d.]+ s$", printed, re.M)
    assert picture.read_bytes().startswith(b"\x89PNG")
