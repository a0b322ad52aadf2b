"""LAPACK called part by part: no call waits for threads of others, and values stay."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P, lax
from stretto._engine import kernels
from stretto._engine.kernels import IN_PARTS, LAPACK, extension, in_parts
from stretto._engine.ops.linalg import family
from stretto._engine.xla import clients
from stretto.export import stablehlo_artifact
from stretto.export.container import from_bytes
from stretto.export.stablehlo_artifact import StableHLO
from stretto.sharding import NamedSharding
from tests.meshes import mesh

with_extension = pytest.mark.skipif(extension is None, reason="there is no extension")


BESIDE_EACH_OTHER = """
import threading
import numpy as np
import stretto as st
import stretto.numpy as snp
from stretto import lax

def independent(step):
    return st.jit(lambda x: [step(snp.sin(x[i]) + 20 * snp.eye(10)) for i in range(4)])

def in_a_loop(x):
    return lax.scan(lambda c, y: (c + snp.linalg.cholesky(y + c * 0), 0), x[0], x)[0]

factor, solve = independent(snp.linalg.cholesky), independent(lambda a: snp.linalg.solve(a, a))
programs = [
    factor,
    solve,
    independent(lambda a: in_a_loop(snp.stack([a, a]))),
    independent(lambda a: lax.cond(a[0, 0, 0] > 0, snp.linalg.cholesky, snp.exp, a)),
    independent(st.vmap(snp.linalg.cholesky)),
    independent(st.grad(lambda a: snp.linalg.cholesky(a).sum())),
]
x = snp.array(np.random.default_rng(0).standard_normal((4, 3000, 10, 10)), np.float32)
expected = [[np.asarray(y) for y in program(x)] for program in programs]

def check(rounds, programs, expected):
    for _ in range(rounds):
        outs = [program(x) for program in programs]
        for out, right in zip(outs, expected):
            for y, z in zip(out, right):
                assert np.array_equal(y, z)

check(3, programs[:2] * 3, expected[:2] * 3)
check(1, programs, expected)
threads = [threading.Thread(target=check, args=(3, programs[:2], expected[:2])) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
many = [snp.linalg.cholesky(y + 20 * snp.eye(10)) for y in [x[0], x[1], x[2]] * 2]
st.block_until_ready(many)
print("done")
"""


@pytest.mark.parametrize(
    ("extended", "native"),
    [
        pytest.param("1", "1", marks=with_extension),
        pytest.param("1", "0", marks=with_extension),
        ("0", "1"),
    ],
)
def test_calls_beside_each_other_end(extended, native):
    """On two cores each of XLA's threads waited in one of these calls for parts of it."""
    environment = {**os.environ, "STRETTO_KERNELS": extended, "STRETTO_NATIVE": native}
    run = subprocess.run(
        [sys.executable, "-c", BESIDE_EACH_OTHER],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.stdout == "done\n", run.stderr


def matrices(*shape, dtype=np.float32):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return snp.array(x + 2 * shape[-1] * np.eye(*shape[-2:]), dtype)


def symmetric(function):
    return lambda x: function(x + snp.swapaxes(snp.conj(x), -1, -2))


def with_diagonals(x):
    d = x[..., 0, :]
    return lax.linalg.tridiagonal_solve(0.1 * d, 2 + d * d, 0.1 * d, x)


FUNCTIONS = {
    "potrf": symmetric(snp.linalg.cholesky),
    "syevd or heevd": symmetric(snp.linalg.eigh),
    "gesdd": snp.linalg.svd,
    "geqrf and orgqr": snp.linalg.qr,
    "geqp3": lambda x: lax.linalg.qr(x, pivoting=True),
    "getrf": lambda x: lax.linalg.lu(x)[0],
    "getrf and trsm": lambda x: snp.linalg.solve(x, x[..., :2]),
    "geev": lax.linalg.eig,
    "gees": lax.linalg.schur,
    "gehrd": lax.linalg.hessenberg,
    "gtsv": with_diagonals,
}


@with_extension
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_matrix_of_a_batch_is_as_it_is_alone(name, dtype):
    with st.config(enable_x64=True):
        check_alone(st.jit(FUNCTIONS[name]), matrices(2, 65, 8, 8, dtype=dtype))


def check_alone(function, x):
    text = function.lower(x).as_text()
    called = re.findall(r'call_target_name = "((?:lapack|tridiagonal)_\w+)"', text)
    assert called and all([target.endswith("_ffi" + IN_PARTS) for target in called])
    together = st.tree.leaves(function(x))
    for index in [(0, 0), (0, 16), (0, 33), (1, 0), (1, 64)]:
        for whole, alone in zip(together, st.tree.leaves(function(x[index])), strict=True):
            np.testing.assert_array_equal(whole[index], alone)


@with_extension
def test_a_matrix_that_fails_is_nan_in_whichever_part():
    x = np.broadcast_to(np.eye(6, dtype=np.float32), (500, 6, 6)).copy()
    x[[0, 249, 499], 0, 0] = -1
    nan = np.isnan(np.asarray(st.jit(snp.linalg.cholesky)(x))).any((1, 2))
    assert np.flatnonzero(nan).tolist() == [0, 249, 499]


@with_extension
def test_empty_batches_and_batches_of_one():
    factor = st.jit(snp.linalg.cholesky)
    assert factor(snp.zeros((0, 3, 3))).shape == (0, 3, 3)
    assert factor(snp.zeros((2, 0, 0))).shape == (2, 0, 0)
    np.testing.assert_array_equal(factor(4 * snp.eye(200)[None]), 2 * np.eye(200)[None])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_without_the_extension_a_loop_takes_one_matrix_a_turn(name, monkeypatch):
    function, x = FUNCTIONS[name], matrices(2, 3, 4, 4)
    expected = st.tree.leaves(st.jit(function)(x))
    monkeypatch.setattr(kernels, "extension", None)
    monkeypatch.setattr(family, "extension", None)
    again = st.jit(function)
    text = again.lower(x).as_text()
    assert "stablehlo.while" in text and IN_PARTS not in text
    calls = [line for line in text.splitlines() if '"lapack_' in line]
    assert calls and not any([re.search(r"tensor<\d+x\d+x\d+x?\w*f32>", line) for line in calls])
    for got, right in zip(st.tree.leaves(again(x)), expected, strict=True):
        np.testing.assert_array_equal(got, right)


def test_without_the_extension_one_matrix_needs_no_loop(monkeypatch):
    monkeypatch.setattr(kernels, "extension", None)
    monkeypatch.setattr(family, "extension", None)
    text = st.jit(symmetric(snp.linalg.cholesky)).lower(matrices(4, 4)).as_text()
    assert '"lapack_spotrf_ffi"' in text and "stablehlo.while" not in text


@with_extension
def test_which_functions_are_called_in_parts(monkeypatch):
    assert in_parts("lapack_spotrf_ffi") == "lapack_spotrf_ffi_in_parts"
    assert in_parts("tridiagonal_solve_perturbed_ffi").endswith(IN_PARTS)
    assert in_parts("stretto_product") == "stretto_product"
    monkeypatch.setattr(kernels, "extension", None)
    assert in_parts("lapack_spotrf_ffi") == "lapack_spotrf_ffi"


@with_extension
def test_every_routine_has_one_call_of_its_own():
    clients.load_jaxlib()
    functions = clients.importlib.import_module("jaxlib.cpu._lapack").registrations()
    routines = [f for name, f in functions.items() if name.startswith(LAPACK)]
    address = lambda capsule: re.search(r"0x\w+", repr(capsule))[0]
    assert len(routines) > 50
    for routine in routines:
        assert "xla._CUSTOM_CALL_TARGET" in repr(extension.in_parts(routine))
        assert address(extension.in_parts(routine)) != address(routine)
    with pytest.raises(ValueError, match="PyCapsule_GetName"):
        extension.in_parts(1)


@with_extension
def test_files_have_jaxlibs_names_and_run_in_parts():
    x = snp.broadcast_to(4 * snp.eye(10), (2000, 10, 10))
    file = st.export.stablehlo(snp.linalg.cholesky, x)
    assert b"lapack_spotrf_ffi" in file.serialize() and IN_PARTS.encode() not in file.serialize()
    again = StableHLO(from_bytes(file.serialize()), stablehlo_artifact.own_functions)
    text = st.jit(again).lower(x).as_text()
    assert "@lapack_spotrf_ffi_in_parts(" in text and "@lapack_spotrf_ffi(" not in text
    np.testing.assert_array_equal(again(x), 2 * np.eye(10)[None].repeat(2000, 0))
    written = st.export.stablehlo(again, x).serialize()
    assert IN_PARTS.encode() not in written


@pytest.mark.devices
@with_extension
def test_over_devices_each_calls_its_part_in_parts():
    over = st.device_put(matrices(64, 8, 8), NamedSharding(mesh(x=4), P("x")))
    factor = st.jit(symmetric(snp.linalg.cholesky))
    assert f"_ffi{IN_PARTS}" in factor.lower(over).as_text()
    np.testing.assert_array_equal(factor(over), factor(np.asarray(over)))
    assert factor(over).sharding.spec == P("x", None, None)
