"""The kernel of recurrent loops: curves against float64, and what the bits of a row depend on."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto._engine.kernels import kernels

pytestmark = pytest.mark.skipif(kernels is None, reason="needs the kernels")

CURVES = {
    "tanh": (snp.tanh, np.tanh),
    "sigmoid": (
        nn.functional.sigmoid,
        lambda x: np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-abs(x))),
    ),
    "slope of tanh": (st.grad(lambda x: snp.tanh(x).sum()), lambda x: 1 / np.cosh(x) ** 2),
    "slope of sigmoid": (
        st.grad(lambda x: nn.functional.sigmoid(x).sum()),
        lambda x: np.exp(-abs(x)) / (1 + np.exp(-abs(x))) ** 2,
    ),
}
"""Functions of the kernel, and what they are; with the bound in units in the last place below."""

ULPS = {"tanh": 2, "sigmoid": 2, "slope of tanh": 8, "slope of sigmoid": 4}


@pytest.fixture(autouse=True)
def _wide(request):
    """Have float64 where a test is for it."""
    params = getattr(request.node, "callspec", None)
    with st.enable_x64(params is not None and params.params.get("dtype") == "float64"):
        yield


def through_loop(curve, xs):
    """Return a curve of stacked rows, by a loop that the kernel has; its product is of zeros."""
    w = np.zeros((xs.shape[-1],) * 2, xs.dtype)
    step = lambda h, x: (h @ w, curve(x + h))
    f = st.jit(lambda xs: st.lax.scan(step, snp.zeros(xs.shape[1:], xs.dtype), xs)[1])
    assert "stretto_loop" in f.lower(xs).as_text()
    return np.asarray(f(xs))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CURVES)
def test_curves(name, dtype):
    curve, exact = CURVES[name]
    rng = np.random.default_rng(0)
    tiny = np.exp(rng.uniform(-40, 0, 8192))
    values = np.concatenate([rng.uniform(-40, 40, 8192), rng.uniform(-1, 1, 8192), tiny, -tiny])
    xs = values.astype(dtype).reshape(8, 64, 64)
    got = through_loop(curve, xs).astype(np.longdouble)
    expected = exact(xs.astype(np.longdouble))
    ulps = np.abs(got - expected) / np.spacing(np.abs(expected).astype(dtype))
    assert ulps.max() <= ULPS[name]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_curves_end(dtype):
    xs = np.zeros((2, 16, 64), dtype)
    xs[1, 0, :6] = [np.inf, -np.inf, np.nan, -0.0, 1e30, -1e30]
    tanh = through_loop(snp.tanh, xs)[1, 0]
    np.testing.assert_array_equal(tanh[:6], [1, -1, np.nan, 0, 1, -1])
    np.testing.assert_array_equal(
        through_loop(nn.functional.sigmoid, xs)[1, 0, :6], [1, 0, np.nan, 0.5, 1, 0]
    )
    slopes = [through_loop(CURVES[name][0], xs)[1, 0, :6] for name in CURVES if "slope" in name]
    np.testing.assert_array_equal(slopes, [[0, 0, np.nan, 1, 0, 0], [0, 0, np.nan, 0.25, 0, 0]])


def lstm(rows, members=()):
    """Return the arguments of an LSTM's loop."""
    rng = np.random.default_rng(0)
    make = lambda *shape: rng.standard_normal((*members, *shape)).astype(np.float32) * 0.3
    return make(70, 280), make(rows, 70), make(5, rows, 280)


def run(u, h, xs):
    def step(state, x):
        i, f, g, o = snp.split(x + state[0] @ u, 4, axis=-1)
        c = nn.functional.sigmoid(f) * state[1] + nn.functional.sigmoid(i) * snp.tanh(g)
        h = nn.functional.sigmoid(o) * snp.tanh(c)
        return (h, c), h

    return st.lax.scan(step, (h, h), xs)


@pytest.mark.parametrize(("start", "stop"), [(0, 1), (3, 20), (40, 150)])
def test_bits_of_a_row_are_its_own(start, stop):
    u, h, xs = lstm(150)
    whole = np.asarray(st.jit(run)(u, h, xs)[1])
    part = st.jit(run)(u, h[start:stop], xs[:, start:stop])[1]
    np.testing.assert_array_equal(part, whole[:, start:stop])


def test_bits_of_a_member_are_its_own():
    args = lstm(9, (3,))
    got = np.asarray(st.jit(st.vmap(run))(*args)[1])
    for n in range(3):
        alone = st.jit(run)(*[a[n] for a in args])[1]
        np.testing.assert_array_equal(got[n], alone)


_PRINTED = """
import hashlib, numpy as np, stretto as st
from tests._engine.kernels.test_recurrent import lstm, run
print(hashlib.sha256(np.asarray(st.jit(run)(*lstm(150))[1]).tobytes()).hexdigest())
"""


def test_bits_do_not_depend_on_threads():
    found = set()
    for threads in ("1", "3"):
        environment = os.environ | {"NPROC": threads, "PJRT_NPROC": threads}
        done = subprocess.run(
            [sys.executable, "-c", _PRINTED], env=environment, capture_output=True, check=True
        )
        found.add(done.stdout)
    assert len(found) == 1


def test_a_sum_of_many_terms_is_exact_enough():
    rng = np.random.default_rng(0)
    w, h = rng.standard_normal((2, 1000, 1000)).astype(np.float32) / math.sqrt(1000)
    got = st.jit(lambda h: st.lax.scan(lambda h, _: (h @ w, None), h, None, length=1)[0])(h[:9])
    expected = h[:9].astype(np.float64) @ w.astype(np.float64)
    np.testing.assert_allclose(got, expected, rtol=0, atol=2e-6)


update, pad = st.lax.dynamic_update_slice, st.lax.pad
BETWEEN_ZEROS = {
    "padded": lambda x: pad(x[:, :20], 0.0, [(0, 0, 0), (1, 43, 0)]),
    "put": lambda x: update(snp.zeros_like(x), x[:, 4:9], (0, 3)),
    "put beside": lambda x: update(update(snp.zeros_like(x), x[:, 4:9], (0, 3)), x[:, :2], (0, 8)),
    "put again": lambda x: update(update(snp.zeros_like(x), x[:, 4:9], (0, 3)), x[:, :5], (0, 3)),
    "put at the end": lambda x: update(snp.zeros_like(x), x[:, 4:9], (0, 62)),
    "added": lambda x: snp.zeros_like(x).at[:, 3:8].add(x[:, 4:9]),
    "added beside": lambda x: (
        snp.zeros_like(x).at[:, 3:8].add(x[:, 4:9]).at[:, 10:12].add(x[:, :2])
    ),
    "sum": lambda x: (
        pad(x[:, :20], 0.0, [(0, 0, 0), (44, 0, 0)]) + pad(x[:, 3:9], 0.0, [(0, 0, 0), (2, 56, 0)])
    ),
    "sum over each other": lambda x: (
        pad(x[:, :40], 0.0, [(0, 0, 0), (24, 0, 0)]) + pad(x[:, 3:35], 0.0, [(0, 0, 0), (0, 32, 0)])
    ),
    "joined": lambda x: snp.concatenate([x[:, 32:], snp.zeros_like(x[:, :10]), x[:, :22]], -1),
    "turned": lambda x: snp.concatenate([x[:, 32:], x[:, :32]], -1),
}


@pytest.mark.parametrize("name", BETWEEN_ZEROS)
def test_columns_between_zeros(name):
    """Of what is put somewhere zeros keep their signs; what is added is added to a zero."""
    f = BETWEEN_ZEROS[name]
    rng = np.random.default_rng(0)
    xs = rng.standard_normal((3, 64, 64)).astype(np.float32)
    xs[rng.random(xs.shape) < 0.2] = -0.0
    w, h = np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32)
    run = st.jit(lambda h, xs: st.lax.scan(lambda h, x: (h @ w, (f(x), h)), h, xs)[1])
    assert "stretto_loop" in run.lower(h, xs).as_text()
    wanted = np.stack([np.asarray(f(snp.asarray(x))) for x in xs])
    np.testing.assert_array_equal(np.asarray(run(h, xs)[0]).view(np.int32), wanted.view(np.int32))


IN_A_STEP = {
    "squares": lambda x, h: x * x + snp.square(h),
    "powers": lambda x, h: st.lax.integer_pow(x, 2) - h,
    "both hold": lambda x, h: snp.where((x > 0) & (h < 0), x, h),
    "one does not": lambda x, h: snp.where(~(x > 0) | (h < 0.5), x, h * 2),
    "truth as numbers": lambda x, h: (x > 0).astype(x.dtype) * h,
    "one column for all": lambda x, h: x[:, 3:4] * h,
    "the first for all": lambda x, h: x[:, :1] + h,
    "its condition": lambda x, h: snp.where(x[:, 5:6] > 0, x, h),
    "some columns": lambda x, h: x[:, 2:40] + h[:, 20:58],
    "some of one part": lambda x, h: snp.concatenate([x[:, :30], h[:, 30:]], -1)[:, 10:25],
    "some of both parts": lambda x, h: snp.concatenate([x[:, :30], h[:, 30:]], -1)[:, 20:45],
    "zeros beside a part": lambda x, h: (
        pad(h[:, :20], 0.0, [(0, 0, 0), (20, 24, 0)])[:, :10] + x[:, :10]
    ),
    "a number": lambda x, h: 0.5 * x - h,
    "a number for all": lambda x, h: snp.full_like(x, 2.0) * h,
    "a column and nothing else": lambda x, h: snp.broadcast_to(x[:, 7:8], x.shape) + 0 * h,
}


@pytest.mark.parametrize("name", IN_A_STEP)
def test_what_a_step_computes(name):
    f = IN_A_STEP[name]
    rng = np.random.default_rng(0)
    xs = rng.standard_normal((3, 64, 64)).astype(np.float32)
    w, h = rng.standard_normal((2, 64, 64)).astype(np.float32) / 8
    run = st.jit(lambda h, xs: st.lax.scan(lambda h, x: (h @ w, f(x, h)), h, xs)[1])
    assert "stretto_loop" in run.lower(h, xs).as_text()
    for x, got in zip(xs, np.asarray(run(h, xs)), strict=True):
        wanted = np.asarray(f(snp.asarray(x), snp.asarray(h)))
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
        h = h @ w
