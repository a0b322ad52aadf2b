"""``stretto.numpy``: NumPy's functions for arrays that are compiled, differentiated, vectorized.

One file a family: read ``dtypes``, ``creation``, ``arithmetic``, and so on. Families that most
programs need are loaded at once, the others when one of their functions is first asked for.

>>> import stretto.numpy as snp
>>> snp.sum(snp.array([1.0, 2.0]) ** 2)
Array(5., dtype=float32)
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports
from stretto._engine.xla.array import Array as Array
from stretto.numpy import dtypes as _dtypes
from stretto.numpy.arithmetic import *
from stretto.numpy.bits import *
from stretto.numpy.creation import *
from stretto.numpy.dtypes import *
from stretto.numpy.elementary import *
from stretto.numpy.extrema import *
from stretto.numpy.inspection import *
from stretto.numpy.inspection import __array_api_version__, __array_namespace_info__
from stretto.numpy.logic import *
from stretto.numpy.manipulation import *
from stretto.numpy.reductions import *
from stretto.numpy.searching import *
from stretto.numpy.sorting import *
from stretto.numpy.statistics import *
from stretto.numpy.taking import *
from stretto.numpy.ufunc import *
from stretto.numpy.unique import *

bool = _dtypes.bool_
ndarray = Array

if TYPE_CHECKING:
    from stretto.numpy import fft as fft, linalg as linalg
    from stretto.numpy import normalized
    from stretto.numpy.differences import *
    from stretto.numpy.divisors import *
    from stretto.numpy.einsums import *
    from stretto.numpy.equality import *
    from stretto.numpy.files import *
    from stretto.numpy.filled import *
    from stretto.numpy.floats import *
    from stretto.numpy.grids import *
    from stretto.numpy.histograms import *
    from stretto.numpy.inserting import *
    from stretto.numpy.interpolation import *
    from stretto.numpy.joining import *
    from stretto.numpy.padding import *
    from stretto.numpy.polynomials import *
    from stretto.numpy.printing import *
    from stretto.numpy.products import *
    from stretto.numpy.quantiles import *
    from stretto.numpy.sets import *
    from stretto.numpy.signals import *
    from stretto.numpy.vectorizing import *
    from stretto.numpy.without_nan import *

exports(
    __name__,
    """
    .: fft linalg
    .differences: diff ediff1d gradient trapezoid unwrap
    .divisors: gcd lcm
    .einsums: einsum einsum_path
    .equality: allclose array_equal array_equiv
    .files: ArrayFile from_dlpack frombuffer fromfile fromiter fromstring load save savez
        savez_compressed
    .filled: diag diagflat empty empty_like eye full full_like identity ones ones_like tri tril triu
        zeros zeros_like
    .floats: e euler_gamma finfo frexp iinfo inf ldexp modf nan newaxis nextafter packbits pi
        spacing unpackbits
    .grids: c_ diag_indices diag_indices_from fromfunction index_exp ix_ mask_indices mgrid ogrid r_
        ravel_multi_index s_ tril_indices tril_indices_from triu_indices triu_indices_from
        unravel_index
    .histograms: bincount digitize histogram histogram2d histogram_bin_edges histogramdd
    .inserting: delete fill_diagonal insert place put put_along_axis putmask
    .interpolation: interp
    .joining: append array_split block column_stack concat concatenate dsplit dstack hsplit hstack
        row_stack split stack unstack vsplit vstack
    .padding: pad
    .polynomials: poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots vander
    .printing: array_repr array_str get_printoptions printoptions set_printoptions
    .products: cross dot inner kron matmul matvec outer tensordot vdot vecdot vecmat
    .quantiles: median nanmedian nanpercentile nanquantile percentile quantile
    .sets: intersect1d isin setdiff1d setxor1d union1d
    .signals: bartlett blackman convolve corrcoef correlate cov hamming hanning i0 kaiser
    .vectorizing: apply_along_axis apply_over_axes frompyfunc piecewise vectorize
    .without_nan: nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd
        nansum nanvar
    """,
)
