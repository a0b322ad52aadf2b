"""The devices there are, and the processes that have them."""

import copy
import pickle
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import distributed
from stretto._engine.xla import clients
from stretto._engine.xla import device as module
from stretto._engine.xla.device import Device, as_device, device_count


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


# Devices that are not here


@pytest.fixture
def three(monkeypatch):
    """As if three devices had been asked for."""
    setting = SimpleNamespace(num_cpu_devices=3, default_device=None)
    monkeypatch.setattr(module, "config", setting)
    monkeypatch.setattr(module, "_alone", module._alone[:1])
    return setting


def test_devices_of_several_processes_are_made_once_for_a_job(monkeypatch):
    monkeypatch.setattr(module, "_together", [])
    for counts in ((2, 1), (1, 1, 1)):
        job = clients.Job(0, counts)
        monkeypatch.setattr(module, "job_of_now", lambda job=job: job)
        found = st.devices()
        assert [(d.id, d.process_index, d.job) for d in found] == [
            (id, owner, job) for id, owner in enumerate(np.repeat(range(len(counts)), counts))
        ]
        assert all([a is b for a, b in zip(st.devices(), found, strict=True)])


@pytest.fixture
def gpus(monkeypatch):
    """Two GPUs, whose plugin is asked once how many there are."""
    asked = []
    plugin = SimpleNamespace(
        kinds=lambda: asked.append(1) or ["H100", "H200"],
        device_of=lambda device: SimpleNamespace(memory_stats=lambda: {"bytes_in_use": device.id}),
    )
    monkeypatch.setattr(module, "_gpus", [])
    monkeypatch.setattr(module, "accelerator", lambda: plugin)
    return asked


def test_as_many_devices_as_were_asked_for(three):
    first, *others = st.devices()
    assert [str(device) for device in (first, *others)] == ["cpu:0", "cpu:1", "cpu:2"]
    assert all([a is b for a, b in zip(st.devices(), (first, *others), strict=True)])
    assert all([device.is_local and device.job is first.job for device in others])
    three.num_cpu_devices = 2
    assert st.devices() == [first, others[0]]
    assert device_count() == distributed.local_device_count() == 2


@pytest.mark.parametrize(
    ("asked", "found"),
    [(None, 0), ("cpu", 0), ("cpu:0", 0), ("cpu:2", 2), (Device("cpu", 1), 1)],
    ids=str,
)
def test_devices_by_name(three, asked, found):
    assert as_device(asked, "f") is st.devices()[found]


@pytest.mark.parametrize("asked", ["cpu:3", "tpu", "", 1, "cpu:x", Device("cpu", 7)], ids=str)
def test_devices_that_there_are_not(three, asked):
    with pytest.raises(ValueError, match=r"f: device must be None or one of the 3 devices in str"):
        as_device(asked, "f")
    three.num_cpu_devices = 1
    with pytest.raises(ValueError, match=r"f: where must be None or CpuDevice\(id=0\) \(also 'cpu"):
        as_device(asked, "f", "where")


def test_gpus(gpus):
    one, other = st.devices("gpu")
    assert st.devices("cuda") == [one, other] and gpus == [1]
    assert as_device("gpu", "f") is as_device("cuda:0", "f") is one
    assert as_device("gpu:1", "f") is other == as_device(Device("gpu", 1), "f")
    assert (str(other), repr(other), other.device_kind) == ("gpu:1", "GpuDevice(id=1)", "H200")
    assert other.memory_stats() == {"bytes_in_use": 1} and st.devices()[0].memory_stats() is None
    assert one != other != Device("cpu", 1) and hash(other) == hash(Device("gpu", 1))
    with pytest.raises(ValueError, match="f: device 'gpu:2' is not there: list index out of range"):
        as_device("gpu:2", "f")
    with pytest.raises(ValueError, match="must be None or"):
        as_device("gpu:x", "f")


def test_the_platform_of_the_default_device(gpus, three):
    assert module.default_backend() == "cpu" and len(st.devices()) == 3
    three.default_device = "gpu:1"
    assert module.default_backend() == "gpu" and st.devices() == st.devices("gpu")


def test_devices_are_of_their_job():
    one, other = Device("cpu", 0), Device("cpu", 0, job=clients.Job(1, (2, 2)))
    assert one == Device("cpu", 0) and one != other and one != "cpu:0"
    assert one.is_local and not other.is_local
    assert Device("cpu", 2, 1, other.job).is_local


@pytest.mark.parametrize("count", [1, 2])
def test_how_many_devices_may_be_asked_for(monkeypatch, count):
    monkeypatch.setattr(module, "has_runtime", lambda: False)
    module.check_device_count(count)
    with pytest.raises(st.errors.ConfigError, match="1 or more; got 0"):
        module.check_device_count(0)
    monkeypatch.setattr(module, "has_runtime", lambda: True)
    with pytest.raises(st.errors.ConfigError, match=f"STRETTO_NUM_CPU_DEVICES={count}"):
        module.check_device_count(count)
