"""What factorizations share: types that LAPACK takes, empty matrices, failure, many matrices."""

import re
import subprocess
import sys

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P, scipy
from stretto._engine.core import tree
from stretto._engine.core.types import array_type
from stretto._engine.kernels import extension, in_parts
from stretto._engine.ops.linalg.family import check_matrix, quotients, subset_of
from stretto._engine.ops.linalg.lu import Lu
from stretto._engine.ops.thresholds import MATRICES
from stretto.lax import linalg
from tests import gpus
from tests.meshes import mesh

gpu = gpus.gpu

FUNCTIONS = {
    "cholesky": linalg.cholesky,
    "lu": linalg.lu,
    "qr": linalg.qr,
    "qr_reduced": lambda x: linalg.qr(x, full_matrices=False),
    "eigh": linalg.eigh,
    "svd": linalg.svd,
    "svd_reduced": lambda x: linalg.svd(x, full_matrices=False),
    "svd_values": lambda x: linalg.svd(x, compute_uv=False),
    "eig": linalg.eig,
    "inv": st.linalg.inv,
    "det": st.linalg.det,
    "slogdet": st.linalg.slogdet,
    "pinv": st.linalg.pinv,
    "qr_pivoted": lambda x: linalg.qr(x, pivoting=True),
    "schur": linalg.schur,
    "hessenberg": linalg.hessenberg,
    "tridiagonal": linalg.tridiagonal,
}
SQUARE = ("cholesky", "eigh", "eig", "inv", "det", "slogdet", "schur", "hessenberg", "tridiagonal")


def same(f, *args):
    """What a function gives eagerly, checked to be what it gives compiled, bit for bit."""
    eager, compiled = f(*args), st.jit(f)(*args)
    for x, y in zip(tree.leaves(eager), tree.leaves(compiled), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_array_equal(x, y)
    return eager


EMPTY = [
    (name, shape)
    for name in FUNCTIONS
    for shape in [(0, 0), (3, 0), (0, 3), (2, 0, 0), (2, 3, 0), (0, 3, 3)]
    if name not in SQUARE or shape[-1] == shape[-2]
]


@pytest.mark.parametrize("name, shape", EMPTY, ids=str)
def test_empty_matrices(name, shape):
    same(FUNCTIONS[name], snp.zeros(shape))


def test_an_empty_matrix_has_factors_that_are_identities():
    q, r = linalg.qr(snp.zeros((3, 0)))
    u, s, vh = linalg.svd(snp.zeros((3, 0)))
    np.testing.assert_array_equal(q, np.eye(3))
    np.testing.assert_array_equal(u, np.eye(3))
    assert (r.shape, s.shape, vh.shape) == ((3, 0), (0,), (0, 0))
    assert float(st.linalg.det(snp.zeros((0, 0)))) == 1


@pytest.mark.parametrize(
    "name", [n for n in FUNCTIONS if n not in ("lu", "det", "slogdet", "inv", "qr_pivoted")]
)
def test_nan_stays_with_its_own_matrix(name):
    x = snp.array(np.stack([np.eye(3), np.full((3, 3), np.nan)]).astype(np.float32))
    for out in tree.leaves(same(FUNCTIONS[name], x)):
        host = np.asarray(out)
        assert np.isfinite(host[0]).all()
        # A triangle keeps its zeros.
        assert np.isnan(host[1][np.tril_indices(3)] if name == "cholesky" else host[1]).any()


@pytest.mark.parametrize("name", ["cholesky", "qr", "eigh", "svd", "inv", "eig"])
def test_many_matrices_are_as_each_alone(name):
    f = FUNCTIONS[name]
    x = np.random.default_rng(0).normal(size=(12, 3, 3)).astype(np.float32)
    x = snp.array(x @ x.transpose(0, 2, 1) + np.diag([1, 2, 4]).astype(np.float32))
    whole = tree.leaves(f(x))
    for i in (0, 11):
        for out, part in zip(whole, tree.leaves(f(x[i])), strict=True):
            np.testing.assert_allclose(out[i], part, rtol=2e-5, atol=2e-6)


def test_refusals_name_what_was_got_and_the_way_out():
    with pytest.raises(TypeError, match=r"eigh: expected float32, .* got bfloat16\[2,2\]; convert"):
        linalg.eigh(snp.zeros((2, 2), snp.bfloat16))
    with pytest.raises(TypeError, match=r"lu: expected float32, .* got int32\[2,2\]"):
        linalg.lu(snp.zeros((2, 2), int))
    with pytest.raises(
        ValueError, match=r"svd: expected an array of rank 2 or more, got float32\[3\]"
    ):
        linalg.svd(snp.zeros(3))
    with pytest.raises(
        ValueError, match=r"cholesky: expected square matrices .* 2 rows and 3 columns"
    ):
        linalg.cholesky(snp.zeros((2, 3)))
    assert check_matrix("f", array_type((4, 2, 3), np.dtype(np.float32))) == (4, 2, 3)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_large_matrices_eagerly_and_compiled(dtype):
    # Beyond LAPACK's block sizes: the workspaces must be those that it asks for.
    with st.enable_x64(True):
        rng = np.random.default_rng(1)
        x = rng.normal(size=(90, 70)) + 1j * rng.normal(size=(90, 70))
        x = (x if dtype[0] == "c" else x.real).astype(dtype)
        square = snp.array(x.conj().T @ x + np.diag(np.arange(1, 71)))
        eps = np.finfo(dtype).eps * 100
        q, r = same(FUNCTIONS["qr_reduced"], snp.array(x))
        np.testing.assert_allclose(q @ r, x, rtol=0, atol=eps * 20)
        u, s, vh = same(FUNCTIONS["svd_reduced"], snp.array(x))
        np.testing.assert_allclose((u * s) @ vh, x, rtol=0, atol=eps * 20)
        v, w = same(linalg.eigh, square)
        np.testing.assert_allclose(square @ v, v * w, rtol=0, atol=eps * 500)
        t, z = same(linalg.schur, square)
        np.testing.assert_allclose(z @ t @ np.conj(z).T, square, rtol=0, atol=eps * 500)
        q, r, p = same(FUNCTIONS["qr_pivoted"], snp.array(x))
        np.testing.assert_allclose(q @ r, x[:, p], rtol=0, atol=eps * 20)
        for f in (linalg.hessenberg, linalg.tridiagonal):
            same(f, square)
        both, taus = linalg.geqrf(snp.array(x))
        multiplied = same(linalg.ormqr, both, taus, snp.array(x))
        np.testing.assert_allclose(multiplied, linalg.qr(snp.array(x))[0] @ x, 0, eps * 20)
        c = same(linalg.cholesky, square)
        np.testing.assert_allclose(c @ np.conj(c).T, square, rtol=0, atol=eps * 500)


def test_lapack_is_loaded_by_the_first_program_that_calls_it():
    code = """
import sys
import stretto as st
import stretto.numpy as snp
x = snp.eye(3)
st.jit(snp.sin)(x)
assert "scipy.linalg" not in sys.modules and "jaxlib.cpu._lapack" not in sys.modules
st.jit(st.linalg.cholesky)(x)
assert "jaxlib.cpu._lapack" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(extension is None, reason="without the extension it is a loop")
def test_a_call_says_how_its_matrices_lie():
    text = st.jit(linalg.cholesky).lower(snp.zeros((4, 3, 3))).as_text()
    (line,) = [line for line in text.splitlines() if "custom_call" in line]
    target = in_parts("lapack_spotrf_ffi")
    assert f'"{target}", api_version = 4 : i32, backend_config = {{uplo = 76 : ui8}}' in line
    assert "operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>]" in line
    layouts = "dense<[1, 2, 0]> : tensor<3xindex>, dense<[0]> : tensor<1xindex>"
    assert f"result_layouts = [{layouts}]" in line
    alias = "output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []"
    assert f"output_operand_aliases = [#stablehlo.output_operand_alias<{alias}>]" in line


@pytest.mark.parametrize("subset", [(0,), (0, 1, 2), (2, 1), (0, 4)])
def test_a_subset_that_does_not_fit_is_named(subset):
    with pytest.raises(ValueError, match=r"^svd: subset_by_index must be \(start, end\)"):
        subset_of("svd", subset, 3)
    with pytest.raises(TypeError, match=r"^svd: subset_by_index must be a sequence of integers"):
        subset_of("svd", 3, 3)


def _of_matrices(**functions):
    return pytest.mark.parametrize("f", functions.values(), ids=functions)


@pytest.mark.devices
@_of_matrices(
    cholesky=snp.linalg.cholesky,
    det=snp.linalg.det,
    eig=snp.linalg.eig,
    eigh=snp.linalg.eigh,
    expm=scipy.linalg.expm,
    inv=snp.linalg.inv,
    pinv=snp.linalg.pinv,
    qr=snp.linalg.qr,
    schur=st.vmap(st.vmap(scipy.linalg.schur)),
    solve=lambda a: snp.linalg.solve(a, a[..., :2]),
    sylvester=st.vmap(st.vmap(lambda a: scipy.linalg.solve_sylvester(a, a, a))),
    svd=snp.linalg.svd,
    tridiagonal=lambda a: st.lax.linalg.tridiagonal_solve(
        a[..., 0, :] * snp.arange(5).clip(0, 1), a[..., 1, :] + 9, a[..., 2, :], a
    ),
    derivative=st.grad(lambda a: snp.linalg.cholesky(a).sum()),
)
@pytest.mark.parametrize("spec", [P("x"), P("x", "y"), P(("y", "x")), P(None, "y")])
def test_each_device_has_its_matrices_alone(f, spec):
    half = np.random.default_rng(0).normal(size=(8, 4, 5, 5))
    a = snp.array(half @ half.swapaxes(-1, -2) + 5 * np.eye(5), "float32")
    x = st.device_put(a, st.sharding.NamedSharding(mesh(x=4, y=2), spec))
    text = st.jit(f).lower(x).compile().as_text()
    assert not re.search("all-gather|all-to-all|collective-permute|all-reduce", text)
    for out, whole in zip(st.tree.leaves(st.jit(f)(x)), st.tree.leaves(st.jit(f)(a)), strict=True):
        np.testing.assert_array_equal(out, whole)


@pytest.mark.devices
def test_matrices_that_are_split_themselves_are_brought_together():
    half = np.random.default_rng(0).normal(size=(8, 4, 4))
    a = snp.array(half @ half.swapaxes(-1, -2) + 5 * np.eye(4), "float32")
    for spec in (P(None, "x"), P("y", None, "x"), P(None, "y", "x")):
        x = st.device_put(a, st.sharding.NamedSharding(mesh(x=4, y=2), spec))
        chol = st.jit(snp.linalg.cholesky)
        np.testing.assert_array_equal(chol(x), chol(a))


def test_equal_values_have_the_slope_and_others_the_quotient():
    w = snp.array([1.0, 1.0, 2.0])
    got = quotients(w, w**3, 3 * w**2)
    np.testing.assert_allclose(got, [[3, 3, 7], [3, 3, 7], [7, 7, 12]], rtol=1e-6)


def test_a_function_that_parts_equal_values_has_none():
    w = snp.array([1.0, 1.0])
    got = np.asarray(quotients(w, snp.array([0.0, 1.0]), snp.zeros(2)))
    assert np.isinf(got[0, 1])
    assert np.isinf(got[1, 0])
    np.testing.assert_array_equal(np.diag(got), 0)


def test_quotients_of_a_jump_are_those_of_the_gap():
    w = snp.array([1.0, 1.0 + 1e-3, 2.0])
    got = quotients(w, snp.array([0.0, 1.0, 1.0]), snp.zeros(3))
    gap = np.float32(1.0 + 1e-3) - 1
    want = np.array([[0, 1 / gap, 1], [1 / gap, 0, 0], [1, 0, 0]])
    np.testing.assert_allclose(got, want, rtol=1e-4)


def test_the_names_and_settings_of_routines_on_gpus(gpu):
    x = st.device_put(snp.ones((2, 2)), gpu)
    text = st.jit(linalg.eigh).lower(x).as_text()
    assert "cusolver_syevd_ffi" in text
    assert "{lower = true, algorithm = 0 : ui8}" in text
    with pytest.raises(NotImplementedError, match="LAPACK's geev has no counterpart on GPUs"):
        st.jit(linalg.eig).lower(x).as_text()


# The function, whether GPUs have a routine for it, and how many results share an operand's memory.
ROUTINES = {
    "cholesky": (linalg.cholesky, False, 1),
    "lu": (linalg.lu, True, 1),
    "qr": (linalg.qr, True, 2),
    "qr with pivots": (lambda x: linalg.qr(x, pivoting=True), False, 3),
    "eigh": (linalg.eigh, True, 1),
    "svd": (linalg.svd, True, 1),
    "svd by qr": (lambda x: linalg.svd(x, algorithm=linalg.SvdAlgorithm.QR), False, 1),
    "schur": (linalg.schur, False, 1),
    "hessenberg": (linalg.hessenberg, False, 1),
    "tridiagonal": (linalg.tridiagonal, False, 1),
    "solve": (lambda x: linalg.triangular_solve(x, x), False, 1),
}
SHARED = re.compile(r"output_tuple_indices = \[(\d*)\], operand_index = (\d+)")


ON_BOTH = [(name, False) for name in ROUTINES] + [(n, True) for n, r in ROUTINES.items() if r[1]]


@pytest.mark.parametrize(("name", "on_gpu"), ON_BOTH)
def test_results_share_the_memory_of_operands_of_their_type(name, on_gpu, request):
    f, _, count = ROUTINES[name]
    x = snp.ones((3, 3))
    if on_gpu:
        x = st.device_put(x, request.getfixturevalue("gpu"))
    text = st.jit(f).lower(x).as_text()
    found = []
    for line in text.splitlines():
        types = re.search(r": \((.*)\) -> \(?(.*?)\)?$", line)
        for result, operand in SHARED.findall(line):
            ins, outs = [re.findall(r"tensor<[^>]*>", side) for side in types.groups()]
            assert ins[int(operand)] == outs[int(result or 0)], line
            found.append(result)
    assert found if on_gpu else len(found) == count


def test_many_small_matrices_are_compiled():
    """By how many there are, and up to 1,024 elements of each."""
    f32 = np.dtype(np.float32)
    cases = {
        (MATRICES, 4, 4): True, (MATRICES - 1, 4, 4): False, (MATRICES, 32, 32): True,
        (MATRICES, 33, 32): False, (MATRICES, 0, 0): False, (MATRICES // 2, 2, 1, 1): False,
        (MATRICES // 2 + 1, 2, 1, 1): True, (4, 4): False,
    }  # fmt: skip
    for shape, compiled in cases.items():
        assert Lu().compiled((array_type(shape, f32),)) is compiled, shape
