"""Compiled programs kept on disk: found by later processes, the same in all, never in the way."""

import functools
import gzip
import os
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.types import array_type
from stretto._engine.lowering.text import Text
from stretto._engine.xla import disk, pjrt, store


def bits(tree):
    return [(x.dtype, x.shape, np.asarray(x).tobytes()) for x in st.tree.leaves(tree)]


def test_a_program_is_compiled_once_for_all(kept_in, compiled_anew, again):
    for _ in range(3):
        assert float(again(lambda: st.jit(lambda x: x * 3 + 1)(2.0))) == 7
        last, _ = lax.scan(lambda c, _: (c + 1, None), 0, None, length=9000)
        assert int(last) == 9000
    assert len(compiled_anew) == 2 == len(store.list_kept(kept_in))


random = np.random.default_rng(0)


def floats(*shape):
    return random.standard_normal(shape).astype(np.float32)


def spd(n):
    return np.eye(n, dtype=np.float32) * n + np.full((n, n), 0.5, np.float32)


def mlp(weights, x):
    for w in weights:
        x = snp.tanh(x @ w)
    return snp.sum(x * x)


PROGRAMS = {
    "product": (lambda x, y: x @ y, floats(96, 64), floats(64, 80)),
    "products": (lambda x, y: x @ y, floats(8, 32, 48), floats(8, 48, 32)),
    "narrow product": (lambda x: x.astype(snp.bfloat16) @ x.astype(snp.bfloat16).T, floats(32, 16)),
    "convolution": (
        lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME"),
        floats(2, 3, 16, 16),
        floats(4, 3, 3, 3),
    ),
    "sums": (lambda x: (x.sum(), x.sum(0), (x * x).mean(1), x.var()), floats(300, 400)),
    "extrema": (lambda x: (x.max(), x.min(1), snp.argmax(x, 0)), floats(200, 300)),
    "softmax": (lambda x: snp.exp(x - x.max(1, keepdims=True)).sum(1), floats(100, 200)),
    "fourier": (snp.fft.fft, floats(4, 128)),
    "sort": (lambda x: (snp.sort(x), snp.argsort(x)), floats(5, 200)),
    "top": (lambda x: lax.top_k(x, 3), floats(5, 40)),
    "while": (
        lambda x: lax.while_loop(lambda c: c[0] < 50, lambda c: (c[0] + 1, snp.sin(c[1])), (0, x)),
        floats(33),
    ),
    "scan": (lambda x: lax.scan(lambda c, y: (0.9 * c + y, c), x[0], x), floats(50, 7)),
    "branches": (lambda x: lax.cond(x.sum() > 0, snp.sin, snp.cos, x), floats(20)),
    "cholesky": (snp.linalg.cholesky, spd(12)),
    "singular values": (snp.linalg.svd, floats(9, 5)),
    "eigenvalues": (snp.linalg.eigvalsh, spd(7)),
    "solve": (snp.linalg.solve, spd(8), floats(8, 2)),
    "gather and scatter": (lambda x: x[::2].at[1].add(x[3]), floats(20, 3)),
    "cumulative": (snp.cumsum, floats(100)),
    "random bits": (lambda seed: st.random.normal(st.random.key(seed), (50,)), np.uint32(3)),
    "gradient": (st.grad(mlp), [floats(24, 24) for _ in range(2)], floats(8, 24)),
    "members": (st.vmap(lambda w, x: x @ w, (0, None)), floats(6, 24, 24), floats(8, 24)),
    "complex": (lambda x: snp.exp(1j * x) @ x, floats(12, 12)),
    "special": (lambda x: snp.log1p(abs(x)) + lax.lgamma(abs(x) + 1), floats(100)),
    "nothing": (lambda x: x[:0], floats(4)),
    "large temporaries": (
        st.grad(mlp),
        [floats(64, 64) / 8 for _ in range(8)],
        floats(1 << 14, 64),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_comes_from_disk_gives_the_same_bits(kept_in, compiled_anew, name, again):
    fun, *args = PROGRAMS[name]

    def compiled():
        return st.jit(fun).lower(*args).compile()

    with st.config(disk_cache=False):
        fresh = compiled()
        expected = bits(fresh(*args))
        assert not os.path.exists(kept_in)
    again(compiled)
    loaded = again(compiled)
    assert len(compiled_anew) == 2
    assert bits(loaded(*args)) == expected == bits(loaded(*args))
    assert loaded.as_text() == fresh.as_text()
    assert loaded.cost_analysis() == fresh.cost_analysis()
    for part in ("argument", "output", "alias", "temp", "generated_code"):
        size = f"{part}_size_in_bytes"
        assert getattr(loaded.memory_analysis(), size) == getattr(fresh.memory_analysis(), size)


def test_a_program_that_cannot_be_kept_is_logged(kept_in, caplog, monkeypatch):
    monkeypatch.setattr(pjrt, "serialize", lambda executable: None)
    with st.config(log_compiles=True):
        st.jit(lambda x: x @ x * 5)(snp.ones((8, 8)))
    assert "not kept on disk" in caplog.text
    assert not os.path.exists(kept_in)


def test_donated_memory(kept_in, compiled_anew, again):
    def step():
        f = st.jit(lambda x, y: x + y, donate_argnums=0)
        x = snp.zeros(1000) + 1
        out = f(x, snp.ones(1000))
        with pytest.raises(st.errors.DonatedArrayError):
            np.asarray(x)
        return bits(out)

    assert again(step) == again(step) == bits(snp.ones(1000) * 2)
    assert len(compiled_anew) == 1


def test_arrays_captured_are_not_part_of_a_program(kept_in, compiled_anew, again):
    """They are passed: another process has other ones."""

    def plus(weights):
        return st.jit(lambda x: x + weights)(1.0)

    for scale in (2.0, 3.0):
        out = again(functools.partial(plus, snp.arange(1000.0) * scale))
        np.testing.assert_array_equal(out, np.arange(1000, dtype=np.float32) * scale + 1)
    assert len(compiled_anew) == 1


def test_numbers_are_part_of_a_program(kept_in, compiled_anew, again):

    def times(scale):
        return st.jit(lambda x: x * scale)(snp.ones(3))

    for scale in (2.0, 3.0):
        out = again(functools.partial(times, scale))
        np.testing.assert_array_equal(out, [scale] * 3)
    assert len(compiled_anew) == 2


def test_programs_that_call_python_call_the_functions_of_today(kept_in, again, tmp_path):
    def call(shift, first):
        def f(x):
            y = st.pure_callback(lambda x: np.asarray(x) + shift, snp.zeros(3), x)
            return y * st.pure_callback(lambda x: np.asarray(x) * first, snp.zeros(3), x)

        return again(lambda: st.jit(f)(snp.ones(3)))

    for shift, first in ((1, 1), (1, 10), (-1, 2), (5, 3)):
        np.testing.assert_array_equal(call(shift, first), [(1 + shift) * first] * 3)
    assert len(store.list_kept(kept_in)) == 1


CALLS = """
import sys
import numpy as np, stretto as st, stretto.numpy as snp
shift = int(sys.argv[1])

def shifted(x):
    if shift > 5:
        raise LookupError(f"{shift} is too far")
    return np.asarray(x) + shift

@st.jit
def f(x):
    return st.pure_callback(shifted, snp.zeros(3), x) * 2

st.config.log_compiles = True
try:
    print(f(snp.ones(3)).tolist())
except LookupError as error:
    print(error)
"""


def test_programs_that_call_python_in_other_processes(tmp_path):
    said = [in_process(CALLS, str(k), folder=str(tmp_path)) for k in (1, 2, 7)]
    assert [out for out, _ in said] == ["[4.0, 4.0, 4.0]\n", "[6.0, 6.0, 6.0]\n", "7 is too far\n"]
    assert ["loaded from disk" in log for _, log in said] == [False, True, True]


# What the key is of


def key_of(program="module @f {}\n", positions="", names="", options=()):
    entry = disk.entry_of(Text(program, positions, names), options)
    return entry and entry.key


LINES = '#u0 = loc("/a.py":1:0)\n'


def test_the_key(kept_in, monkeypatch):
    keys = [
        key_of(),
        key_of("module @g {}\n"),
        key_of(options=(("xla_cpu_enable_fast_math", True),)),
        key_of(options=(("xla_cpu_enable_fast_math", False),)),
        key_of(options=(("xla_backend_optimization_level", 1),)),
        key_of(names='#n0 = loc("scope/sin"(#u0))\n'),
    ]
    for module, name, value in [
        (disk, "VERSION", "0.0.1"),
        (disk, "_processor", lambda: "another"),
        (pjrt.runtime(), "threads", ["7"]),
        (pjrt.runtime(), "version", (0, 99, 0)),
        (pjrt.runtime(), "build", [1, 2, 3]),
    ]:
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            keys.append(key_of())
    assert all(re.fullmatch("[0-9a-f]{64}", key) for key in keys)
    assert len(set(keys)) == len(keys)
    assert key_of() == keys[0]


def test_lines_of_the_source_are_not_in_the_key():
    other = LINES.replace("/a.py", "/b.py").replace(":1:", ":22:")
    for name in ("", '#n0 = loc("scope/sin"(#u0))\n'):
        keys = [key_of(positions=lines, names=name) for lines in (LINES, other, "")]
        assert len({*keys}) == 1


def test_text_in_a_program_that_looks_like_a_line_is_in_the_key():
    texts = [f'module @f {{ x = "{LINES[:-1]}{n}" }}\n' for n in (1, 2)]
    assert key_of(texts[0]) != key_of(texts[1])


KEYS = """
import stretto as st, stretto.numpy as snp
from stretto._engine.xla import disk
f = st.jit(lambda x, y: st.vmap(lambda a, b: snp.tanh(a @ b).sum(), (0, None))(x, y))
lowered = f.lower(snp.ones((4, 16, 16)), snp.ones(16))
entry = disk.entry_of(lowered.as_text(), ())
print(entry and entry.key)
"""


def in_process(code, *arguments, folder=None, **environment):
    if folder is not None:
        environment["STRETTO_CACHE_DIR"] = folder
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout, done.stderr


def test_the_key_in_other_processes():
    """It is the same, whatever the order of hashes; ``XLA_FLAGS`` and threads are in it."""
    flag = "--xla_cpu_enable_fast_math=true"
    keys = [
        in_process(KEYS, PYTHONHASHSEED="1")[0],
        in_process("\n\n\n" + KEYS, PYTHONHASHSEED="2")[0],
        in_process(KEYS, XLA_FLAGS=flag)[0],
        in_process(KEYS, NPROC="7")[0],
    ]
    assert keys[0] == keys[1] and len(set(keys)) == 3


@pytest.mark.parametrize("flag", ["xla_dump_to", "xla_dump_hlo_as_text", "xla_dump_hlo_pass_re"])
def test_there_is_no_key_where_xla_is_to_dump(monkeypatch, flag):
    def options(text, options, devices):
        chosen = pjrt.runtime().xla_client.CompileOptions()
        flags = chosen.executable_build_options.debug_options
        setattr(flags, flag, "x" if isinstance(getattr(flags, flag), str) else True)
        return chosen

    assert key_of() is not None
    monkeypatch.setattr(pjrt.runtime(), "compile_options", options)
    assert key_of() is None


def test_a_program_that_is_to_be_dumped_is_compiled(kept_in, tmp_path, compiled_anew, again):
    for n in range(2):
        there = tmp_path / f"dump{n}"
        f = st.jit(lambda x: x * 5, compiler_options={"xla_dump_to": str(there)})
        assert float(again(lambda f=f: f(1.0))) == 5
        assert list(there.iterdir())
    assert len(compiled_anew) == 2 and not os.path.exists(kept_in)


# What is asked of a program that came from disk


def from_elsewhere(lines):
    """A function whose text has other lines, by as many as this."""
    names = {"snp": snp, "st": st}
    exec(compile("\n" * lines + "def f(x): return snp.sin(x) @ x", "a_source.py", "exec"), names)
    return names["f"]


def test_its_text_has_its_own_lines(kept_in, compiled_anew, again):
    x = snp.ones((3, 3))
    texts = []
    for lines in (0, 41):
        compiled = again(lambda n=lines: st.jit(from_elsewhere(n)).lower(x).compile())
        assert len(compiled_anew) == 1
        texts.append(compiled.as_text())
    assert len(compiled_anew) == 2
    assert "source_line=1 " in texts[0] and "source_line=42 " in texts[1]
    assert (
        texts[1].replace("source_line=42 source_end_line=42", "source_line=1 source_end_line=1")
        == (texts[0])
    )


def test_profiles_have_its_scopes(kept_in, compiled_anew, tmp_path, again):
    def f(x):
        with st.named_scope("layer"):
            return snp.sin(x) @ x

    def run():
        return st.block_until_ready(st.jit(f)(snp.ones((50, 50))))

    again(run)
    with st.profiler.trace(tmp_path / "profile"):
        again(run)
    assert len(compiled_anew) == 1
    (file,) = (tmp_path / "profile").rglob("perfetto_trace.json.gz")
    assert b"layer/sin" in gzip.decompress(file.read_bytes())


def test_threads(kept_in, compiled_anew):
    texts = [st.jit(lambda x, n=n: snp.cos(x) * n).lower(1.0).as_text() for n in range(4)]
    types = [array_type((), np.dtype(np.float32))]
    barrier, found = threading.Barrier(8), []

    def work(n):
        text = texts[n % 4]
        barrier.wait()
        entry = disk.entry_of(text, ())
        loaded = entry.load(types)
        if loaded is None:
            loaded = pjrt.compile_text(text, types)
            entry.keep(loaded)
        x = pjrt.to_device(np.float32(0.5) + np.zeros((), np.float32), types[0], True)
        found.append((n % 4, float(pjrt.to_host(loaded([x])[0]))))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 4
    assert len(store.list_kept(kept_in)) == 4


WORK = """
import numpy as np
import stretto as st, stretto.numpy as snp
def loss(w, x):
    return snp.sum(snp.linalg.cholesky(x @ x.T + 9 * snp.eye(8)) @ snp.tanh(w))
with st.config(log_compiles=True):
    out = st.jit(st.value_and_grad(loss))(snp.ones((8, 4)), snp.arange(64.0).reshape(8, 8) / 64)
    print([np.asarray(x).tobytes().hex() for x in st.tree.leaves(out)])
"""


def test_processes_at_once_and_one_after(tmp_path):
    """Three that find nothing there, and one that finds what they left."""
    environment = {**os.environ, "STRETTO_CACHE_DIR": str(tmp_path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    three = [
        subprocess.Popen([sys.executable, "-c", WORK], env=environment, **pipes) for _ in range(3)
    ]
    said = [process.communicate() for process in three]
    assert [process.returncode for process in three] == [0, 0, 0], said
    out, log = in_process(WORK, folder=str(tmp_path))
    assert {out for out, _ in said} == {out}
    assert "loaded from disk" in log and "compiled" not in log
    assert any("compiled" in log for _, log in said)
    assert len(store.list_kept(str(tmp_path / "programs"))) == 1


def test_nothing_is_loaded_before_it_is_needed(tmp_path):
    code = (
        "import sys, stretto, stretto.numpy as snp; snp.ones(3) + 1; "
        "print([m for m in ('disk', 'store') if f'stretto._engine.xla.{m}' in sys.modules])"
    )
    assert in_process(code, folder=str(tmp_path))[0] == "[]\n"
    assert not list(tmp_path.iterdir())
