"""Trees at the end of the interpreter, for handlers that were registered early."""

import subprocess
import sys

import pytest

HANDLER = """
import atexit, sys

def last():
    import numpy as np
    tree = st.tree.map(lambda x: 2 * x, params)
    st.save(sys.argv[1], tree)
    print(sorted(st.load(sys.argv[1])), [float(x.sum()) for x in st.tree.leaves(tree)])
    print(float(st.jit(st.grad(lambda p: (p["a"] ** 3).sum() + p["b"][0].sum()))(tree)["a"][0]))
    print(float(f(snp.ones((40, 40)))[0, 0]))

atexit.register(last)
import stretto as st, stretto.numpy as snp
params = {"a": snp.ones(3), "b": [snp.zeros(2)]}
f = st.jit(lambda x: x @ x)
if sys.argv[2] == "used":
    f(snp.ones((30, 30)))
"""


@pytest.mark.parametrize("used", ["used", "not used"])
def test_handlers_registered_before_the_package_was_imported(used, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", HANDLER, str(tmp_path / "last"), used],
        capture_output=True,
        text=True,
        check=False,
    )
    wanted = "['a', 'b'] [6.0, 0.0]\n12.0\n40.0\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, wanted, "")


def test_other_handlers_stay():
    """Those of other packages that optree brings along, and of other threads, are registered."""
    code = """
import atexit, threading
atexit.register(print, "first")
before = atexit.register
threads = [threading.Thread(target=atexit.register, args=(print, "thread")) for _ in range(2)]
import stretto
assert atexit.register is before
atexit.register(print, "last")
for thread in threads:
    thread.start()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["thread", "thread", "last", "first"], done
