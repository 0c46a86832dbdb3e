"""Linear systems with matrices that need no more factoring.

    triangular_solve  : (a [.., n, n], b [.., n, m]) -> x [.., n, m]      op(a) x = b, or x op(a) = b
    factored_solve    : (a [.., n, n], lu, permutation, b [.., n, m]) -> x     op(a) x = b, given a[permutation] = l u
    tridiagonal_solve : (dl, d, du [.., n], b [.., n, m]) -> x [.., n, m]

All are linear in b, with x' = op(a)^-1 (b' - op(a') x); the transposed solve has the transposed matrix. `factored_solve` looks
at `a` for its derivative alone, so that the factors need none.
"""

from __future__ import annotations

from funcml import dtypes
from funcml.core.linear import is_undefined, is_zero
from funcml.core.tracing import aval_of, bind
from funcml.primitives.axes import broadcast_in_dim
from funcml.primitives.elementwise import add_any, mul, neg, sub
from funcml.primitives.matrices import MatrixMap, conjugate, lower, product, transposed, upper
from funcml.primitives.shaping import concatenate, slice_in_dim
from funcml.primitives.tangents import zero_tangent, zeros

__all__ = ["factored_solve", "triangular_solve", "tridiagonal_solve"]


class LinearSolve(MatrixMap):
    """x of the shape of the last operand, b, in which it is linear; the operands before it are of the matrix."""

    def change(self, matrix, tangents, x, params):
        """op(a') x, or x op(a'); None if the matrix has no tangent."""
        raise NotImplementedError

    def transposed_matrix(self, matrix, params):
        """The operands and parameters of the transposed system."""
        raise NotImplementedError

    # x' = op(a)^-1 (b' - op(a') x)
    def jvp_rule(self, primals, tangents, **params):
        *matrix, b = primals
        *matrix_tangents, tb = tangents
        x = bind(self, primals, params)
        change = self.change(matrix, matrix_tangents, x, params)
        if change is None:
            return x, zero_tangent(x) if is_zero(tb) else bind(self, (*matrix, tb), params)
        right = neg(change) if is_zero(tb) else sub(tb, change)
        return x, bind(self, (*matrix, right), params)

    # ct_b = op(a)^-T ct
    def transpose_rule(self, ct, *operands, **params):
        *matrix, b = operands
        if any(map(is_undefined, matrix)):
            raise TypeError(f"{self.name} is linear in its right-hand side alone")
        matrix, params = self.transposed_matrix(matrix, params)
        return [*[None] * len(matrix), bind(self, (*matrix, ct), params)]


# ---- triangular matrices -----------------------------------------------------------------------------------------


class TriangularSolve(LinearSolve):
    """op(a) x = b, or x op(a) = b; of `a` one triangle is read, and not its diagonal if that is known to be ones.

    op is the identity, the transpose, or (with `conjugate_a` beside `transpose_a`) the adjoint.
    """

    def type_rule(self, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
        self.batch_of(a, b)
        self.square(a)
        if b.shape[-2 if left_side else -1] != a.shape[-1]:
            side = "rows" if left_side else "columns"
            raise ValueError(f"{self.name} with a {a} expects a right-hand side of {a.shape[-1]} {side}, got {b}")
        return b.update(weak_type=False)

    def by_columns(self, params):
        return params["left_side"]

    def change(self, matrix, tangents, x, params):
        (t,) = tangents
        if is_zero(t):
            return None
        offset = 1 if params["unit_diagonal"] else 0
        t = lower(t, -offset) if params["lower"] else upper(t, offset)
        t = transposed(t) if params["transpose_a"] else t
        t = conjugate(t) if params["conjugate_a"] else t
        return product(t, x) if params["left_side"] else product(x, t)

    def transposed_matrix(self, matrix, params):
        (a,) = matrix
        a = conjugate(a) if params["conjugate_a"] else a
        return [a], {**params, "transpose_a": not params["transpose_a"], "conjugate_a": False}


triangular_solve_p = TriangularSolve("triangular_solve", (2, 2))


def triangular_solve(
    a, b, *, left_side=False, lower=False, transpose_a=False, conjugate_a=False, unit_diagonal=False
):
    """x with op(a) x = b (`left_side`) or x op(a) = b, `a` [.., n, n] being triangular."""
    conjugate_a = bool(conjugate_a) and dtypes.is_complex(aval_of(a).dtype)
    if conjugate_a and not transpose_a:
        a, conjugate_a = conjugate(a), False
    params = {
        "left_side": bool(left_side),
        "lower": bool(lower),
        "transpose_a": bool(transpose_a),
        "conjugate_a": conjugate_a,
        "unit_diagonal": bool(unit_diagonal),
    }
    return bind(triangular_solve_p, (a, b), params)


# ---- matrices of which l and u are known -------------------------------------------------------------------------


class FactoredSolve(LinearSolve):
    """op(a) x = b by the factors a[permutation] = l u; op is the identity, or the transpose with `transpose_a`."""

    def type_rule(self, a, lu, permutation, b, *, transpose_a):
        self.batch_of(a, lu, permutation, b)
        self.square(a)
        shapes = lu.shape == a.shape and permutation.shape == a.shape[:-1] and b.shape[-2] == a.shape[-1]
        if not shapes or permutation.dtype != dtypes.int32:
            raise ValueError(
                f"{self.name} with a {a} expects lu of its shape, a permutation (i32) of its rows and a right-hand side of "
                f"{a.shape[-1]} rows, got {lu}, {permutation} and {b}"
            )
        return b.update(weak_type=False)

    def change(self, matrix, tangents, x, params):
        t = tangents[0]
        if is_zero(t):
            return None
        return product(transposed(t) if params["transpose_a"] else t, x)

    def transposed_matrix(self, matrix, params):
        return matrix, {"transpose_a": not params["transpose_a"]}


factored_solve_p = FactoredSolve("factored_solve", (2, 2, 1, 2), indices=(2,))


def factored_solve(a, lu, permutation, b, *, transpose_a: bool = False):
    """x with a x = b (with `transpose_a`: a^T x = b), given the factors that `lu` has of `a`."""
    return bind(factored_solve_p, (a, lu, permutation, b), {"transpose_a": transpose_a})


# ---- tridiagonal matrices ----------------------------------------------------------------------------------------


class TridiagonalSolve(LinearSolve):
    """dl_i x_{i-1} + d_i x_i + du_i x_{i+1} = b_i; the first of dl and the last of du are not read.

    With `perturb_singular`, pivots that are nearly zero are made larger, so that the result is finite.
    """

    def type_rule(self, dl, d, du, b, *, perturb_singular):
        self.batch_of(dl, d, du, b)
        if dl.shape != d.shape or du.shape != d.shape or b.shape[-2] != d.shape[-1]:
            raise ValueError(
                f"{self.name} expects three diagonals of one length n and a right-hand side [.., n, m], got {dl}, {d}, {du} "
                f"and {b}"
            )
        if perturb_singular and dtypes.is_complex(d.dtype):
            raise TypeError(f"{self.name}: perturb_singular is for real matrices, got {d}")
        return b.update(weak_type=False)

    def change(self, matrix, tangents, x, params):
        if all(map(is_zero, tangents)):
            return None
        axis = aval_of(x).ndim - 2
        tl, t, tu = tangents
        parts = [
            _scaled(tl, _moved_down(x, axis)),
            _scaled(t, x),
            _scaled(tu, _moved_up(x, axis)),
        ]
        parts = [p for p in parts if p is not None]
        total = parts[0]
        for part in parts[1:]:
            total = add_any(total, part)
        return total

    def transposed_matrix(self, matrix, params):
        dl, d, du = matrix
        axis = aval_of(d).ndim - 1
        return [_moved_down(du, axis), d, _moved_up(dl, axis)], params


def _scaled(t, x):
    if is_zero(t):
        return None
    aval = aval_of(x)
    return mul(broadcast_in_dim(t, aval.shape, tuple(range(aval.ndim - 1))), x)


def _moved_down(x, axis):
    """Element i - 1 at place i, zero at 0."""
    n = aval_of(x).shape[axis]
    if n == 0:
        return x
    end = slice_in_dim(x, 0, 1, axis=axis)
    return concatenate([zeros(aval_of(end)), slice_in_dim(x, 0, n - 1, axis=axis)], axis)


def _moved_up(x, axis):
    """Element i + 1 at place i, zero at the last."""
    n = aval_of(x).shape[axis]
    if n == 0:
        return x
    end = slice_in_dim(x, 0, 1, axis=axis)
    return concatenate([slice_in_dim(x, 1, n, axis=axis), zeros(aval_of(end))], axis)


tridiagonal_solve_p = TridiagonalSolve("tridiagonal_solve", (1, 1, 1, 2))


def tridiagonal_solve(dl, d, du, b, *, perturb_singular: bool = False):
    """x with dl_i x_{i-1} + d_i x_i + du_i x_{i+1} = b_i; diagonals [.., n], right-hand side [.., n, m]."""
    return bind(tridiagonal_solve_p, (dl, d, du, b), {"perturb_singular": bool(perturb_singular)})
