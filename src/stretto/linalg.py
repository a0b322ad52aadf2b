"""``stretto.linalg``: the linear algebra of NumPy and, where NumPy has no such function, of SciPy.

NumPy's names are in ``numpy/linalg``, SciPy's in ``scipy/linalg``; primitives are in
``_engine/ops/linalg``, and under their JAX names in ``stretto.lax.linalg``.

>>> import stretto as st
>>> import stretto.numpy as snp
>>> st.linalg.solve(snp.array([[2.0, 0.0], [0.0, 4.0]]), snp.array([1.0, 1.0]))
Array([0.5 , 0.25], dtype=float32)
"""

# ruff: noqa: F401, F403 (each file's __all__ says what it gives)

from numpy.linalg import LinAlgError

from stretto._engine.core.lazy import exports
from stretto.numpy.linalg.factorizations import *
from stretto.numpy.linalg.matrix_products import *
from stretto.numpy.linalg.systems import *
from stretto.scipy.linalg.eigenvalues import eigh_tridiagonal, hessenberg, rsf2csf, schur
from stretto.scipy.linalg.factorizations import (
    cho_factor,
    cho_solve,
    lu,
    lu_factor,
    lu_solve,
    polar,
    qr_multiply,
    solve_triangular,
)
from stretto.scipy.linalg.functions import *
from stretto.scipy.linalg.matrices import *

exports(__name__)
