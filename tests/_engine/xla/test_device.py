"""The devices there are, and the processes that have them."""

import copy
import pickle
import subprocess
import sys

import pytest

import stretto as st
import stretto.numpy as snp
from stretto import distributed
from stretto._engine.xla.device import device_count


def test_there_is_one_device_in_one_process():
    assert (
        st.devices()
        == st.devices("cpu")
        == distributed.local_devices()
        == distributed.local_devices(0, "cpu")
    )
    (device,) = st.devices()
    assert isinstance(device, st.typing.Device) and device == snp.ones(2).device
    assert (device.platform, device.id, device.device_kind, device.process_index) == (
        "cpu", 0, "cpu", 0,
    )  # fmt: skip
    assert len(st.devices()) == distributed.local_device_count() == distributed.process_count() == 1
    assert (
        st.devices()[0].platform,
        distributed.process_index(),
        distributed.process_indices(),
    ) == ("cpu", 0, [0])
    assert copy.deepcopy(device) == pickle.loads(pickle.dumps(device)) == device


def test_the_list_of_devices_is_the_callers():
    st.devices().clear()
    assert len(st.devices()) == 1


@pytest.mark.parametrize(
    "ask",
    [
        st.devices,
        device_count,
        distributed.local_device_count,
        distributed.process_index,
        distributed.process_count,
        distributed.process_indices,
        lambda backend: distributed.local_devices(backend=backend),
    ],
)
def test_other_backends_are_refused(ask):
    with pytest.raises(RuntimeError, match="there is no backend 'tpu'; there are 'cpu' and"):
        ask("tpu")


def test_other_processes_are_refused():
    with pytest.raises(ValueError, match=r"process_index must be one of \[0\]; got 1"):
        distributed.local_devices(1)


def test_the_number_of_devices_is_set_before_anything_is_compiled():
    snp.ones(3).block_until_ready()
    st.jit(lambda x: x @ x).lower(snp.ones(3)).compile()
    with pytest.raises(st.errors.ConfigError, match="num_cpu_devices comes too late"):
        st.config.num_cpu_devices = 2
    with pytest.raises(st.errors.ConfigError, match="must be an int, 1 or more; got 0"):
        st.config.num_cpu_devices = 0
    with pytest.raises(st.errors.ConfigError, match="is of the whole process"):
        st.config(num_cpu_devices=2)
    assert len(st.devices()) == 1


def test_several_devices():
    code = (
        "import stretto as st; st.config.num_cpu_devices = 3; x = st.device_put(1.0, 'cpu:2');"
        "print(st.devices(), st.distributed.local_device_count(), (x + 1).device)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[CpuDevice(id=0), CpuDevice(id=1), CpuDevice(id=2)] 3 cpu:2\n"
