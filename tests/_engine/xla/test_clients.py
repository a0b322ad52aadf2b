"""XLA's clients: versions of jaxlib, which client is for what, and the jobs that they are of."""

import pytest

import stretto as st
from stretto import P
from stretto._engine.xla import clients, pjrt
from stretto._engine.xla.clients import ALONE, Job, check_version, enter, job_of_now
from stretto.sharding import NamedSharding
from tests.children import in_a_child


@pytest.mark.parametrize(
    "version, numbers",
    [
        ("0.10.2", (0, 10, 2)),
        ("0.11.0rc1", (0, 11, 0)),
        ("0.11.3.dev20260101", (0, 11, 3)),
        ("0.12", (0, 12)),
        ("0.12.99", (0, 12, 99)),
        ("0.10.2.post1+cuda", (0, 10, 2)),
    ],
)
def test_versions_in_range(version, numbers):
    assert check_version(version) == numbers


@pytest.mark.parametrize(
    "version", ["0.10.1", "0.9.9", "0.13.0", "0.13", "1.0.0", "0.4.38", "unknown", ""]
)
def test_versions_out_of_range(version):
    with pytest.raises(ImportError) as caught:
        check_version(version)
    message = str(caught.value)
    assert "\n" not in message
    for part in (
        "stretto needs jaxlib >= 0.10.2 and < 0.13",
        f"but jaxlib {version} is installed",
        "pip install",
    ):
        assert part in message


def test_arrays_on_devices_of_one_process_have_the_client_of_all_arrays():
    sharding = NamedSharding(st.make_mesh((1,), ("x",)), P("x"))
    assert clients.runtime_of(sharding.device_list) is clients.runtime() is pjrt.runtime()
    assert clients.in_use()[0] is clients.runtime() and clients.has_runtime()


def test_programs_that_call_python_have_their_own():
    first, second = clients.runtime_of_calls(1), clients.runtime_of_calls(2)
    assert first is clients.runtime_of_calls(1)
    assert len({id(at) for at in (first, second, clients.runtime())}) == 3
    assert {first, second} <= {*clients.in_use()}


@pytest.fixture
def job():
    """This process is the second of two, of two devices each."""
    enter(Job(1, (2, 2)))
    yield job_of_now()
    enter(ALONE)


def test_the_devices_of_a_job(job):
    assert [device.id for device in st.devices()] == [0, 1, 2, 3]
    assert [device.process_index for device in st.devices()] == [0, 0, 1, 1]
    assert [device.is_local for device in st.devices()] == [False, False, True, True]
    assert (
        st.distributed.local_devices() == st.devices()[2:]
        and st.distributed.local_devices(0) == st.devices()[:2]
    )
    assert (
        st.distributed.process_index(),
        st.distributed.process_count(),
        st.distributed.process_indices(),
    ) == (1, 2, [0, 1])
    assert (len(st.devices()), st.distributed.local_device_count()) == (4, 2)
    x = st.numpy.ones(2)
    assert x.device == st.distributed.local_devices()[0] and str(x.device) == "cpu:2"
    assert x.addressable_shards[0].device.id == 2
    assert st.device_put(x, "cpu:2") is st.device_put(x, "cpu") is x
    assert st.numpy.zeros(2, device="cpu:2").device == x.device
    with pytest.raises(ValueError, match="process_index must be one of"):
        st.distributed.local_devices(2)


def test_what_belongs_to_another_time():
    before = st.devices()[0]
    sharding = NamedSharding(st.make_mesh((1,), ("x",)), P("x"))
    x = st.device_put(st.numpy.ones(2), sharding)
    enter(Job(0, (1, 1)))
    try:
        assert st.devices()[0] != before and st.devices()[0].id == before.id
        assert NamedSharding(st.make_mesh((1,), ("x",)), P("x")) != sharding
        for use in (lambda: x + 1, lambda: st.device_put(st.numpy.ones(2), sharding)):
            with pytest.raises(RuntimeError, match="of a job of processes that has ended"):
                use()
        assert x.tolist() == [1, 1]
        with pytest.raises(ValueError, match="device must be None or"):
            st.device_put(1.0, before)
        assert in_a_child(lambda: job_of_now() is ALONE)
    finally:
        enter(ALONE)
    assert st.devices()[0] == before and (x + 1).tolist() == [2, 2]


def test_devices_of_others(job):
    for mesh in (st.make_mesh((2,), ("x",)), st.make_mesh((1,), ("x",))):
        with pytest.raises(ValueError, match="all 2 processes, or those of this one, process 1"):
            st.device_put(st.numpy.ones(2), NamedSharding(mesh, P("x")))
    local = st.make_mesh((1,), ("x",), devices=st.distributed.local_devices()[:1])
    x = st.device_put(st.numpy.ones(2), NamedSharding(local, P("x")))
    assert (x + 1).tolist() == [2, 2] and x.is_fully_addressable
    assert (x + 1).addressable_shards[0].device.id == 2
