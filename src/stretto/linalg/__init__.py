"""``stretto.linalg``: NumPy's and SciPy's linear algebra, on the matrices in the last two axes.

Layer 7. Read ``factorisations``, ``systems``, ``norms``, ``products``, ``functions``. Primitives
are in ``ops/linalg_*``, under their JAX names in ``stretto.lax.linalg``. Where a matrix is singular
or not positive definite, or LAPACK fails, results are infinite or NaN, for that matrix alone;
values raise no exceptions.

>>> import stretto as st
>>> import stretto.numpy as snp
>>> st.linalg.solve(snp.array([[2.0, 0.0], [0.0, 4.0]]), snp.array([1.0, 1.0]))
Array([0.5 , 0.25], dtype=float32)
"""

# ruff: noqa: F403 (each file's __all__ says what it gives)

from stretto.linalg.factorisations import *
from stretto.linalg.functions import *
from stretto.linalg.norms import *
from stretto.linalg.products import *
from stretto.linalg.systems import *
