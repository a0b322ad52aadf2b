"""Trees at the end of the interpreter, for handlers that were registered early."""

import atexit
import importlib.machinery
import subprocess
import sys

import pytest

from stretto._engine.core import trees_at_exit

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


def test_handlers_without_a_name_alone_are_left_out(monkeypatch):
    """Those are of the extension; others that come with it are registered, built in or not."""
    nameless = type(print).__call__.__get__  # no function that is built in
    given, registered = [print, nameless, len], []

    def register(handler, *args, **kwargs):
        registered.append((handler, args, kwargs))
        return handler

    class Finder:
        def find_spec(self, name, path, target=None):
            return importlib.machinery.ModuleSpec(name, self) if name == "optree" else None

        def create_module(self, spec):
            return None

        def exec_module(self, module):
            for n, handler in enumerate(given):
                assert atexit.register(handler, n, key=n) is handler

    monkeypatch.setattr(atexit, "register", register)
    monkeypatch.delitem(sys.modules, "optree")
    monkeypatch.setattr(sys, "meta_path", [Finder()])
    trees_at_exit._import_optree()
    assert registered == [(handler, (n,), {"key": n}) for n, handler in enumerate(given)]
    assert atexit.register is register
