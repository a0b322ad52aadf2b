"""Entries of `scipy.linalg` and `scipy.sparse.linalg`."""

import numpy as np
import scipy.linalg

import stretto as st
from tests.functions.matrices import (
    FLOATS,
    NO_SCHUR,
    REAL,
    REFLECTIONS,
    adjoint,
    diagonal_times,
    each,
    factored,
    hermitian,
    positive,
    square,
    times_columns,
    triangular,
)
from tests.functions.table import call, entry, given, x

S = "scipy.linalg"
SQUARE = [call(square(3, 3)), call(square(2, 4, 4))]
entry(f"{S}.inv", np.linalg.inv, SQUARE, "f32 c64")
entry(f"{S}.det", np.linalg.det, SQUARE, "f32 c64", tolerance=4)  # of products
entry(
    f"{S}.cholesky",
    each(scipy.linalg.cholesky, 1),
    [call(x(2, 3, 3, form=positive)), call(x(3, 3, form=positive), lower=True)],
    FLOATS,
)
entry(
    f"{S}.cho_factor",
    lambda a, lower: (np.linalg.cholesky(a) if lower else adjoint(np.linalg.cholesky(a)), lower),
    [call(x(3, 3, form=positive), False), call(x(2, 3, 3, form=positive), True)],
    FLOATS,
    unmapped="one of its results is no array",
    uncompiled="one of its results is no array",
    undifferentiated="one of its results is no array; cholesky is shown",
)
entry(
    f"{S}.cho_solve",
    scipy.linalg.cho_solve,
    [
        call((x(3, 3, form=triangular), False), x(3)),
        call((x(3, 3, form=triangular), False), x(3, 2)),
    ],
    FLOATS,
)
entry(
    f"{S}.lu",
    each(scipy.linalg.lu, 3),
    [call(x(3, 3)), call(x(2, 4, 3)), call(x(2, 3))],
    FLOATS,
    tolerance=4,
)  # elements of l and u may be far smaller than those of a
entry(
    f"{S}.lu_factor",
    each(scipy.linalg.lu_factor, 2),
    [call(x(2, 3, 3)), call(x(3, 3))],
    FLOATS,
    tolerance=4,
)
entry(
    f"{S}.lu_solve",
    scipy.linalg.lu_solve,
    [call((square(3, 3), given([1, 2, 2], "i32")), x(3), t) for t in (0, 1, 2)]
    + [call((square(3, 3), given([0, 1, 2], "i32")), x(3, 2))],
    FLOATS,
)
entry(
    f"{S}.solve_triangular",
    scipy.linalg.solve_triangular,
    [
        call(x(3, 3, form=triangular), x(3)),
        call(square(3, 3), x(3, 2), 1),
        call(square(3, 3), x(3, 2), "C", True),
        call(square(3, 3), x(3, 2), unit_diagonal=True),
    ],
    FLOATS,
    tolerance=4,
)  # with ones on the diagonal results grow


def solved(a, b, **options):
    with np.errstate(all="ignore"):
        return scipy.linalg.solve(a, b, **options)


entry(
    f"{S}.solve",
    solved,
    [
        call(square(3, 3), x(3)),
        call(square(3, 3), x(3, 2)),
        *[
            call(x(3, 3, form=positive), x(3), assume_a=kind, lower=low)
            for kind in ("pos", "her")
            for low in (False, True)
        ],
        call(square(3, 3), x(3), assume_a="sym"),
        call(square(3, 3), x(3), assume_a="sym", lower=True),
        call(square(3, 3), x(3), assume_a="upper triangular"),
        call(square(3, 3), x(3), assume_a="lower triangular"),
    ],
    FLOATS,
    tolerance=8,
)  # condition numbers of some tens


def spd(a, b, **options):
    return scipy.linalg.eigh(a, b, **options)


entry(
    f"{S}.eigh",
    spd,
    [
        call(x(3, 3, form=hermitian), x(3, 3, form=positive), eigvals_only=True, type=t, lower=low)
        for t in (1, 2, 3)
        for low in (True, False)
    ],
    FLOATS,
    tolerance=8,
)
entry(
    f"{S}.eigh_tridiagonal",
    scipy.linalg.eigh_tridiagonal,
    [
        call(x(4), x(3), eigvals_only=True),
        call(x(1), x(0), eigvals_only=True),
        call(x(4), x(3), eigvals_only=True, select="i", select_range=(1, 2)),
    ],
    REAL,
)
factored(
    f"{S}.svd",
    lambda u, s, v: u * diagonal_times(s) @ v,
    [call(x(2, 4, 3), full_matrices=False), call(square(3, 3), lapack_driver="gesvd")],
    "f32",
)
factored(
    f"{S}.qr", times_columns, [call(square(3, 3)), call(x(4, 3), mode="economic", pivoting=True)]
)
factored(
    f"{S}.schur",
    lambda t, z: z @ t @ adjoint(z),
    [call(x(2, 3, 3), output="complex"), call(x(4, 4))],
    undifferentiated=NO_SCHUR,
)
factored(
    f"{S}.rsf2csf",
    lambda t, z: z @ t @ adjoint(z),
    [call(x(2, 3, 3), given(np.eye(3, dtype="f")))],
    undifferentiated=NO_SCHUR,
)
entry(
    f"{S}.hessenberg",
    each(scipy.linalg.hessenberg, 1),
    [call(x(4, 4)), call(x(2, 3, 3))],
    FLOATS,
    undifferentiated=REFLECTIONS,
)


def polar(a, side="right", **_):
    return scipy.linalg.polar(a, side)


entry(
    f"{S}.polar",
    each(polar, 2),
    [
        call(square(3, 3)),
        call(x(4, 3), "left"),
        call(x(2, 2, 3)),
        call(square(3, 3), method="svd"),
        call(x(4, 3), method="svd"),
    ],
    FLOATS,
    tolerance=32,
)  # of several factorizations
entry(
    f"{S}.qr_multiply",
    lambda a, c, mode="right", **o: scipy.linalg.qr_multiply(a, c, mode, **o),
    [
        call(x(4, 3), x(4)),
        call(x(4, 3), x(2, 4)),
        call(x(4, 3), x(3, 2), "left"),
        call(x(3, 3), x(3), "left", conjugate=True),
        call(x(4, 3), x(2, 4), pivoting=True),
    ],
    FLOATS,
    tolerance=8,
)  # rows of r that are small
entry(
    f"{S}.expm",
    scipy.linalg.expm,
    [call(x(3, 3)), call(x(2, 3, 3)), call(x(3, 3, form=np.triu))],
    FLOATS,
    tolerance=8,
)
entry(
    f"{S}.expm_frechet",
    scipy.linalg.expm_frechet,
    [call(x(3, 3), x(3, 3)), call(x(3, 3), x(3, 3), compute_expm=False)],
    FLOATS,
    tolerance=8,
)  # of many products


def complex_root(a):
    return each(lambda m: np.asarray(scipy.linalg.sqrtm(m), np.result_type(m, np.complex64)), 1)(a)


entry(f"{S}.sqrtm", complex_root, [call(square(3, 3)), call(x(2, 3, 3))], FLOATS, tolerance=16)
entry(
    f"{S}.funm",
    lambda a, f: np.asarray(scipy.linalg.funm(a, np.cosh), np.result_type(a, np.complex64)),
    [call(square(3, 3), st.numpy.cosh)],
    "f32 f64 c64",
    tolerance=64,
)  # of gaps of eigenvalues


def sylvester(a, b, c, **_):
    return scipy.linalg.solve_sylvester(a, b, c)


entry(
    f"{S}.solve_sylvester",
    sylvester,
    [call(square(3, 3), square(2, 2), x(3, 2)), call(x(1, 1, low=1.0), x(1, 1, low=1.0), x(1, 1))],
    FLOATS,
    tolerance=8,
)  # of several products

BOTH = "f32 f64 c64 i32"
entry(
    f"{S}.block_diag",
    scipy.linalg.block_diag,
    [call(x(2, 3), x(1, 1)), call(x(2), x(2, 2), x()), call(x(2, 0), x(1, 2))],
    BOTH,
)
for name, shapes in {
    "circulant": [(4,), (2, 3), (1,)],
    "toeplitz": [(4,), (2, 3)],
    "hankel": [(4,), (1,)],
    "fiedler": [(4,), (2, 3)],
    "companion": [(4,), (2,), (2, 3)],
    "fiedler_companion": [(2,), (3,), (4,), (7,), (8,), (2, 5)],
}.items():
    calls = [call(x(*s, low=0.5)) for s in shapes]
    kinds = (
        "f32 f64"
        if "companion" in name
        else BOTH.replace(" c64", "")
        if name == "fiedler"
        else BOTH
    )
    entry(f"{S}.{name}", getattr(scipy.linalg, name), calls, kinds)
entry(f"{S}.leslie", scipy.linalg.leslie, [call(x(3), x(2)), call(x(2, 4), x(2, 3))], BOTH)
entry(
    f"{S}.convolution_matrix",
    scipy.linalg.convolution_matrix,
    [
        call(x(m), n, mode)
        for m, n in ((3, 2), (2, 5), (1, 1), (4, 4))
        for mode in ("full", "same", "valid")
    ],
    "f32 c64 i32",
)
for name, several in {
    "dft": [(1,), (4,), (3, "sqrtn"), (3, "n")],
    "hadamard": [(1,), (8,)],
    "helmert": [(1, True), (4,), (4, True)],
    "hilbert": [(3,), (0,)],
    "invhilbert": [(3,), (7,)],
    "pascal": [(5,), (4, "lower"), (3, "upper")],
    "invpascal": [(5,), (4, "lower"), (3, "upper")],
}.items():
    function = getattr(scipy.linalg, name)
    as_float = name.endswith(("pascal", "hilbert", "helmert"))
    entry(f"{S}.{name}",
          (lambda *a, f=function: np.asarray(f(*a), np.float64)) if as_float else function,
          [call(*a) for a in several],
          undifferentiated="it takes no arrays", unmapped="it takes no arrays")  # fmt: skip


# scipy.sparse.linalg: to the tolerances asked for


def direct(a, b, **_):
    return np.linalg.solve(a, b), np.int32(0)


CALLS = [call(square(4, 4), x(4), tol=1e-6), call(square(4, 4), x(4), tol=1e-6, maxiter=30)]
ROUGH = 50  # the tolerance asked for, times the condition number
entry("scipy.sparse.linalg.bicgstab", direct, CALLS[:1], "f32 c64", tolerance=ROUGH)
CALLS[1].kwargs["restart"] = 2
entry("scipy.sparse.linalg.gmres", direct, CALLS, "f32 c64", tolerance=ROUGH)
entry(
    "scipy.sparse.linalg.cg",
    direct,
    [call(x(4, 4, form=positive), x(4), tol=1e-6)],
    "f32 c64",
    tolerance=ROUGH,
    undifferentiated="differences leave the symmetric matrices; see test_linalg.py",
)
