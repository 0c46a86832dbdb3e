"""The examples of the documentation run as they stand."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = ["debugging.md", "memory.md"]


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page, capsys):
    names: dict = {}
    text = (DOCS / page).read_text()
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, page, "exec"), names)
    said = capsys.readouterr().out.splitlines()
    assert said[-1].strip() in text


def test_every_page_with_examples_is_listed():
    assert sorted(p.name for p in DOCS.glob("*.md") if "```python\n" in p.read_text() and p.name != "design.md") == PAGES
