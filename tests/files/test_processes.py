"""Files of processes that are processes: saved by two, loaded by two and by one."""

import os
import socket
import subprocess
import sys

import numpy as np
import pytest

import stretto as st

SAVING = """
import os, sys
import numpy as np, stretto as st, stretto.numpy as snp
from stretto import P
from stretto.sharding import NamedSharding

address, index, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
st.distributed.initialize(address, 2, index)
mesh = st.make_mesh((4,), ("x",))
A = np.arange(128, dtype=np.float32).reshape(8, 16)
specs = {"rows": P("x"), "columns": P(None, "x"), "copies": P()}
tree = {name: st.device_put(A, NamedSharding(mesh, spec)) for name, spec in specs.items()}
tree |= {"n": 3, "own": snp.full(2, index)}

def check(made):
    for name in specs:
        x = made[name]
        for part in x.addressable_shards:
            np.testing.assert_array_equal(part.data, A[part.index])
    assert made["n"] == 3 and made["own"].tolist() == [0, 0]

st.save(path, tree)
check(st.load(path))
check(st.load(path, like=tree))
turned = NamedSharding(mesh, P(None, "x"))
check(st.load(path, sharding=lambda name, x: turned if name in specs else None))
here = NamedSharding(st.make_mesh((2,), ("x",), devices=st.distributed.local_devices()), P("x"))
check(st.load(path, sharding=lambda name, x: here if name in specs else None))
st.save(path, tree)
check(st.load(path))
try:
    st.save(path, {"rows": tree["columns"] if index else tree["rows"]})
except (OSError, ValueError) as error:
    print(type(error).__name__, error)
check(st.load(path))
st.distributed.sync_global_devices("end")
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def run_both(script, path):
    """Return what two processes of two devices each print."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"localhost:{free.getsockname()[1]}"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script, address, str(index), path],
            env={**os.environ, "STRETTO_NUM_CPU_DEVICES": "2"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(2)
    ]
    printed = [process.communicate(timeout=120) for process in running]
    for process, (_, errors) in zip(running, printed, strict=True):
        assert process.returncode == 0, errors
    return [out for out, _ in printed]


def test_two_processes_save_and_load(path):
    first, second = run_both(SAVING, path)
    assert "ValueError save: " in first and "is not the tree of process 0" in first
    assert "OSError save: " in second and "another process failed" in second
    assert len(os.listdir(f"{path}.parts")) == 2
    made = st.load(path)
    for name in ("rows", "columns", "copies"):
        np.testing.assert_array_equal(made[name], np.arange(128).reshape(8, 16))
    st.save(path, made)
    assert os.listdir(path.parent) == [path.name]
