"""``stretto.numpy``: NumPy's functions for arrays that are compiled, differentiated, vectorised.

One file a family: read ``dtypes``, ``creation``, ``arithmetic``, and so on. Families that most
programs need are loaded at once, the others when one of their functions is first asked for.

>>> import stretto.numpy as snp
>>> snp.sum(snp.array([1.0, 2.0]) ** 2)
Array(5., dtype=float32)
"""

# ruff: noqa: F401, F403 (each file's __all__ says what it gives)

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import names_on_demand
from stretto._engine.runtime.array import Array as Array
from stretto.numpy import dtypes as _dtypes
from stretto.numpy.arithmetic import *
from stretto.numpy.axis_order import *
from stretto.numpy.bits import *
from stretto.numpy.choosing import *
from stretto.numpy.classifying import *
from stretto.numpy.clipping import *
from stretto.numpy.comparisons import *
from stretto.numpy.complex_parts import *
from stretto.numpy.creation import *
from stretto.numpy.cumulative import *
from stretto.numpy.dtypes import *
from stretto.numpy.elementary import *
from stretto.numpy.extrema import *
from stretto.numpy.flips import *
from stretto.numpy.inspection import __array_api_version__, __array_namespace_info__
from stretto.numpy.logic import *
from stretto.numpy.manipulation import *
from stretto.numpy.partitioning import *
from stretto.numpy.properties import *
from stretto.numpy.ranges import *
from stretto.numpy.reductions import *
from stretto.numpy.remainders import *
from stretto.numpy.rounding import *
from stretto.numpy.searching import *
from stretto.numpy.sorting import *
from stretto.numpy.statistics import *
from stretto.numpy.taking import *
from stretto.numpy.trigonometric import *
from stretto.numpy.ufunc import *
from stretto.numpy.ufuncs import *
from stretto.numpy.unique import *

bool = _dtypes.bool_
ndarray = Array

if TYPE_CHECKING:
    from stretto.numpy import fft as fft
    from stretto.numpy import linalg as linalg
    from stretto.numpy.applying import *
    from stretto.numpy.constants import *
    from stretto.numpy.convolutions import *
    from stretto.numpy.counting import *
    from stretto.numpy.covariance import *
    from stretto.numpy.differences import *
    from stretto.numpy.divisors import *
    from stretto.numpy.einsums import *
    from stretto.numpy.equality import *
    from stretto.numpy.extrema_without_nan import *
    from stretto.numpy.files import *
    from stretto.numpy.filled import *
    from stretto.numpy.floats import *
    from stretto.numpy.grids import *
    from stretto.numpy.histograms import *
    from stretto.numpy.inserting import *
    from stretto.numpy.interchange import *
    from stretto.numpy.interpolation import *
    from stretto.numpy.joining import *
    from stretto.numpy.limits import *
    from stretto.numpy.matrices import *
    from stretto.numpy.medians import *
    from stretto.numpy.padding import *
    from stretto.numpy.places import *
    from stretto.numpy.polynomial_roots import *
    from stretto.numpy.polynomials import *
    from stretto.numpy.printing import *
    from stretto.numpy.products import *
    from stretto.numpy.putting import *
    from stretto.numpy.quantiles import *
    from stretto.numpy.sets import *
    from stretto.numpy.splitting import *
    from stretto.numpy.vectorizing import *
    from stretto.numpy.windows import *
    from stretto.numpy.without_nan import *
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "stretto.numpy": "fft linalg",
            "stretto.numpy.applying": "apply_along_axis apply_over_axes piecewise",
            "stretto.numpy.constants": "e euler_gamma inf nan newaxis pi",
            "stretto.numpy.convolutions": "convolve correlate",
            "stretto.numpy.counting": "bincount digitize",
            "stretto.numpy.covariance": "corrcoef cov",
            "stretto.numpy.differences": "diff ediff1d gradient trapezoid unwrap",
            "stretto.numpy.divisors": "gcd lcm",
            "stretto.numpy.einsums": "einsum einsum_path",
            "stretto.numpy.equality": "allclose array_equal array_equiv",
            "stretto.numpy.files": "ArrayFile frombuffer fromfile fromiter fromstring load save "
            "savez savez_compressed",
            "stretto.numpy.filled": "empty empty_like full full_like ones ones_like zeros "
            "zeros_like",
            "stretto.numpy.floats": "frexp ldexp modf nextafter packbits spacing unpackbits",
            "stretto.numpy.grids": "c_ fromfunction index_exp mgrid ogrid r_ s_",
            "stretto.numpy.histograms": "histogram histogram2d histogram_bin_edges histogramdd",
            "stretto.numpy.inserting": "delete insert",
            "stretto.numpy.interchange": "from_dlpack",
            "stretto.numpy.interpolation": "interp",
            "stretto.numpy.joining": "append block column_stack concat concatenate dstack hstack "
            "row_stack stack vstack",
            "stretto.numpy.limits": "finfo iinfo",
            "stretto.numpy.matrices": "diag diagflat eye identity tri tril triu",
            "stretto.numpy.padding": "pad",
            "stretto.numpy.places": "diag_indices diag_indices_from ix_ mask_indices "
            "ravel_multi_index tril_indices tril_indices_from triu_indices triu_indices_from "
            "unravel_index",
            "stretto.numpy.polynomials": "polyadd polyder polydiv polyfit polyint polymul "
            "polysub polyval vander",
            "stretto.numpy.printing": "array_repr array_str get_printoptions printoptions "
            "set_printoptions",
            "stretto.numpy.products": "cross dot inner kron matmul matvec outer tensordot vdot "
            "vecdot vecmat",
            "stretto.numpy.putting": "fill_diagonal place put put_along_axis putmask",
            "stretto.numpy.medians": "median nanmedian",
            "stretto.numpy.quantiles": "nanpercentile nanquantile percentile quantile",
            "stretto.numpy.polynomial_roots": "poly roots",
            "stretto.numpy.sets": "intersect1d isin setdiff1d setxor1d union1d",
            "stretto.numpy.splitting": "array_split dsplit hsplit split unstack vsplit",
            "stretto.numpy.vectorizing": "frompyfunc vectorize",
            "stretto.numpy.windows": "bartlett blackman hamming hanning i0 kaiser",
            "stretto.numpy.extrema_without_nan": "nanargmax nanargmin nanmax nanmin",
            "stretto.numpy.without_nan": "nancumprod nancumsum nanmean nanprod nanstd nansum "
            "nanvar",
        },
    )
    __all__ = [name for name in __dir__() if not name.startswith("_")]
