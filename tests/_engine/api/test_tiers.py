"""``config.tiers``: calls run what was compiled quickly, until the optimized program is there."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.xla import cache, pjrt

X = snp.linspace(0.0, 1.0, 64).reshape(8, 8)


@pytest.fixture(autouse=True)
def tiers():
    with st.config(tiers=True, disk_cache=False, interpret_small=False):
        yield


def is_quick(options):
    return dict(pjrt.quick()).items() <= dict(options).items()


@pytest.fixture
def gate(monkeypatch):
    """What compiles: the optimized programs wait until it is set. Its ``log`` says which.

    They wait in the background alone: a call that is to give one finds the gate open, or fails.
    """
    real = pjrt.compile_text
    gate = threading.Event()
    gate.log = []

    def compile_text(text, out_types, options=(), *rest):
        quick = is_quick(options)
        if not quick:
            background = threading.current_thread().name == "stretto-background"
            assert gate.wait(30 if background else 0)
        gate.log.append("quick" if quick else "optimized")
        return real(text, out_types, options, *rest)

    monkeypatch.setattr(cache, "compile_text", compile_text)
    yield gate
    gate.set()
    settle()


def settle():
    """Wait for the background thread to end."""
    for thread in threading.enumerate():
        if thread.name == "stretto-background":
            thread.join(60)


def function(number=1.0):
    """A jitted function that no other test has compiled."""
    return st.jit(lambda x, y: snp.tanh(x @ y + number) + number)


def entry_of(jitted):
    (entry,) = jitted._entries.values()
    return entry


def test_quick_first_then_optimized(gate):
    f = function(2.0)
    expected = np.tanh(np.asarray(X) @ np.asarray(X) + 2) + 2
    for _ in range(4):
        np.testing.assert_allclose(f(X, X), expected, rtol=1e-5)
    assert gate.log == ["quick"]
    assert entry_of(f).quick and not entry_of(f).records
    gate.set()
    settle()
    assert gate.log == ["quick", "optimized"]
    assert not entry_of(f).quick
    for _ in range(4):
        np.testing.assert_allclose(f(X, X), expected, rtol=1e-5)
    assert entry_of(f).records
    assert gate.log == ["quick", "optimized"]


def test_off_by_default(gate):
    gate.set()
    with st.config(tiers=False):
        function(3.0)(X, X)
    assert gate.log == ["optimized"]


def test_the_optimized_program_gives_the_bits_of_one_tier(gate):
    gate.set()
    f = function(4.0)
    f(X, X)
    settle()
    assert not entry_of(f).quick
    after = f(X, X)
    st.clear_caches()
    with st.config(tiers=False):
        np.testing.assert_array_equal(function(4.0)(X, X), after)


def test_ahead_of_time_gives_the_optimized_one(gate):
    f = function(5.0)
    f(X, X)
    gate.set()
    compiled = f.lower(X, X).compile()
    assert not entry_of(f).quick
    assert gate.log == ["quick", "optimized"]  # once, by whichever thread
    np.testing.assert_array_equal(compiled(X, X), f(X, X))
    g = function(6.0)
    g.lower(X, X).compile()
    assert gate.log[2:] == ["optimized"]


def test_what_is_optimized_already_has_no_first_tier(gate):
    gate.set()
    f = function(7.0)
    f(X, X)
    settle()
    np.testing.assert_allclose(function(7.0)(X, X), np.tanh(np.asarray(X @ X) + 7) + 7, rtol=1e-6)
    assert gate.log == ["quick", "optimized"]


def test_only_the_optimized_program_is_on_disk(gate, monkeypatch, tmp_path):
    monkeypatch.setenv("STRETTO_CACHE_DIR", str(tmp_path))
    files = lambda: [p for p in tmp_path.rglob("*") if p.is_file() and p.stat().st_size > 1000]
    with st.config(disk_cache=True):
        f = function(8.0)
        f(X, X)
        assert not files()
        gate.set()
        settle()
        assert len(files()) == 1
        st.clear_caches()
        again = function(8.0)
        again(X, X)
    assert not entry_of(again).quick
    assert entry_of(again).executable.from_disk
    assert gate.log == ["quick", "optimized"]


def test_donation(gate):
    f = st.jit(lambda x, y: (x + y, (x * y).sum()), donate_argnums=0)
    for turn in range(3):
        if turn == 2:
            gate.set()
            settle()
        x = snp.ones((8, 8))
        total, product = f(x, X)
        np.testing.assert_array_equal(total, 1 + np.asarray(X))
        np.testing.assert_allclose(product, X.sum(), rtol=1e-6)
        with pytest.raises(st.errors.DonatedArrayError):
            x + 1


def test_large_constants_and_callbacks(gate):
    gate.set()
    big = np.arange(20_000.0, dtype=np.float32)
    f = st.jit(lambda x: x + big)
    np.testing.assert_array_equal(f(snp.ones(20_000)), big + 1)
    called = []
    g = st.jit(lambda x: (st.debug.callback(called.append, x), x + 1)[1])
    np.testing.assert_array_equal(g(X), np.asarray(X) + 1)
    settle()
    np.testing.assert_array_equal(f(snp.ones(20_000)), big + 1)
    assert len(called) == 1
    assert not entry_of(g).quick


def test_a_failure_is_a_warning_and_the_quick_program_stays(monkeypatch):
    real = pjrt.compile_text

    def compile_text(text, out_types, options=(), *rest):
        if not is_quick(options):
            raise RuntimeError("out of registers")
        return real(text, out_types, options, *rest)

    monkeypatch.setattr(cache, "compile_text", compile_text)
    f = function(9.0)
    with pytest.warns(RuntimeWarning, match=r"could not be optimized .* out of registers"):
        first = f(X, X)
        settle()
    assert entry_of(f).quick
    np.testing.assert_array_equal(f(X, X), first)


def test_a_failure_of_the_first_tier_is_an_error_in_each_thread(monkeypatch):
    f, messages = function(15.0), []

    def fail(*_):
        raise RuntimeError("out of registers")

    def call():
        with st.config(tiers=True, disk_cache=False, interpret_small=False):
            try:
                f(X, X)
            except RuntimeError as error:
                messages.append(str(error))

    with monkeypatch.context() as patched:
        patched.setattr(cache, "compile_text", fail)
        threads = [threading.Thread(target=call, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
    assert messages == ["out of registers"] * 4
    np.testing.assert_allclose(f(X, X), np.tanh(np.asarray(X @ X) + 15) + 15, rtol=1e-5)
    settle()


def test_what_nobody_can_call_is_not_optimized(gate):
    kept = function(13.0)
    kept(X, X)  # the background waits in this one
    function(14.0)(X, X)
    gate.set()
    settle()
    assert gate.log == ["quick", "quick", "optimized"]


def test_clear_caches_while_compiling(gate):
    f = function(10.0)
    first = f(X, X)
    st.clear_caches()
    np.testing.assert_array_equal(f(X, X), first)  # compiled quickly once more
    gate.set()
    settle()
    assert not entry_of(f).quick
    assert gate.log.count("quick") == 2


def test_threads(gate):
    f, results = function(11.0), []

    def call():
        with st.config(tiers=True, disk_cache=False, interpret_small=False):
            results.extend(f(X, X) for _ in range(20))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join(60)
    settle()
    assert len(results) == 80
    for result in results:
        np.testing.assert_allclose(result, results[0], rtol=1e-5)
    assert gate.log == ["quick", "optimized"]


def test_options_of_the_user_come_first(gate, monkeypatch):
    asked = []
    compile_text = cache.compile_text
    monkeypatch.setattr(
        cache, "compile_text", lambda *args: (asked.append(dict(args[2])), compile_text(*args))[1]
    )
    gate.set()
    f = st.jit(lambda x: x @ x, compiler_options={"xla_cpu_enable_fast_math": True})
    np.testing.assert_allclose(f(X), np.asarray(X) @ np.asarray(X), rtol=1e-5)
    settle()
    theirs = {"xla_cpu_enable_fast_math": True}
    assert asked == [{**dict(pjrt.quick()), **theirs}, theirs]


def test_where_the_user_decides_all_there_is_one_tier(gate):
    gate.set()
    decided = {"xla_backend_optimization_level": 2, "xla_cpu_use_fusion_emitters": True}
    options = {name: decided[name] for name, _ in pjrt.quick()}
    f = st.jit(lambda x: x @ x, compiler_options=options)
    np.testing.assert_allclose(f(X), np.asarray(X) @ np.asarray(X), rtol=1e-5)
    settle()
    assert not entry_of(f).quick
    assert gate.log == ["optimized"]


def test_it_is_logged(gate, caplog):
    gate.set()
    with st.config(log_compiles=True):
        f = function(12.0)
        f(X, X)
        settle()
    words = [record.message for record in caplog.records]
    assert any("compiled quickly" in line and "quick compile" in line for line in words)
    assert any("compiled function" in line for line in words)


@pytest.mark.parametrize("end", ["", "raise SystemExit(3)"])
def test_a_process_may_end_while_the_background_is_at_work(end):
    code = f"""
import stretto as st, stretto.numpy as snp
def f(x):
    for i in range(60):
        x = snp.tanh(x @ x + i) * snp.cos(x).sum(0)
    return x
with st.config(tiers=True, disk_cache=False, roll_loops=False):
    print(st.jit(f)(snp.ones((16, 16))).shape)
{end}
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip() == "(16, 16)"
    assert (done.returncode, done.stderr) == (3 if end else 0, "")


@pytest.mark.parametrize("reduce", [snp.max, snp.min, snp.sum])
def test_nan_in_the_first_tier(gate, reduce):
    x = X.at[3, 3].set(np.nan)
    f = st.jit(lambda x: (reduce(x), reduce(snp.maximum(x, 0), 1), snp.clip(x, 0, 1)))
    for part, expected in zip(f(x), (1, 1, 1), strict=True):
        assert np.isnan(part).sum() == expected
    assert gate.log == ["quick"]
