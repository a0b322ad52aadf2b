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
from stretto.numpy.manipulation import *
from stretto.numpy.bits import *
from stretto.numpy.searching import *
from stretto.numpy.logic import *
from stretto.numpy.extrema import *
from stretto.numpy.elementary import *
from stretto.numpy.creation import *
from stretto.numpy.reductions import *
from stretto.numpy.dtypes import *
from stretto.numpy.inspection import __array_api_version__, __array_namespace_info__
from stretto.numpy.sorting import *
from stretto.numpy.properties import *
from stretto.numpy.ranges import *
from stretto.numpy.statistics import *
from stretto.numpy.taking import *
from stretto.numpy.ufunc import *
from stretto.numpy.unique import *

bool = _dtypes.bool_
ndarray = Array

if TYPE_CHECKING:
    from stretto.numpy import fft as fft, linalg as linalg
    from stretto.numpy.vectorizing import (
        apply_along_axis as apply_along_axis,
        apply_over_axes as apply_over_axes,
        piecewise as piecewise,
    )
    from stretto.numpy.signals import convolve as convolve, correlate as correlate
    from stretto.numpy.histograms import bincount as bincount, digitize as digitize
    from stretto.numpy.signals import corrcoef as corrcoef, cov as cov
    from stretto.numpy.differences import (
        diff as diff,
        ediff1d as ediff1d,
        gradient as gradient,
        trapezoid as trapezoid,
        unwrap as unwrap,
    )
    from stretto.numpy.divisors import *
    from stretto.numpy.einsums import einsum as einsum, einsum_path as einsum_path
    from stretto.numpy.equality import (
        allclose as allclose,
        array_equal as array_equal,
        array_equiv as array_equiv,
    )
    from stretto.numpy.files import (
        ArrayFile as ArrayFile,
        frombuffer as frombuffer,
        fromfile as fromfile,
        fromiter as fromiter,
        fromstring as fromstring,
        load as load,
        save as save,
        savez as savez,
        savez_compressed as savez_compressed,
    )
    from stretto.numpy.filled import (
        empty as empty,
        empty_like as empty_like,
        full as full,
        full_like as full_like,
        ones as ones,
        ones_like as ones_like,
        zeros as zeros,
        zeros_like as zeros_like,
    )
    from stretto.numpy.floats import *
    from stretto.numpy.grids import (
        c_ as c_,
        fromfunction as fromfunction,
        index_exp as index_exp,
        mgrid as mgrid,
        ogrid as ogrid,
        r_ as r_,
        s_ as s_,
    )
    from stretto.numpy.histograms import (
        histogram as histogram,
        histogram2d as histogram2d,
        histogram_bin_edges as histogram_bin_edges,
        histogramdd as histogramdd,
    )
    from stretto.numpy.inserting import delete as delete, insert as insert
    from stretto.numpy.files import from_dlpack as from_dlpack
    from stretto.numpy.interpolation import interp as interp
    from stretto.numpy.joining import (
        append as append,
        block as block,
        column_stack as column_stack,
        concat as concat,
        concatenate as concatenate,
        dstack as dstack,
        hstack as hstack,
        row_stack as row_stack,
        stack as stack,
        vstack as vstack,
    )
    from stretto.numpy.filled import (
        diag as diag,
        diagflat as diagflat,
        eye as eye,
        identity as identity,
        tri as tri,
        tril as tril,
        triu as triu,
    )
    from stretto.numpy.padding import pad as pad
    from stretto.numpy.grids import (
        diag_indices as diag_indices,
        diag_indices_from as diag_indices_from,
        ix_ as ix_,
        mask_indices as mask_indices,
        ravel_multi_index as ravel_multi_index,
        tril_indices as tril_indices,
        tril_indices_from as tril_indices_from,
        triu_indices as triu_indices,
        triu_indices_from as triu_indices_from,
        unravel_index as unravel_index,
    )
    from stretto.numpy.polynomials import (
        poly as poly,
        polyadd as polyadd,
        polyder as polyder,
        polydiv as polydiv,
        polyfit as polyfit,
        polyint as polyint,
        polymul as polymul,
        polysub as polysub,
        polyval as polyval,
        roots as roots,
        vander as vander,
    )
    from stretto.numpy.printing import (
        array_repr as array_repr,
        array_str as array_str,
        get_printoptions as get_printoptions,
        printoptions as printoptions,
        set_printoptions as set_printoptions,
    )
    from stretto.numpy.products import (
        cross as cross,
        dot as dot,
        inner as inner,
        kron as kron,
        matmul as matmul,
        matvec as matvec,
        outer as outer,
        tensordot as tensordot,
        vdot as vdot,
        vecdot as vecdot,
        vecmat as vecmat,
    )
    from stretto.numpy.inserting import (
        fill_diagonal as fill_diagonal,
        place as place,
        put as put,
        put_along_axis as put_along_axis,
        putmask as putmask,
    )
    from stretto.numpy.quantiles import (
        median as median,
        nanmedian as nanmedian,
        nanpercentile as nanpercentile,
        nanquantile as nanquantile,
        percentile as percentile,
        quantile as quantile,
    )
    from stretto.numpy.sets import (
        intersect1d as intersect1d,
        isin as isin,
        setdiff1d as setdiff1d,
        setxor1d as setxor1d,
        union1d as union1d,
    )
    from stretto.numpy.joining import (
        array_split as array_split,
        dsplit as dsplit,
        hsplit as hsplit,
        split as split,
        unstack as unstack,
        vsplit as vsplit,
    )
    from stretto.numpy.vectorizing import frompyfunc as frompyfunc, vectorize as vectorize
    from stretto.numpy.signals import (
        bartlett as bartlett,
        blackman as blackman,
        hamming as hamming,
        hanning as hanning,
        i0 as i0,
        kaiser as kaiser,
    )
    from stretto.numpy.without_nan import (
        nanargmax as nanargmax,
        nanargmin as nanargmin,
        nancumprod as nancumprod,
        nancumsum as nancumsum,
        nanmax as nanmax,
        nanmean as nanmean,
        nanmin as nanmin,
        nanprod as nanprod,
        nanstd as nanstd,
        nansum as nansum,
        nanvar as nanvar,
    )
    from stretto.numpy import normalized

exports(
    __name__,
    """
    .: fft linalg
    .vectorizing: apply_along_axis apply_over_axes piecewise frompyfunc vectorize
    .signals: convolve correlate corrcoef cov bartlett blackman hamming hanning i0 kaiser
    .histograms: bincount digitize histogram histogram2d histogram_bin_edges histogramdd
    .differences: diff ediff1d gradient trapezoid unwrap
    .divisors: gcd lcm
    .einsums: einsum einsum_path
    .equality: allclose array_equal array_equiv
    .files: ArrayFile frombuffer fromfile fromiter fromstring load save savez savez_compressed
        from_dlpack
    .filled: empty empty_like full full_like ones ones_like zeros zeros_like diag diagflat eye
        identity tri tril triu
    .floats: e euler_gamma finfo frexp iinfo inf ldexp modf nan newaxis nextafter packbits pi
        spacing unpackbits
    .grids: c_ fromfunction index_exp mgrid ogrid r_ s_ diag_indices diag_indices_from ix_
        mask_indices ravel_multi_index tril_indices tril_indices_from triu_indices triu_indices_from
        unravel_index
    .inserting: delete insert fill_diagonal place put put_along_axis putmask
    .interpolation: interp
    .joining: append block column_stack concat concatenate dstack hstack row_stack stack vstack
        array_split dsplit hsplit split unstack vsplit
    .padding: pad
    .polynomials: poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots vander
    .printing: array_repr array_str get_printoptions printoptions set_printoptions
    .products: cross dot inner kron matmul matvec outer tensordot vdot vecdot vecmat
    .quantiles: median nanmedian nanpercentile nanquantile percentile quantile
    .sets: intersect1d isin setdiff1d setxor1d union1d
    .without_nan: nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd
        nansum nanvar
    """,
)
