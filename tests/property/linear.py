"""Operations of the table from linear algebra, and reductions over windows.

Matrices are well conditioned, with eigenvalues and singular values that stay apart; what a
factorization leaves open, such as the sign of an eigenvector, is taken out by squaring.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.property.writer import Writer, operation

__all__ = ["MATRICES"]

# name: expression in a matrix M, or a symmetric one S, of N rows; then its shape and a bound
MATRICES: dict[str, tuple[str, Callable[[int], tuple[int, ...]], float]] = {
    "inv": ("st.linalg.inv(M)", lambda n: (n, n), 8),
    "det": ("st.linalg.det(M)", lambda n: (), 20),
    # of four rows and more, where there is no formula
    "det_by_lu": ("st.linalg.det(snp.eye(N + 2, dtype=FLOAT) + snp.pad(M, 1))", lambda n: (), 60),
    "slogdet": ("st.linalg.slogdet(M)[1]", lambda n: (), 5),
    "solve": ("st.linalg.solve(M, snp.cos({0}))", lambda n: (n, n), 12),
    "cholesky": ("st.linalg.cholesky(S)", lambda n: (n, n), 5),
    "triangular_solve": (
        "st.linalg.solve_triangular(snp.tril(M), snp.cos({0}), lower=True)",
        lambda n: (n, n),
        20,
    ),
    "qr": ("st.linalg.qr(M)[0] ** 2 @ st.linalg.qr(M)[1] ** 2", lambda n: (n, n), 60),
    "lu": ("st.linalg.lu(M)[1] @ snp.abs(st.linalg.lu(M)[2])", lambda n: (n, n), 60),
    "eigh": ("st.linalg.eigh(S)[1] ** 2 @ snp.diag(st.linalg.eigh(S)[0])", lambda n: (n, n), 60),
    "eig": ("snp.real(snp.sum(st.linalg.eigvals(M) ** 2))", lambda n: (), 60),
    "eigenvectors": (
        "(lambda v: snp.sum(snp.real(v * snp.conj(v)) ** 2))(lax.linalg.eig(M, "
        "compute_left_eigenvectors=False, enable_eigvec_derivs=True)[1])",
        lambda n: (),
        9,
    ),
    "svd": ("st.linalg.svd(M)[0] ** 2 @ snp.diag(st.linalg.svdvals(M))", lambda n: (n, n), 30),
    "pinv": ("st.linalg.pinv(M[:, 1:])", lambda n: (n - 1, n), 30),
    "expm": ("st.linalg.expm(0.3 * M)", lambda n: (n, n), 20),
    "sqrtm": ("snp.real(st.linalg.sqrtm(S))", lambda n: (n, n), 10),
    "funm": ("snp.real(st.linalg.funm(M, snp.sin))", lambda n: (n, n), 60),
    "sylvester": ("st.linalg.solve_sylvester(M, S, snp.cos({0}))", lambda n: (n, n), 10),
    "polar": ("snp.sin(lax.linalg.qdwh(M)[0])", lambda n: (n, n), 1),
    "pivoted_qr": (
        "(lambda q, r, p: q**2 @ r**2)(*lax.linalg.qr(M, pivoting=True))",
        lambda n: (n, n),
        400,
    ),
    "ormqr": (
        "lax.linalg.ormqr(*lax.linalg.geqrf(snp.eye(N, dtype=FLOAT)), snp.cos({0}))",
        lambda n: (n, n),
        2,
    ),
    "cholesky_update": (
        "lax.linalg.cholesky_update(snp.triu(M), snp.cos({0})[0])",
        lambda n: (n, n),
        12,
    ),
    "tridiagonal_solve": (
        "lax.linalg.tridiagonal_solve(snp.cos({0})[0], snp.diag(M) + 4, snp.sin({0})[1], {0})",
        lambda n: (n, n),
        5,
    ),
    "matrix_power": ("st.linalg.matrix_power(M, 3)", lambda n: (n, n), 60),
}


def _matrix(name: str) -> None:
    text, shape_of, bound = MATRICES[name]

    def write(w: Writer) -> None:
        v = w.float(-1, 1, fits=lambda v: v.ndim == 2 and v.shape[0] == v.shape[1] > 1)
        n = v.shape[0]
        matrix = f"({{0}} * 0.25 + snp.diag(snp.arange(1, {n + 1}, dtype=FLOAT)))"
        symmetric = f"({matrix} + {matrix}.T)"
        written = text.replace("M", matrix).replace("S", symmetric).replace("N", str(n))
        w.emit(written, [v], shape_of(n), -bound, bound)

    operation(name, 0.15)(write)


for _name in MATRICES:
    _matrix(_name)


WINDOWED: dict[str, tuple[str, float]] = {
    # what combines, and from what it starts
    "add": ("lax.add", 0.0),
    "max": ("lax.max", -float("inf")),
    "min": ("lax.min", float("inf")),
    "mul": ("lax.mul", 1.0),
    "other": ("lambda a, b: a * b + a + b", 0.0),
}


def _windowed(kind: str) -> Any:
    function, start = WINDOWED[kind]
    start_text = f"FLOAT('{start}')"

    def reduce(w: Writer) -> None:
        v = w.float(-1, 1)
        axis = w.axis(v)
        shape = v.shape[:axis] + v.shape[axis + 1 :]
        if not v.size:
            return
        text = f"lax.reduce({{0}}, {start_text}, {function}, ({axis},))"
        w.emit(text, [v], shape, -30, 30)

    def reduce_window(w: Writer) -> None:
        v = w.float(-1, 1, fits=lambda v: v.ndim > 0 and min(v.shape) > 1)
        size, stride = w.rng.choice([1, 2]), w.rng.choice([1, 1, 2])
        axis = w.axis(v)
        sizes = [size if i == axis else 1 for i in range(v.ndim)]
        steps = [stride if i == axis else 1 for i in range(v.ndim)]
        padding = w.rng.choice(["VALID", "SAME"])
        n = v.shape[axis]
        count = (n - size) // stride + 1 if padding == "VALID" else -(-n // stride)
        shape = (*v.shape[:axis], count, *v.shape[axis + 1 :])
        text = f"lax.reduce_window({{0}}, {start_text}, {function}, {sizes}, {steps}, '{padding}')"
        w.emit(text, [v], shape, -30, 30)

    operation(f"reduce_{kind}", 0.1)(reduce)
    operation(f"reduce_window_{kind}", 0.12)(reduce_window)


for _kind in WINDOWED:
    _windowed(_kind)


# Fourier transforms.


@operation("fft", 0.25)
def _fourier(w: Writer) -> None:
    v = w.inexact(1, fits=lambda v: v.ndim > 0 and v.size > 0)
    axis = w.axis(v)
    name, points = w.rng.choice([("fft", v.shape[axis]), ("ifft", 1)])
    w.emit(f"st.fft.{name}({{0}}, axis={axis})", [v], v.shape, -2 * points, 2 * points, "complex")


@operation("real_fft", 0.25)
def _real_fourier(w: Writer) -> None:
    v = w.float(-1, 1, fits=lambda v: v.ndim > 0 and v.size > 0)
    axis = w.axis(v)
    n = v.shape[axis]
    spectrum = f"st.fft.rfft({{0}}, axis={axis})"
    if w.rng.random() < 0.5:
        shape = (*v.shape[:axis], n // 2 + 1, *v.shape[axis + 1 :])
        w.emit(spectrum, [v], shape, -n, n, "complex")
    else:
        w.emit(f"st.fft.irfft({spectrum} ** 2, {n}, {axis})", [v], v.shape, -n, n)
