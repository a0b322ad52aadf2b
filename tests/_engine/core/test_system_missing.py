"""The package in processes from which what some systems lack is taken away before it is loaded.

Each process is a fresh one. What is taken away is what Windows, macOS or a small build of Python
has not, one kind at a time and all at once.
"""

import os
import subprocess
import sys

import pytest

TAKEN = '''
import builtins, importlib.abc, io, os, select, signal, sys

class Missing(importlib.abc.MetaPathFinder):
    """Finds that there are no modules of these names."""

    names = {"fcntl", "pwd", "grp", "resource"}

    def find_spec(self, name, path=None, target=None):
        if name in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

def take_modules():
    for name in Missing.names:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, Missing())

def take_forks():
    del os.fork, os.register_at_fork

def take_users():
    del os.geteuid, os.getuid, os.fchmod

def take_flags():
    del os.O_NOFOLLOW, os.O_NONBLOCK, os.O_DIRECTORY, os.link, os.sched_getaffinity
    os.supports_dir_fd.clear(), os.supports_fd.clear()
    opened = os.open
    def no_folder(path, *args, **how):
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied", path)
        return opened(path, *args, **how)
    os.open = no_folder

def take_proc():
    def refused(function):
        def call(path=".", *args, **how):
            if isinstance(path, str) and path.startswith(("/proc", "/sys")):
                raise FileNotFoundError(2, "No such file or directory", path)
            return function(path, *args, **how)
        return call
    builtins.open, os.listdir = refused(builtins.open), refused(os.listdir)
    isdir = os.path.isdir
    os.path.isdir = lambda path: not str(path).startswith(("/proc", "/sys")) and isdir(path)
    sysconf = os.sysconf
    def nobody(name):
        if name == "SC_PHYS_PAGES":
            raise ValueError("unrecognized configuration name")
        return sysconf(name)
    os.sysconf = nobody

def take_signals():
    for name in ("SIGKILL", "SIGUSR1", "SIGUSR2", "SIGHUP", "SIGALRM", "SIGRTMAX", "SIGRTMIN"):
        delattr(signal, name)
    import subprocess  # which on Linux needs them as it is loaded
    del select.poll, os.WNOHANG
    for name in ("pthread_kill", "pthread_sigmask"):
        delattr(signal, name)

def take_library():
    import ctypes, platform
    class Windows(ctypes.CDLL):
        def __init__(self, name, *args, **how):
            if name is None:
                raise TypeError("bad argument type for built-in operation")
            super().__init__(name, *args, **how)
    ctypes.CDLL = Windows
    platform.libc_ver = lambda: ("", "")

for name in sys.argv[2].split():
    globals()[f"take_{name}"]()
'''

PLAIN = (
    TAKEN
    + """
import numpy as np
import stretto as st, stretto.numpy as snp
from stretto._engine.xla import store
from stretto._engine.core import files, machine, system

folder = sys.argv[1]
x = snp.linspace(0.0, 1.0, 5)
f = lambda x: snp.sum(snp.sin(x) ** 2)
eager, compiled = st.grad(f)(x), st.jit(st.grad(f))(x)
np.testing.assert_allclose(eager, np.sin(2 * np.asarray(x)), rtol=1e-6)
np.testing.assert_allclose(compiled, eager, rtol=1e-6)

path = os.path.join(folder, "tree.safetensors")
for k in range(2):  # the second replaces the first
    st.save(path, {"a": x + k, "b": [snp.arange(3)]})
np.testing.assert_array_equal(st.load(path)["a"], x + 1)
assert os.listdir(folder) == ["tree.safetensors"], os.listdir(folder)

kept, key = os.path.join(folder, "kept", "programs"), "ab" * 32
for content in (b"first", b"second"):
    store.write(kept, key, content, 1 << 20)
    assert store.read(kept, key, 1 << 20) == content
assert len(store.clear(kept)) == 1 and store.read(kept, key, 1 << 20) is None

assert machine.cores() >= 1 and machine.processor()
assert machine.memory().total is None or machine.memory().total > 0
"""
)

ALL = (
    PLAIN.replace('os.listdir(folder) == ["tree.safetensors"]', "True")
    + """
from stretto import cli
from stretto._engine.xla import cache, ending, handshake, memory, processes
from stretto.files import save_files
from stretto.files.many_writers import Group, write_together

assert (memory.total(), memory.available()) == (None, None) and not ending.busy()
memory.LARGE, loss = 1, lambda member, x, y: ((member(x) - y) ** 2).mean()
assert float(st.jit(lambda x: snp.sum(x @ x.T))(snp.ones((300, 300)))) == 300**3

# programs that another process compiled
os.environ["STRETTO_CACHE_DIR"] = os.path.join(folder, "caches")
lowered = st.jit(lambda x: snp.cos(x) * 3).lower(x)
made = []
compile = cache.compile_text
cache.compile_text = lambda *args: made.append(1) or compile(*args)
np.testing.assert_allclose(lowered.compile()(x), 3 * np.cos(np.asarray(x)), rtol=1e-6)
print("compiled", len(made), flush=True)
secrets = {handshake.job_secret("test", "localhost:1", True) for _ in range(2)}
assert len(secrets) == 1

# a training that is resumed, and a tree of several writers
ensemble = st.Ensemble(lambda p, x: p["w"] * x, [{"w": 0.0}, {"w": 4.0}])
steps = os.path.join(folder, f"steps of {os.getpid()}")
train = lambda epochs: ensemble.fit(
    loss, (x, 2 * x), st.optim.sgd(0.5), epochs=epochs, key=st.random.key(0), checkpoint=steps
)
first, more = train(2), train(4)
assert more.history["loss"].shape == (4, 2), more.history["loss"].shape
several = os.path.join(folder, "several")
along = st.sharding.NamedSharding(st.make_mesh((1,), ("x",)), st.P("x"))
split = st.device_put(snp.arange(8.0), along)
write_together(several, *save_files._parts({"w": split}, None), Group(0, 1, lambda name: None))
np.testing.assert_array_equal(st.load(several)["w"], np.arange(8.0))

# what cannot be had is refused in words
def refusal(run):
    try:
        run()
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def keep():
    st.config.keep_memory = True

assert "ConfigError: config.keep_memory needs glibc's mallopt" in refusal(keep), refusal(keep)
join = lambda: processes.join("localhost", 9, 2, 0, 1.0, 1.0)
assert "distributed.initialize: this system, as Windows" in refusal(join), refusal(join)

# the commands
for words in (["--help"], ["launch", "--help"]):
    try:
        cli.main(words)
    except SystemExit as done:
        assert not done.code
script = os.path.join(folder, "script.py")
with open(script, "w", encoding="utf-8") as file:
    file.write("print('from a child, \\u2192')")
sys.stdout.reconfigure(encoding="cp1252")
assert cli.main(["launch", "-n", "1", script]) == 0
ending.system.leave_libraries_alone()
"""
)

SPAWNED = (
    TAKEN
    + """
import multiprocessing
import stretto as st

def square(x):
    return float(st.jit(lambda x: x * x)(x))

if __name__ == "__main__":
    square(1.0)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(square, [3.0]) == [9.0]
"""
)

STRICT = ("-W", "error", "-W", "ignore:the extension in C")  # which need not be built
KINDS = "modules forks users flags proc signals library"


@pytest.fixture
def ran(tmp_path):
    """A function that runs a program from which these kinds are taken away; what it wrote."""

    def run(code, kinds, folder="data"):
        script = tmp_path / "program.py"
        script.write_text(code, encoding="utf-8")
        (tmp_path / folder).mkdir(exist_ok=True)
        environment = {**os.environ, "STRETTO_CACHE_DIR": str(tmp_path / "unused")}
        done = subprocess.run(
            [sys.executable, *STRICT, script, tmp_path / folder, kinds],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize("kind", KINDS.split())
def test_without_one_kind(ran, kind):
    ran(PLAIN, kind)


def test_without_all_kinds(ran):
    """The second process finds what the first compiled."""
    first = ran(ALL, KINDS)
    assert "compiled 1\n" in first and "usage: stretto" in first
    assert r"[0] from a child, \u2192" in first
    assert "compiled 0\n" in ran(ALL, KINDS)


def test_processes_that_are_spawned(ran):
    ran(SPAWNED, "forks")
