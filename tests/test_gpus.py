"""GPUs as devices beside the CPU; see ``tests/gpus`` for what is tested where there is none."""

import os
import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax, nn, optim, random
from stretto._engine.xla import clients, plugins
from tests import gpus
from tests.functions import checks, table
from tests.functions import (
    test_functions as every_entry,  # noqa: F401 (fills the table)
)

gpu = gpus.gpu
X = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def test_devices_by_their_names(gpu):
    assert gpu.platform == "gpu" and str(gpu) == "gpu:0" and repr(gpu) == "GpuDevice(id=0)"
    assert st.devices("cuda") == st.devices("gpu") and gpu not in st.devices()
    assert st.devices()[0].platform == "cpu" and gpu.is_local
    assert st.distributed.local_devices(backend="gpu") == st.devices("gpu")
    assert pickle.loads(pickle.dumps(gpu)) == gpu
    for name in ("gpu", "cuda", "gpu:0", "cuda:0", gpu):
        assert st.device_put(X, name).device == gpu
    with pytest.raises(ValueError, match="device_put: device 'gpu:99' is not there"):
        st.device_put(X, "gpu:99")
    assert st.devices()[0].memory_stats() is None


def test_arrays_there_and_back(gpu):
    for dtype in ("float32", "int8", "bool", "complex64", "bfloat16", "float8_e4m3fn", "int4"):
        x = snp.asarray(X).astype(dtype)
        there = st.device_put(x, gpu)
        assert there.device == gpu and there.sharding.device_set == {gpu}
        back = st.device_put(there, "cpu")
        assert back.device.platform == "cpu" and back.type == x.type
        np.testing.assert_array_equal(np.asarray(back), np.asarray(x))
        np.testing.assert_array_equal(np.asarray(there), np.asarray(x))
    assert float(st.device_put(2.5, gpu)) == 2.5
    empty = st.device_put(np.zeros((0, 3)), gpu)
    assert empty.sum() == 0


def test_what_is_computed_stays_there(gpu):
    x = st.device_put(X, gpu)
    assert (x * 2 + 1).device == gpu and snp.sin(x).device == gpu
    assert (x + np.ones(3, np.float32)).device == (x + snp.ones(3)).device == gpu
    f = st.jit(lambda x: (snp.tanh(x) ** 2).sum())
    for g in (f, st.grad(f), st.hessian(f), st.vmap(f), st.vmap(st.grad(f))):
        y = g(x)
        assert y.device == gpu
        np.testing.assert_allclose(y, g(X), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="all must be on the same devices"):
        x + st.device_put(X, st.sharding.NamedSharding(st.make_mesh((1,), ("x",)), st.P()))


def test_control_flow_and_random_numbers(gpu):
    def f(key, x):
        x = lax.fori_loop(0, 5, lambda i, x: x * 0.5 + i, x)
        x = lax.cond(x.sum() > 0, lambda x: x, lambda x: -x, x)
        total, steps = lax.scan(lambda c, row: (c + row, c * row), snp.zeros(3), x)
        return total, steps, random.normal(key, (4,)), random.bits(key, (8,))

    expected = f(random.key(3), X)
    with st.default_device(gpu):
        for run in (f, st.jit(f)):
            out = run(random.key(3), X)
            assert {o.device for o in out} == {gpu}
            for a, b in zip(out, expected):
                np.testing.assert_allclose(a, b, rtol=1e-5)
    np.testing.assert_array_equal(out[3], expected[3])


def test_the_rounds_of_random_bits_are_few_kernels(gpu):
    draw = st.jit(lambda key: random.normal(key, (64,)) * random.uniform(random.fold_in(key, 1)))
    key = random.key(0)
    there = draw.lower(random.wrap_key_data(st.device_put(random.key_data(key), gpu)))
    assert 'inlineable = "false"' in draw.lower(key).as_text()
    assert "inlineable" not in there.as_text()
    if gpus.REAL:  # one for each operation of a function that is kept apart: hundreds
        assert there.compile().as_text().count(" fusion(") < 20


def test_products_have_the_precision_of_their_dtype(gpu):
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(256, 256)).astype(np.float32) for _ in range(2))
    image, kernel = rng.normal(size=(2, 8, 9, 9)), rng.normal(size=(4, 8, 3, 3))
    exact = a.astype(np.float64) @ b
    assert np.abs(st.device_put(a, gpu) @ b - exact).max() < 2e-4  # TF32: 0.02
    conv = lambda x, k: lax.conv(x, k, (1, 1), "SAME")
    with st.enable_x64():
        exact = conv(snp.asarray(image), snp.asarray(kernel))
    put = st.device_put(image.astype(np.float32), gpu)
    assert np.abs(np.asarray(conv(put, kernel.astype(np.float32))) - exact).max() < 2e-5


def test_the_last_of_several_updates_sets_an_element(gpu):
    rng = np.random.default_rng(0)
    index = rng.integers(-3, 40, 1000)
    for dtype in ("float32", "bfloat16", "int8", "bool", "complex64"):
        new = snp.asarray(rng.normal(size=(1000, 3))).astype(dtype)
        old = snp.zeros((37, 3), dtype)
        there = [st.device_put(x, gpu) for x in (old, new)]
        for f in (
            lambda old, new: old.at[index].set(new),
            lambda old, new: old.at[index, 1].set(new[:, 0], mode="clip"),
            st.vmap(lambda o, n: o.at[index].set(n), 1, 1),
        ):
            for run in (f, st.jit(f)):
                np.testing.assert_array_equal(run(*there), f(old, new))
    f = lambda new: (snp.zeros((37, 3)).at[index].set(new) ** 2).sum()
    new = rng.normal(size=(1000, 3)).astype(np.float32)
    np.testing.assert_allclose(st.grad(f)(st.device_put(new, gpu)), st.grad(f)(new), rtol=1e-6)


def test_extrema_of_what_is_computed(gpu):
    rng = np.random.default_rng(0)
    for rows, columns in ((5, 4), (200, 33), (64, 1000)):
        x, y, z = rng.normal(size=(3, rows, columns)).astype(np.float32)
        put = [st.device_put(v, gpu) for v in (x, y, z)]

        def distances(x, y, z):
            return snp.sum(snp.square(x[:, None] * y[:4] - z[None, :4]), -1)

        def summed(x, y, z):
            return snp.sum(snp.max(x * y + z * snp.sin(x), -1) + snp.min(distances(x, y, z), -1))

        for place in (snp.argmin, snp.argmax):
            f = st.jit(lambda *args, place=place: place(distances(*args), -1))
            np.testing.assert_array_equal(f(*put), f(x, y, z))
        slope = st.jit(st.grad(summed, argnums=(0, 1, 2)))
        for a, b in zip(slope(*put), slope(x, y, z)):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


def test_convolutions(gpu):
    rng = np.random.default_rng(0)
    x, k = (rng.normal(size=shape) for shape in ((2, 8, 9, 7), (4, 4, 3, 3)))
    for dtype in ("float32", "int32", "complex64", "bfloat16"):
        image, kernel = (snp.asarray(10 * a).astype(dtype) for a in (x, k))
        for options in ({"padding": "SAME"}, {"padding": "VALID", "rhs_dilation": (2, 1)}):
            f = partial(
                lax.conv_general_dilated, window_strides=(1, 2), feature_group_count=2, **options
            )
            there = f(st.device_put(image, gpu), kernel)
            error = 0.02 if dtype == "bfloat16" else 1e-5
            np.testing.assert_allclose(there, f(image, kernel), rtol=error, atol=300 * error)
    f = lambda x, k: (lax.conv(x, k, (2, 1), "SAME") ** 2).sum()
    x, k = x.astype(np.float32), rng.normal(size=(4, 8, 3, 3)).astype(np.float32)
    slopes = st.grad(f, (0, 1))
    for a, b in zip(slopes(st.device_put(x, gpu), k), slopes(x, k)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-2)


def test_donated_and_captured_arrays(gpu):
    captured = snp.ones(3)
    x = st.device_put(X, gpu)
    f = st.jit(lambda x: x + captured, donate_argnums=0)
    y = f(x)
    np.testing.assert_array_equal(y, X + 1)
    assert y.device == gpu and x.is_deleted()


def test_factorizations(gpu):
    a = np.random.default_rng(1).normal(size=(3, 4, 4)).astype(np.float32)
    spd = a @ a.swapaxes(1, 2) + np.eye(4, dtype=np.float32)
    there = st.device_put(spd, gpu)
    np.testing.assert_allclose(snp.linalg.cholesky(there), np.linalg.cholesky(spd), rtol=1e-3)
    failed = snp.linalg.cholesky(st.device_put(-spd, gpu))
    np.testing.assert_array_equal(failed, snp.linalg.cholesky(-spd))
    low = np.tril(a) + 4 * np.eye(4, dtype=np.float32)
    for left in (True, False):
        for form in ({}, {"transpose_a": True}):
            solve = lax.linalg.triangular_solve
            run = partial(solve, left_side=left, lower=True, **form)
            np.testing.assert_allclose(run(st.device_put(low, gpu), a), run(low, a), rtol=1e-3)
    if not gpus.REAL:
        return
    solved = snp.linalg.solve(there, a)
    np.testing.assert_allclose(solved, np.linalg.solve(spd, a), rtol=1e-3, atol=1e-4)
    w, v = snp.linalg.eigh(there)
    np.testing.assert_allclose(spd @ np.asarray(v), v * snp.expand_dims(w, 1), rtol=0.01, atol=1e-3)
    np.testing.assert_allclose(snp.linalg.det(there), np.linalg.det(spd), rtol=1e-3)
    for shape in ((3, 5, 3), (3, 3, 5), (1, 70, 40)):
        m = np.random.default_rng(2).normal(size=shape).astype(np.float32)
        for dtype in (np.float32, np.complex64):
            x = st.device_put(m.astype(dtype) * (1 + 1j if dtype == np.complex64 else 1), gpu)
            for full in (False, True):
                u, s, vh = map(np.asarray, snp.linalg.svd(x, full_matrices=full))
                k = min(shape[1:])
                again = (u[..., :k] * s[:, None]) @ vh[:, :k]
                np.testing.assert_allclose(again, np.asarray(x), atol=1e-4)
            q, r = map(np.asarray, snp.linalg.qr(x))
            np.testing.assert_allclose(q @ r, np.asarray(x), atol=1e-4)
            s = snp.linalg.svd(x, compute_uv=False)
            np.testing.assert_allclose(s, np.linalg.svd(np.asarray(x), compute_uv=False), rtol=1e-3)


def test_what_gpus_do_not_have_is_refused(gpu):
    x = st.device_put(np.eye(3, dtype=np.float32), gpu)
    for f in (snp.linalg.eig, st.scipy.linalg.schur):
        with pytest.raises(NotImplementedError, match=r"no counterpart on GPUs: .* 'cpu'"):
            f(x)


class Odd(Exception):
    pass


def test_programs_call_python(gpu, capsys):
    x = st.device_put(X, gpu)

    def host_sin(a):
        assert a.device.platform == "cpu"  # also what is computed in it
        return np.sin(np.asarray(a + 0))

    f = st.jit(lambda x: st.pure_callback(host_sin, x, x * 2, vmap_method="sequential") + 1)
    for _ in range(3):
        y = f(x)
        assert y.device == gpu
        np.testing.assert_allclose(y, np.sin(2 * X) + 1, rtol=1e-6)
    np.testing.assert_allclose(st.vmap(f)(x), np.sin(2 * X) + 1, rtol=1e-6)
    product = st.jit(lambda a: a @ a.T)
    g = st.jit(lambda x: st.pure_callback(product, snp.zeros((2, 2)), x))
    np.testing.assert_allclose(g(x), X @ X.T)
    for dtype in ("int8", "bool", "complex64", "bfloat16", "float16", "uint32"):
        there = st.device_put(snp.asarray(X).astype(dtype), gpu)
        back = st.jit(lambda x: st.pure_callback(lambda a: a, x, x))(there)
        assert back.type == there.type
        np.testing.assert_array_equal(np.asarray(back), np.asarray(there))
    pair = st.jit(
        lambda x: st.pure_callback(
            lambda a: (a.sum(), a[:0]), (snp.zeros(()), snp.zeros((0, 3))), x
        )
    )
    total, none = pair(x)
    assert float(total) == X.sum() and none.shape == (0, 3)
    st.jit(lambda x: st.debug.print("the sum is {}", x.sum()) or x)(x)
    st.debug.effects_barrier()
    assert capsys.readouterr().out == "the sum is 15.0\n"


def test_calls_of_python_keep_their_order(gpu):
    order = []

    def step(carry, i):
        st.io_callback(lambda i: order.append(int(i)), None, i, ordered=True)
        return carry + i, None

    out, _ = st.jit(lambda x: lax.scan(step, x, snp.arange(20.0)))(st.device_put(X, gpu))
    assert order == list(range(20))
    np.testing.assert_allclose(out, X + 190)


def test_errors_of_python_come_out_of_the_call(gpu):
    x = st.device_put(X, gpu)

    def fail(a):
        raise Odd(float(a[0, 1]))

    f = st.jit(lambda x: st.pure_callback(fail, x, x) * 2)
    for _ in range(2):
        with pytest.raises(Odd, match=r"1\.0"):
            f(x)
    np.testing.assert_allclose(st.jit(lambda x: x * 2)(x), X * 2)


def test_models_and_ensembles(gpu):
    def make(key):
        one, two = random.split(key)
        return nn.Sequential(nn.Linear(3, 16, key=one), nn.GELU(), nn.Linear(16, 1, key=two))

    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 3)).astype(np.float32)
    y = x.sum(1, keepdims=True)
    loss = lambda model, x, y: snp.mean((model(x) - y) ** 2)
    settings = {"epochs": 3, "batch_size": 16, "key": random.key(1), "progress": False}
    ens, there = (st.Ensemble.init(make, random.key(0), 4) for _ in range(2))
    expected = ens.fit(loss, (x, y), optim.adam(1e-2), **settings)
    with st.default_device(gpu):
        there = st.device_put(there, gpu)
        fitted = there.fit(loss, (x, y), optim.adam(1e-2), **settings)
        out = fitted.ensemble(x)
    assert out.device == st.tree.leaves(fitted.ensemble)[0].device == gpu
    np.testing.assert_allclose(out, expected.ensemble(x), rtol=1e-3, atol=1e-4)


def test_programs_are_kept_on_disk(gpu, tmp_path):
    code = """
import numpy as np, stretto as st
from tests import gpus
if not gpus.REAL:
    gpus.clients._accelerators.append(gpus._stand_in())
f = st.jit(lambda x: (x * 2).sum())
print(f(st.device_put(np.ones(1000, np.float32), "gpu")), st.config.disk_cache)
"""
    env = {**os.environ, "STRETTO_CACHE_DIR": str(tmp_path), "STRETTO_DISK_CACHE": "1"}
    kept = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0 and done.stdout.startswith("2000.0"), done.stderr
        kept.append(sorted(p.name for p in tmp_path.rglob("*") if p.is_file()))
    assert kept[0] == kept[1] and kept[0]


AS_DEFAULT = """
import sys
from tests import gpus
if not gpus.REAL:
    gpus.clients._accelerators.append(gpus._stand_in())
import stretto as st
st.as_jax.install()
import jax, jax.numpy as jnp
assert st.config.default_device == "cuda" and jax.default_backend() == "gpu"
x = jnp.ones((3, 4))
places = [x, jax.jit(jnp.sin)(x), jax.random.normal(jax.random.key(0), (3,)), x @ x.T]
places += [jax.vmap(jax.grad(lambda r: (r**2).sum()))(x), jax.lax.map(jnp.sum, x)]
assert {a.device for a in places} == {jax.devices()[0]} == {st.devices("gpu")[0]}
with jax.default_device(jax.devices("cpu")[0]):
    assert jnp.ones(2).device.platform == "cpu"
jax.config.update("jax_default_device", jax.devices("cpu")[0])
assert jnp.ones(2).device.platform == "cpu"
jax.config.update("jax_default_device", None)
assert jnp.ones(2).device.platform == "gpu"
jax.config.update("jax_platforms", "cpu,cuda")
assert jnp.ones(2).device.platform == jax.default_backend() == "cpu"
print(*jax.config.values["jax_platforms"].split(","))
"""


def test_the_default_of_a_process_and_jaxs_names_for_it():
    env = {**os.environ, "JAX_PLATFORMS": "cuda,cpu"}
    done = subprocess.run(
        [sys.executable, "-c", AS_DEFAULT], env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "cpu cuda\n"), done.stderr


def test_without_a_gpu_or_its_plugin(monkeypatch):
    monkeypatch.setattr(clients, "_accelerators", [])
    monkeypatch.setattr(plugins, "find", lambda: None)
    with pytest.raises(RuntimeError, match=r"no backend 'gpu': .*pip install 'jax-cuda13-plugin\["):
        clients.accelerator()
    assert not clients._accelerators


UP_TO_SIGN = {"lax.linalg.svd", "numpy.linalg.svd", "scipy.linalg.svd"}
"""The vectors are those of other signs; ``test_factorizations`` multiplies them out."""
UP_TO_SIGN |= {"random.multivariate_normal"}  # whose factor by eigh has them
CHECKED = {name: e for name, e in table.ENTRIES.items() if not e.uncompiled}


@gpus.only_on_gpus
@pytest.mark.parametrize("name", sorted(CHECKED.keys() - UP_TO_SIGN) if gpus.REAL else ["none"])
def test_every_function(name, gpu):
    try:
        checks.check_on_device(CHECKED[name], gpu)
    except NotImplementedError as error:
        pytest.skip(str(error))
