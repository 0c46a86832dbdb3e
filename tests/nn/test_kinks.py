"""Each row of `docs/kinks.md` holds."""

from pathlib import Path

import numpy as np

import funcml as fm
import funcml.numpy as jnp
from funcml import lax, nn
from funcml.scipy import special

PAGE = Path(__file__).parents[2] / "docs" / "kinks.md"
NAMES = {"jnp": jnp, "lax": lax, "nn": nn, "special": special, "inf": np.inf, "nan": np.nan}


def rows():
    """(expression, x, derivative) of each row of the table."""
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            yield cells[0].strip("`"), *(np.array(eval(cell, NAMES), float) for cell in cells[1:3])


def test_the_table_of_derivatives_at_kinks():
    table = list(rows())
    functions = [eval(f"lambda x: {expression}", NAMES) for expression, _, _ in table]

    def gradients(*points):
        return [fm.grad(f)(x) for f, x in zip(functions, points, strict=True)]

    found = fm.jit(gradients)(*[x for _, x, _ in table])
    wrong = [
        f"{expression} at {x}: {np.asarray(is_)}, not {said}"
        for (expression, x, said), is_ in zip(table, found, strict=True)
        if not np.allclose(is_, said, rtol=1e-14, atol=0)
    ]
    assert len(table) > 50 and not wrong, "\n".join(wrong)


def test_second_derivatives_where_the_first_is_zero_by_symmetry():
    squares = [lambda x: jnp.linalg.norm(x) ** 2, lambda x: 2 * jnp.std(x) ** 2]
    for f, want in zip(squares, ([[2, 0], [0, 2]], [[1, -1], [-1, 1]]), strict=True):
        np.testing.assert_allclose(fm.hessian(f)(np.zeros(2)), want, atol=1e-12)
    for f, want in ((nn.softplus, 0.25), (nn.log_sigmoid, -0.25)):
        assert float(fm.grad(fm.grad(f))(0.0)) == want
