"""Two hundred interrupts planted in calls of eight kinds: none lost, nothing left in a wrong state.

Each kind runs in a process of its own, with real signals at moments spread over the length of the
call. An interrupt must come out of the call that it came in, as itself; the interpreter at rest and
the settings must be as before, no other thread may wait for ever, and the same call must then give
the right value.
"""

import os
import subprocess
import sys
import textwrap

import pytest

PLANTED = 25

HARNESS = """
import gc, os, signal, sys, tempfile, threading, time
from pathlib import Path
import numpy as np
import stretto as st, stretto.numpy as snp
from stretto._engine.core.config import settings
from stretto._engine.core.interpreter import state
from stretto._engine.core.threads import _waits
from stretto._engine.eager.interpreter import EAGER

folder = Path(tempfile.mkdtemp(dir={folder!r}))
raised = []
unraisable = []
sys.unraisablehook = lambda problem: unraisable.append((problem.exc_value, problem.object))

class Planted(BaseException):
    pass

def handler(*_):
    if armed:
        armed.clear()
        raised.append(1)
        raise Planted("planted")

armed = []
signal.signal(signal.SIGALRM, handler)

{kind}

for i in range(2):
    call(prepare(-1 - i))
start = time.perf_counter()
call(prepare(-9))
length = time.perf_counter() - start
caught = late = 0
key = settings.key
for i in range({planted}):
    argument = prepare(i)
    before = len(raised)
    armed.append(1)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(1e-5, length * (i + 0.5) / {planted}))
        call(argument)
        while len(raised) == before:  # it came after the call: here
            time.sleep(1e-4)
        raise AssertionError(f"lost: it was raised, and the call gave a result; {{unraisable}}")
    except Planted:
        caught += 1
    finally:
        armed.clear()
    assert state.interpreter is EAGER, state.interpreter
    assert settings.key is key, "the settings differ"
    assert not _waits, _waits
    check(argument)
threads = [threading.Thread(target=check, args=(prepare(1000 + i),), daemon=True) for i in range(2)]
for t in threads:
    t.start()
for t in threads:
    t.join(60)
    assert not t.is_alive(), "a thread waits for ever"
assert not unraisable, unraisable
print(caught, len(raised))
"""

KINDS = {
    "an operator that waits": """
        x = snp.ones((200, 200)) / 200
        @st.jit
        def slow(x):
            return st.lax.fori_loop(0, 60, lambda i, y: y @ x, x)
        def prepare(i):
            return None
        def call(_):
            return slow(x) + 1.0
        def check(_):
            assert np.allclose(call(None), 1 + 1 / 200)
    """,
    "a jitted call with fresh arrays": """
        f = st.jit(lambda xs: [x @ x for x in xs])
        def prepare(i):
            return [np.full((60, 60), k % 7, np.float32) for k in range(200)]
        def call(hosts):
            return f([snp.array(h) for h in hosts])
        def check(hosts):
            for k, y in enumerate(call(hosts)):
                assert (np.asarray(y) == 60 * (k % 7) ** 2).all()
    """,
    "tracing": """
        def make(i):
            def f(x):
                for _ in range(60):
                    x = st.vmap(lambda y: snp.sin(y) * 0 + y)(x)
                return st.grad(lambda x: (x * x).sum())(x)
            return f
        def prepare(i):
            return st.jit(make(i))
        def call(f):
            return f.trace(snp.ones(3))
        def check(f):
            call(f)
            assert np.allclose(f(snp.ones(3)), 2)
    """,
    "compiling": """
        def prepare(i):
            return st.jit(lambda x: snp.cumsum(x @ x + i, 0) + snp.sort(x, 0)), float(i)
        def call(made):
            return made[0](snp.ones((4, 4)))
        def check(made):
            assert np.allclose(np.asarray(call(made))[0], 5 + made[1])
    """,
    "a scan with callbacks": """
        def double(x):
            return np.asarray(x) * 2
        def step(c, x):
            y = st.pure_callback(double, st.ShapeDtypeStruct((), np.float32), x)
            return c + y, y
        f = st.jit(lambda xs: st.lax.scan(step, snp.zeros(()), xs))
        xs = snp.arange(100.0)
        def prepare(i):
            return None
        def call(_):
            return f(xs)
        def check(_):
            total, ys = call(None)
            assert float(total) == 9900 and float(ys[7]) == 14
            st.debug.effects_barrier()
    """,
    "save": """
        rng = np.random.default_rng(0)
        trees = [{"w": [snp.array(rng.normal(size=(300, 300)).astype(np.float32))
                        for _ in range(8)], "n": snp.asarray(k)} for k in range(2)]
        path = folder / "tree.safetensors"
        def prepare(i):
            st.save(path, trees[0])
            return trees[1]
        def call(tree):
            st.save(path, tree)
        def check(tree):
            found = st.load(path)
            n = int(found["n"])
            assert np.array_equal(found["w"][3], trees[n]["w"][3])
            assert [p.name for p in folder.iterdir()] == [path.name], list(folder.iterdir())
            st.save(path, tree)
            assert int(st.load(path)["n"]) == 1
    """,
    "fit": """
        rng = np.random.default_rng(0)
        data = (rng.normal(size=(64, 4)).astype(np.float32),
                rng.normal(size=(64, 1)).astype(np.float32))
        def apply(w, x):
            return x @ w
        def loss(member, x, y):
            return ((member(x) - y) ** 2).mean()
        def fresh():
            return st.Ensemble(apply, [snp.full((4, 1), float(k)) for k in range(3)])
        def prepare(i):
            return fresh(), folder / f"run{i}"
        def call(made):
            made[0].fit(loss, data, st.optim.sgd(0.1), epochs=6, batch_size=8,
                        checkpoint=made[1], key=st.random.key(0), progress=False)
            return [np.asarray(w) for w in st.tree.leaves(made[0])]
        want = call((fresh(), folder / "reference"))
        def check(made):
            for w in st.tree.leaves(made[0]):  # what was reached
                assert np.isfinite(np.asarray(w)).all()
            got = call((fresh(), made[1]))  # goes on from the last whole checkpoint
            assert all((g == w).all() for g, w in zip(got, want)), (got, want)
    """,
    "writing the disk cache": """
        def prepare(i):
            st.clear_caches()
            return st.jit(lambda x: snp.cumsum(x @ x + i, 0)), float(i)
        def call(made):
            return made[0](snp.ones((4, 4)))
        def check(made):
            for again in (False, True):
                if again:
                    st.clear_caches()
                assert np.allclose(np.asarray(call(made))[0], 4 + made[1])
    """,
}


@pytest.mark.parametrize("kind", KINDS)
def test_interrupts(kind, tmp_path):
    code = HARNESS.format(kind=textwrap.dedent(KINDS[kind]), folder=str(tmp_path), planted=PLANTED)
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code],
        env={**os.environ, "STRETTO_CACHE_DIR": str(tmp_path / "cache"), "STRETTO_DISK_CACHE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert done.stdout.split() == [str(PLANTED), str(PLANTED)]
