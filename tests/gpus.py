"""A GPU for tests: a real one if STRETTO_TEST_GPU is 1, else the CPU's client in its place.

With the latter, everything is as on a GPU, but for what compiles and runs the programs: so routines
that GPUs alone have are not there.
"""

import functools
import os

import pytest

import stretto as st
from stretto._engine.xla import clients, device, plugins

REAL = os.environ.get("STRETTO_TEST_GPU") == "1"
only_on_gpus = pytest.mark.skipif(not REAL, reason="needs a GPU: set STRETTO_TEST_GPU=1")


class _StandIn(clients.Accelerator):
    def _connected(self, job, coordination, address):
        self.plugin = plugins.Plugin(self.jax.__file__, "", "")
        self._registered = {"xla_ffi_python_gpu"}
        return self.xla_client.make_cpu_client(asynchronous=True, num_devices=2)

    def parse(self, text):
        return super().parse(text.replace("python_gpu_callback", "python_cpu_callback"))


@functools.cache
def _stand_in():
    clients.runtime()
    return _StandIn()


@functools.cache
def _devices():
    return [device.Device("gpu", i, job=clients.ALONE) for i in range(2)]


@pytest.fixture
def gpu(monkeypatch):
    """The first GPU."""
    if not REAL:
        monkeypatch.setattr(clients, "_accelerators", [_stand_in()])
        monkeypatch.setattr(device, "_gpus", _devices())
    return st.devices("gpu")[0]
