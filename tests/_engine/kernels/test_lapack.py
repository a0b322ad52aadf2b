"""LAPACK's routines by parts of batches: values, what is not divided, and that nobody waits."""

import functools
import subprocess
import sys

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.kernels import kernels
from stretto.numpy import linalg

pytestmark = pytest.mark.skipif(kernels is None, reason="needs the kernels")


def squared(a):
    return a @ snp.swapaxes(a, -1, -2).conj()


ROUTINES = {
    "cholesky": lambda a: linalg.cholesky(squared(a) + 9 * snp.eye(a.shape[-1])),
    "eigh": lambda a: linalg.eigh(a + snp.swapaxes(a, -1, -2).conj()),
    "svd": lambda a: linalg.svd(a, full_matrices=False),
    "qr": linalg.qr,
    "lu": st.lax.linalg.lu,
    "eig": linalg.eigvals,
    "solve": lambda a: linalg.solve(a + 9 * snp.eye(a.shape[-1]), a),
    "inverse": lambda a: linalg.inv(a + 9 * snp.eye(a.shape[-1])),
}


def drawn(shape, dtype):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)


@pytest.mark.parametrize("name", ROUTINES)
@pytest.mark.parametrize("shape", [(57, 6, 6), (3, 19, 4, 4), (2, 30, 30)])
def test_batches_have_the_values_of_jaxlibs_routines(name, shape):
    function = ROUTINES[name]
    a = drawn(shape, "float32")
    jitted = st.jit(function)
    assert '"stretto_lapack_s' in jitted.lower(a).as_text()
    together = st.tree.leaves(jitted(a))
    with st.config(kernels=False):
        plain = st.jit(functools.partial(function))  # not the one that has been compiled
        assert '"stretto_lapack_s' not in plain.lower(a).as_text()
        alone = st.tree.leaves(plain(a))
    for x, y in zip(together, alone, strict=True):
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("dtype", ["float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", ["cholesky", "eigh", "svd", "qr"])
def test_dtypes(name, dtype):
    with st.enable_x64():
        a = drawn((300, 5, 5), dtype)
        found = st.tree.leaves(st.jit(ROUTINES[name])(a))
        for i in (0, 131, 299):
            own = st.tree.leaves(st.jit(ROUTINES[name])(a[i : i + 1]))
            for x, y in zip(found, own, strict=True):
                np.testing.assert_array_equal(x[i], y[0])


def test_a_matrix_that_has_no_factor_is_nan_and_its_neighbours_are_not():
    a = np.broadcast_to(np.eye(4, dtype=np.float32), (400, 4, 4)).copy()
    a[[0, 77, 399], 2, 2] = -1
    found = np.asarray(st.jit(linalg.cholesky)(a))
    bad = np.isnan(found).any((1, 2))
    assert np.flatnonzero(bad).tolist() == [0, 77, 399]
    np.testing.assert_array_equal(found[~bad], a[~bad])


def test_what_is_no_batch():
    a = drawn((40, 40), "float32")
    for name, function in ROUTINES.items():
        for x, y in zip(
            st.tree.leaves(st.jit(function)(a)),
            st.tree.leaves(st.jit(function)(a[None])),
            strict=True,
        ):
            np.testing.assert_allclose(x, y[0], rtol=1e-3, atol=1e-3, err_msg=name)


def test_the_table_takes_capsules_of_xla_alone():
    assert kernels.lapack({"a": 1, "b": None}) == {}
    with pytest.raises(TypeError, match="expected a dictionary"):
        kernels.lapack([1])


WAITING = """
import faulthandler
faulthandler.dump_traceback_later(60, exit=True)
import numpy as np, stretto as st, stretto.numpy as snp
from stretto import nn
rng = np.random.default_rng(0)
x, y = rng.normal(size=(200, 8)).astype("f"), rng.integers(0, 5, 200)
model = nn.Sequential(
    nn.Linear(8, 16, key=st.random.key(0)), nn.Tanh(), nn.Linear(16, 5, key=st.random.key(1))
)
laplace = st.ensemble.fit_laplace(model, (x, y), structure="kron")
run = st.jit(lambda laplace, x: snp.linalg.eigh(laplace.predict(x).covariance)[1])
for n in (32, 256, 1000):
    points = snp.asarray(rng.normal(size=(n, 8)).astype("f"))
    for _ in range(8):
        st.block_until_ready([run(laplace, points) for _ in range(4)])
"""


@pytest.mark.parametrize("time", range(5))
def test_programs_in_flight_do_not_wait_for_each_other(time):
    """One run in four waited for ever where jaxlib's routines were called as they are."""
    subprocess.run([sys.executable, "-c", WAITING], check=True)
