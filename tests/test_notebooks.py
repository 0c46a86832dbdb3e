"""Every notebook runs from its first cell to its last in a fresh kernel."""

import shutil
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient", reason="the extra `notebooks` is not installed")
nbformat = pytest.importorskip("nbformat", reason="the extra `notebooks` is not installed")

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
COMPILES = {"2_a_primitive_and_its_kernel"}  # a kernel of C++


def run(notebook, folder: Path):
    """Executes all cells with this interpreter; raises CellExecutionError, which shows cell and traceback."""
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    return client.execute()


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebook_runs(path):
    if path.stem in COMPILES and shutil.which("g++") is None:
        pytest.skip("no C++ compiler")
    run(nbformat.read(path, as_version=4), NOTEBOOKS)


def test_a_cell_that_raises_is_seen(tmp_path):
    cells = [nbformat.v4.new_code_cell("1 / 0")]
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="ZeroDivisionError"):
        run(nbformat.v4.new_notebook(cells=cells), tmp_path)
