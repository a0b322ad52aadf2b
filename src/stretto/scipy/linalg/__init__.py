"""``stretto.scipy.linalg``: SciPy's linear algebra, on the matrices in the last two axes.

Read ``factorizations``, ``eigenvalues``, ``functions``, ``matrices``. As in
``stretto.numpy.linalg``, values raise no exceptions: where a matrix is singular or not positive
definite, or LAPACK fails, the results for that matrix are infinite or NaN.

>>> import stretto as st
>>> import stretto.numpy as snp
>>> st.scipy.linalg.toeplitz(snp.array([1, 2, 3]))
Array([[1, 2, 3],
       [2, 1, 2],
       [3, 2, 1]], dtype=int32)
"""

from stretto._engine.core.lazy import exports
from stretto.scipy.linalg.eigenvalues import *
from stretto.scipy.linalg.factorizations import *
from stretto.scipy.linalg.functions import *
from stretto.scipy.linalg.matrices import *

exports(__name__)
