"""``stretto.lax.linalg``: factorisations of matrices, under their ``jax.lax.linalg`` names.

Layer 7. Each works on the matrices in the last two axes, by LAPACK; ``stretto.linalg`` has
NumPy's functions, written with these.
"""

from stretto.ops.linalg_cholesky import cholesky
from stretto.ops.linalg_eig import eig
from stretto.ops.linalg_eigh import eigh
from stretto.ops.linalg_lu import lu, lu_pivots_to_permutation
from stretto.ops.linalg_qr import geqrf, householder_product, qr
from stretto.ops.linalg_svd import svd
from stretto.ops.linalg_triangular import triangular_solve

__all__ = [
    "cholesky",
    "eig",
    "eigh",
    "geqrf",
    "householder_product",
    "lu",
    "lu_pivots_to_permutation",
    "qr",
    "svd",
    "triangular_solve",
]
