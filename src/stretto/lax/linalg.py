"""``stretto.lax.linalg``: factorizations of matrices, under their ``jax.lax.linalg`` names.

Each works on the matrices in the last two axes, by LAPACK; ``stretto.linalg`` has NumPy's and
SciPy's functions, written with these.
"""

from stretto._engine.core.lazy import exports
from stretto._engine.ops.linalg.cholesky import cholesky, cholesky_update
from stretto._engine.ops.linalg.eig import EigImplementation, eig
from stretto._engine.ops.linalg.eigh import EighImplementation, eigh
from stretto._engine.ops.linalg.lu import lu, lu_pivots_to_permutation
from stretto._engine.ops.linalg.qr import geqrf, householder_product, ormqr, qr
from stretto._engine.ops.linalg.schur import hessenberg, schur
from stretto._engine.ops.linalg.svd import SvdAlgorithm, svd
from stretto._engine.ops.linalg.symmetric import symmetric_product
from stretto._engine.ops.linalg.triangular import triangular_solve
from stretto._engine.ops.linalg.tridiagonal import tridiagonal, tridiagonal_solve
from stretto.lax.polar import qdwh

__all__ = [
    "EigImplementation",
    "EighImplementation",
    "SvdAlgorithm",
    "cholesky",
    "cholesky_update",
    "eig",
    "eigh",
    "geqrf",
    "hessenberg",
    "householder_product",
    "lu",
    "lu_pivots_to_permutation",
    "ormqr",
    "qdwh",
    "qr",
    "schur",
    "svd",
    "symmetric_product",
    "triangular_solve",
    "tridiagonal",
    "tridiagonal_solve",
]

exports(__name__)
