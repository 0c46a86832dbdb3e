"""The README's tour runs, and gives what its comments say."""

import re
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_tour():
    (tour,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict = {}
    exec(tour, names)
    said = re.findall(r"^(\S.*?)\s+# (Array\(.*?\))", tour, re.MULTILINE)
    assert len(said) == 2
    for expression, wanted in said:
        assert repr(eval(expression, names)) == wanted


def test_its_commands_exist():
    makefile = (Path(__file__).parent.parent / "Makefile").read_text()
    for target in re.findall(r"`?make (\w+)", README):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
