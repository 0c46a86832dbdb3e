"""Sparse derivatives: patterns read off the program, colouring, compressed evaluation."""

from funcml.sparsity.derivatives import hessian_sparsity, jacobian_sparsity, sparse_hessian, sparse_jacobian
from funcml.sparsity.matrices import SparseMatrix
from funcml.sparsity.patterns import Pattern

__all__ = ["Pattern", "SparseMatrix", "hessian_sparsity", "jacobian_sparsity", "sparse_hessian", "sparse_jacobian"]
