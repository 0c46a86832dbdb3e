"""JAX's names for primitives."""

import numpy as np
import pytest

import funcml as fm
from funcml import lax


def test_a_primitive_is_what_equations_hold():
    jaxpr = fm.make_jaxpr(lambda x: lax.sin(x) < x.astype("float64"))(np.float32(1))
    assert {eqn.primitive for eqn in jaxpr.eqns} == {lax.sin_p, lax.convert_element_type_p, lax.lt_p}
    assert lax.while_p.name == "while" and lax.reduce_sum_p.name == "reduce_sum"


def test_other_names_are_absent():
    for name in ("nothing_p", "sine", "_p"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
            getattr(lax, name)
