"""The rules of the house that a machine can see: short files with telling names, nothing left for later."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

FUNCML = Path(__file__).parent.parent / "funcml"
MAX_LINES = 600
LONGER: dict[str, str] = {}  # file below funcml/ -> why it is one thing all the same
SAYS_NOTHING = {"utils.py", "util.py", "common.py", "misc.py", "helpers.py"}
LEFT_FOR_LATER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def untidy(root: Path, longer: dict[str, str]) -> Iterator[str]:
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        lines = path.read_text().splitlines()
        if len(lines) > MAX_LINES and name not in longer:
            yield f"{name} has {len(lines)} lines: which two things is it?"
        if path.name in SAYS_NOTHING:
            yield f"{name}: a module is named for what it knows"
        for number, line in enumerate(lines, 1):
            if LEFT_FOR_LATER.search(line):
                yield f"{name}:{number}: {line.strip()}"
    for name in longer:
        if not (root / name).exists() or len((root / name).read_text().splitlines()) <= MAX_LINES:
            yield f"{name} is listed as a long file and is none"


def test_funcml_is_tidy():
    found = list(untidy(FUNCML, LONGER))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name, text, longer, sentence", [
    ("core/ir.py", "x = 1\n" * MAX_LINES, {}, ""),
    ("core/ir.py", "x = 1\n" * (MAX_LINES + 1), {}, "core/ir.py has 601 lines"),
    ("core/ir.py", "x = 1\n" * (MAX_LINES + 1), {"core/ir.py": "one table"}, ""),
    ("core/ir.py", "x = 1\n", {"core/ir.py": "one table"}, "core/ir.py is listed"),
    ("core/ir.py", "", {"core/gone.py": "one table"}, "core/gone.py is listed"),
    ("helpers.py", "", {}, "helpers.py: a module is named"),
    ("core/ir.py", "x = 1  # TO" + "DO: more", {}, "core/ir.py:1: x = 1"),
])
def test_untidiness_is_seen(tmp_path, name, text, longer, sentence):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    found = list(untidy(tmp_path, longer))
    assert len(found) == bool(sentence) and sentence in "".join(found)
