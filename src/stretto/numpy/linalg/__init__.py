"""``stretto.numpy.linalg``: NumPy's linear algebra, on the matrices in the last two axes.

Primitives are in ``ops/linalg``, under their JAX names in ``stretto.lax.linalg``. Where a matrix is
singular or not positive definite, or LAPACK fails, results are infinite or NaN, for that matrix
alone; values raise no exceptions: ``LinAlgError`` is NumPy's, and never raised here. What NumPy
lacks is in ``stretto.scipy.linalg``; ``stretto.linalg`` has both.

>>> import stretto.numpy as snp
>>> snp.linalg.solve(snp.array([[2.0, 0.0], [0.0, 4.0]]), snp.array([1.0, 1.0]))
Array([0.5 , 0.25], dtype=float32)
"""

from numpy.linalg import LinAlgError

from stretto._engine.core.lazy import exports
from stretto.numpy.linalg.factorizations import *
from stretto.numpy.linalg.systems import *
from stretto.numpy.linalg.matrix_products import *
from stretto.numpy.linalg.systems import *

exports(__name__)
