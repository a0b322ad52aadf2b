"""Which loops are one kernel each: by the work in them, and whatever operations they have."""

import os
import subprocess
import sys

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import ConfigError
from stretto._engine.xla import options, pjrt
from stretto._engine.xla.options import SMALL_LOOPS, most_bytes

pytestmark = pytest.mark.usefixtures("without_kernels")

lax, linalg = st.lax, snp.linalg
RNG = np.random.default_rng(0)
VECTOR = RNG.normal(size=6).astype(np.float32)
MATRIX = RNG.normal(size=(6, 6)).astype(np.float32)
MATRIX = MATRIX @ MATRIX.T + 6 * np.eye(6, dtype=np.float32)


def loop(body, turns=5):
    return lambda x: lax.fori_loop(0, turns, lambda _, x: body(x).astype(x.dtype), x)


def facts_of(f, *args):
    return st.jit(f).lower(*args)._entry.text().facts


def chosen(f, *args):
    return most_bytes(facts_of(f, *args))


def kernels_of_loops(f, *args):
    return st.jit(f).lower(*args).compile().as_text().count('xla_cpu_small_call="true"')


def square(n):
    return snp.ones((n, n))


def test_work_for_a_library_is_left_to_it():
    small, large = square(16), square(64)
    assert chosen(loop(lambda x: snp.tanh(x @ x)), small)
    assert chosen(loop(lambda x: snp.tanh(x @ x)), large) is None
    assert chosen(loop(lambda x: snp.tanh(large @ x)), snp.ones(64))  # reads the matrix once
    assert chosen(loop(lambda x: snp.outer(x, x)[0]), snp.ones(512))
    assert chosen(lambda x: loop(snp.tanh)(x @ x), large)  # the product is in no loop
    assert chosen(lambda x: x @ x, small) is None  # nor is anything else


def test_work_in_functions_that_loops_call_is_seen():
    called = st.jit(lambda x: snp.tanh(x @ x))
    lowered = st.jit(loop(called)).lower(square(64))
    assert "func.call" in lowered.as_text()
    assert chosen(loop(called), square(64)) is None
    nested = loop(lambda x: lax.cond(x[0, 0] > 0, lambda x: x @ x, lambda x: x, x))
    assert chosen(nested, square(64)) is None
    assert chosen(nested, square(4))


def test_convolutions_are_left_to_a_library():
    images, kernel = snp.ones((2, 8, 16, 16)), snp.ones((8, 8, 3, 3))
    f = loop(lambda x: st.nn.functional.conv2d(x, kernel, padding=1))
    assert "stablehlo.convolution" in st.jit(f).lower(images).as_text()
    assert chosen(f, images) is None


@pytest.mark.parametrize("turns", [5, 50_000])
def test_small_loops_are_one_kernel(turns):
    f = loop(lambda x: snp.sin(x) * 0.9 + (x - x.mean()), turns)
    assert kernels_of_loops(f, snp.ones(500)) == 1
    assert kernels_of_loops(f, snp.ones(1_000_000)) == 0


def test_a_barrier_apart_from_a_loop_leaves_it_one_kernel():
    barred = lax.optimization_barrier
    around = lambda x: loop(snp.sin)(barred(x * 2)) + barred(x * 3)
    within = loop(lambda x: snp.sin(barred(x * 2)))
    for f, count in ((around, 1), (within, 0), (lambda x: within(around(x)), 0)):
        x = snp.ones(500)
        assert facts_of(f, x).has_barriers_in_loops == (count == 0)
        assert kernels_of_loops(f, x) == count
        np.testing.assert_allclose(st.jit(f)(x), f(x), rtol=1e-5)


def test_convolutions_in_loops_hide_nothing():
    """As a barrier in the loop would keep it from becoming one kernel."""
    smooth = lambda x: snp.convolve(x, snp.ones(9) / 9, mode="same")
    assert facts_of(loop(smooth), snp.ones(64)).has_barriers_in_loops is False
    assert kernels_of_loops(loop(smooth), snp.ones(64)) == 1
    assert facts_of(smooth, snp.ones(64)).has_barriers


def test_users_decide(monkeypatch):
    f = loop(lambda x: snp.sin(x) * 0.9 + (x - x.mean()))
    x = snp.ones(500)
    text = st.jit(f, compiler_options={SMALL_LOOPS: 0}).lower(x).compile().as_text()
    assert "xla_cpu_small_call" not in text
    facts = facts_of(f, x)
    assert dict(pjrt.runtime().options_for(facts, ()))[SMALL_LOOPS] == most_bytes(facts)
    monkeypatch.setenv("XLA_FLAGS", f"--xla_backend_extra_options={SMALL_LOOPS}=1024")
    assert SMALL_LOOPS not in dict(pjrt.runtime().options_for(facts, ()))


@pytest.mark.parametrize("value", [-1, 1.5, "many", True])
def test_a_bound_is_a_number_of_bytes(value):
    f = st.jit(lambda x: x + 1, compiler_options={SMALL_LOOPS: value})
    with pytest.raises(ConfigError, match=f"must be a number of bytes, got {value!r}"):
        f(1.0)


def test_what_xla_flags_says_otherwise_holds(tmp_path):
    """Also where a program gets a bound of ours."""
    dumped = tmp_path / "dumped"
    loop = "st.lax.fori_loop(0, n, lambda _, x: x * 2, n)"
    code = f"import stretto as st; st.jit(lambda n: {loop})(3)"
    flags = {"XLA_FLAGS": f"--xla_dump_to={dumped}", "STRETTO_DISK_CACHE": "0"}
    subprocess.run([sys.executable, "-c", code], env={**os.environ, **flags}, check=True)
    assert [*dumped.glob("*after_optimizations.txt")]


def test_the_profile_has_their_lines():
    def f(x):
        x = loop(lambda x: snp.sin(x) * 0.9 + (x - x.mean()), 1000)(x)
        return x[::-1] + 1

    report = st.profiler.profile(f, snp.ones(500))
    slowest = report.lines[0]
    assert slowest.line.endswith(f"test_small_loops.py:{loop.__code__.co_firstlineno + 1}")
    assert slowest.kernels == 1
    assert slowest.seconds > 0.5 * sum(k.seconds for k in report.lines)


BODIES = {
    "fft": lambda x: snp.fft.ifft(snp.fft.fft(x)).real * 0.9,
    "solve": lambda x: linalg.solve(MATRIX, x),
    "cholesky": lambda x: linalg.cholesky(MATRIX) @ x * 0.1,
    "eigh": lambda x: linalg.eigh(MATRIX)[0] * x * 0.1,
    "sort": lambda x: snp.sort(x)[::-1] * 0.9,
    "top_k": lambda x: lax.top_k(x, 6)[0],
    "running sum": lambda x: snp.cumsum(x) * 0.3,
    "gather": lambda x: x[snp.array([1, 0, 2, 5, 4, 3])],
    "scatter": lambda x: x.at[snp.array([0, 0, 1])].add(x[:3]) * 0.5,
    "update": lambda x: lax.dynamic_update_slice(x, x[1:3] * 0.5, (x.argmin() % 4,)),
    "cond": lambda x: lax.cond(x.sum() > 0, lambda x: -x, lambda x: x * 0.5, x),
    "while": lambda x: lax.while_loop(lambda y: abs(y).max() < 3, lambda y: y * 1.5 + 0.1, x) / 5,
    "scan": lambda x: lax.scan(lambda c, y: (c + y, c * y), 0.0, x)[1] * 0.3,
    "random": lambda x: x * 0.5 + st.random.normal(st.random.key(3), (6,)),
    "product": lambda x: snp.tanh(MATRIX @ x),
    "convolution": lambda x: snp.convolve(x, snp.ones(3), "same") * 0.3,
    "windows": lambda x: st.nn.functional.max_pool1d(x[None, None], 3, 1, 1)[0, 0] * 0.9,
    "special": lambda x: st.scipy.special.i0e(x) + st.scipy.special.gammaln(1 + abs(x)),
    "callback": lambda x: st.pure_callback(lambda x: np.asarray(x) * 0.5, x, x) + 1,
    "barrier": lambda x: lax.optimization_barrier(x * 0.5) + 1,
    "gradient": st.grad(st.checkpoint(lambda x: snp.sin(snp.sin(x)).sum())),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", BODIES)
def test_the_values_are_the_same_in_one_kernel(name, dtype):
    def body(x):
        return BODIES[name](x.astype(np.float32)).astype(x.dtype)

    x = snp.array(VECTOR).astype(dtype)
    f = loop(body)
    apart = st.jit(f, compiler_options={SMALL_LOOPS: 0})
    tolerance = 1e-5 if dtype == "float32" else 2e-2
    np.testing.assert_allclose(
        np.asarray(st.jit(f)(x), np.float32),
        np.asarray(apart(x), np.float32),
        rtol=tolerance,
        atol=tolerance,
    )


@pytest.mark.parametrize("count", [200, 300, 2048])
@pytest.mark.parametrize("draw", [st.random.uniform, lambda k, n: st.random.gamma(k, 2.0, n)])
def test_loops_that_draw_what_two_threads_share_compile(draw, count):
    """XLA's kernel of such a loop would call for threads that it has not got."""

    key = st.random.key(0)

    def drawn(key):
        return lax.scan(lambda c, k: (c, draw(k, (count,))), 0, st.random.split(key, 3))[1]

    with st.config(disk_cache=False):
        together = st.jit(drawn)(key)
    alone = snp.stack([draw(k, (count,)) for k in st.random.split(key, 3)])
    np.testing.assert_allclose(together, alone, rtol=1e-5)


def test_a_loop_that_does_not_link_as_one_kernel_is_compiled_in_parts(monkeypatch):
    monkeypatch.setattr(options, "_SHARED", 1 << 30)  # the kind is not known beforehand
    test_loops_that_draw_what_two_threads_share_compile(st.random.uniform, 2048)
