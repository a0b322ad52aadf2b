"""XLA's clients: versions of jaxlib, which client is for what, and the jobs that they are of."""

import gc
import os
import sys
import weakref
from types import SimpleNamespace

import pytest

import stretto as st
from stretto import P
from stretto._engine.lowering.text import Facts
from stretto._engine.xla import clients, pjrt
from stretto._engine.xla.clients import ALONE, Job, check_version, enter, job_of_now
from stretto._engine.xla.device import Device
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


@pytest.mark.parametrize(
    ("version", "skips", "breaks"),
    [
        ((0, 10, 2), (True,), False),
        ((0, 11, 0), (True,), False),
        ((0, 11, 1), (), False),
        ((0, 12, 0), (), True),
        ((0, 12, 3), (), True),
    ],
)
def test_what_versions_of_jaxlib_differ_in(monkeypatch, version, skips, breaks):
    here = clients.runtime()

    class Other(clients.Runtime):
        def _connected(self, *about):
            return here.client

    monkeypatch.setattr(clients, "load_jaxlib", lambda: (version, here.jax))
    at = Other()
    assert (at.skip_checks, at.breaks_on_huge, at.version) == (skips, breaks, version)
    assert at.jaxlib == ".".join(map(str, version)) and not at._provided and not at.unknown
    assert at.conditions() == f"{version} {here.build} {here.threads}"
    assert at.device == here.device and at.copies == here.copies


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


# What is asked of jaxlib, without a job or a GPU


def test_the_client_of_a_job(monkeypatch):
    at, asked = object.__new__(clients.Runtime), {}
    at.xla_client = SimpleNamespace(make_cpu_client=lambda **how: asked.update(how) or "client")
    at.jax = SimpleNamespace(make_gloo_tcp_collectives=lambda *how, **by: (*how, by))
    devices = st.config.num_cpu_devices
    assert at._connected(ALONE, None, "") == "client"
    assert asked == {"asynchronous": True, "num_devices": devices}
    asked.clear()
    at._connected(Job(1, (2, 2, 4)), "service", "127.0.0.9")
    assert asked == {
        "asynchronous": True,
        "num_devices": devices,
        "distributed_client": "service",
        "collectives": ("service", {"hostname": "127.0.0.9"}),
        "node_id": 1,
        "num_nodes": 3,
        "get_global_topology_timeout_minutes": 1,
    }


def test_how_processes_find_each_other(monkeypatch):
    """The loss of one of them ends no other; seconds are whole ones, rounded up."""
    done = []
    client = SimpleNamespace(connect=lambda: done.append("connect"))
    jax = SimpleNamespace(
        get_distributed_runtime_service=lambda *at, **how: done.append((at, how)) or "service",
        get_distributed_runtime_client=lambda *at, **how: done.append((at, how)) or client,
    )
    monkeypatch.setattr(clients, "load_jaxlib", lambda: ((0, 12), jax))
    assert clients.coordination_service("here:1", 3, 9.5) == "service"
    assert clients.coordination_client("here:1", 2, 4.2, 9.5) is client
    assert done == [
        (("here:1", 3), {"heartbeat_timeout": 10, "recoverable": True}),
        (
            ("here:1", 2),
            {"init_timeout": 5, "heartbeat_timeout": 10, "shutdown_on_destruction": False},
        ),
        "connect",
    ]


def test_a_job_has_its_runtime_while_it_lasts(monkeypatch):
    monkeypatch.setattr(clients, "_of_job", {})
    monkeypatch.setattr(clients, "_start", lambda kind, *about: (kind, *about))
    job = Job(0, (1, 1))
    try:
        clients.join(job, "service", "127.0.0.1")
        assert job_of_now() is job
        both = [Device("cpu", k, k) for k in range(2)]
        assert clients.runtime_of(both) == (clients.Runtime, job, "service", "127.0.0.1")
        clients.leave()
        assert job_of_now() is ALONE and not clients._of_job
    finally:
        enter(ALONE)


def test_clients_that_are_kept_are_never_freed(monkeypatch):
    class Client:
        pass

    kept, gone = Client(), Client()
    found = [weakref.ref(kept), weakref.ref(gone)]
    del gone
    monkeypatch.setattr(clients, "_clients", found)
    clients.keep()
    del kept
    gc.collect()
    assert [one() is None for one in found] == [False, True]


def test_the_runtime_of_a_parent_is_put_aside():
    clients.runtime(), clients.runtime_of_calls(1)

    def refusal():
        try:
            clients.runtime()
        except st.errors.ForkedProcessError as error:
            return str(error)

    def state():
        there = len(clients.in_use()) if clients.has_runtime() else 0
        kinds = {type(one).__name__ for one in clients.left_behind}
        return there, kinds, len(clients.left_behind) > 1, st.config.eager_compiled, refusal()

    *told, refused = in_a_child(state)
    assert told == [0, {"Runtime"}, True, False]
    assert "forked from one that had used XLA" in refused
    assert not clients.left_behind and clients.has_runtime()


def test_what_a_fork_leaves_behind_is_never_freed():
    clients.runtime()
    count = sys.getrefcount(clients.left_behind)
    assert in_a_child(lambda: sys.getrefcount(clients.left_behind)) == count + 1


def test_a_fork_before_there_is_a_runtime(monkeypatch):
    for name, none in [("_runtime", None), ("_others", {}), ("_of_job", {}), ("_accelerators", [])]:
        monkeypatch.setattr(clients, name, none)
    assert not clients.has_runtime()
    eager = st.config.eager_compiled
    assert in_a_child(lambda: (clients.left_behind, st.config.eager_compiled)) == ([], eager)
    monkeypatch.setattr(clients, "_starting", True)  # some of its threads may exist already
    assert clients.has_runtime()
    assert in_a_child(lambda: (len(clients.left_behind), clients._starting)) == (1, False)


@pytest.fixture
def plugin(monkeypatch):
    """A plugin for GPUs that says what is done with it."""
    done = []
    found = SimpleNamespace(library="the library", toolkit="")
    faked = SimpleNamespace(
        NAME="cuda",
        REGISTERED=("cusolver_", "callback_"),
        find=lambda: found,
        load=lambda *how: done.append(("load", *how)) or "handle",
        register=lambda *how: done.append(how),
    )
    monkeypatch.setattr(clients.xla, "plugins", faked)
    return SimpleNamespace(found=found, faked=faked, done=done)


def gpus(**made):
    at = object.__new__(clients.Accelerator)
    at.jaxlib, at.jax = "0.12.0", SimpleNamespace(JaxRuntimeError=LookupError)
    at.xla_client = SimpleNamespace(**made)
    return at


def test_the_client_of_gpus(plugin):
    asked = []
    at = gpus(make_c_api_client=lambda *how: asked.append(how) or "client")
    assert at._connected(ALONE, None, "") == "client"
    assert asked == [("cuda", {"preallocate": False}, None)]
    assert plugin.done == [("load", plugin.found, at.xla_client)]

    def none(*how):
        raise LookupError("no device")

    with pytest.raises(RuntimeError, match=r"no backend 'gpu': .* the library finds none: no dev"):
        gpus(make_c_api_client=none)._connected(ALONE, None, "")
    plugin.faked.find = lambda: None
    with pytest.raises(RuntimeError, match=r"pip install 'jax-cuda13-plugin\[with-cuda\]==0.12.0'"):
        gpus()._connected(ALONE, None, "")


def test_the_runtime_of_gpus_is_made_once(monkeypatch):
    made = []
    monkeypatch.setattr(clients, "_accelerators", [])
    monkeypatch.setattr(clients, "_start", lambda kind: made.append(kind) or "the runtime")
    assert clients.accelerator() == clients.accelerator() == "the runtime"
    assert made == [clients.Accelerator]


def test_what_programs_on_gpus_call_is_registered_once(plugin):
    at = gpus(make_c_api_client=lambda *how: "client")
    at._connected(ALONE, None, "")
    plugin.done.clear()
    for targets in ([], ["another"], ["cusolver_syevd", "cusolver_getrf"], ["cusolver_getrf"]):
        at.provide(Facts(targets={*targets}))
    assert plugin.done == [("cusolver_", plugin.found, "handle")]
    at.provide(Facts(targets={"callback_python"}))
    assert plugin.done[1:] == [("callback_", plugin.found, "handle")]


@pytest.mark.parametrize("extended", [False, True])
def test_what_programs_call_of_lapack_is_registered_once(extended, monkeypatch):
    done = []
    extension = SimpleNamespace(in_parts=lambda function: -function) if extended else None
    monkeypatch.setattr(clients, "extension", extension)
    lapack = SimpleNamespace(
        initialize=lambda: done.append("initialize"),
        registrations=lambda: {"lapack_a_ffi": 1, "lapack_b": 2, "another_ffi": 3},
    )
    found = {"jaxlib.cpu._lapack": lapack, "scipy.linalg": None}
    load = lambda name: (done.append(name), found[name])[1]
    monkeypatch.setattr(clients, "importlib", SimpleNamespace(import_module=load))
    at = object.__new__(clients.Runtime)
    at._provided = False
    at.xla_client = SimpleNamespace(register_custom_call_target=lambda *how: done.append(how))
    at.jax = SimpleNamespace(register_custom_call_as_batch_partitionable=done.append)
    for targets in ([], ["another"], ["lapack_a_ffi", "another"], ["lapack_a_ffi"]):
        at.provide(Facts(targets={*targets}))
    assert (
        done
        == [
            *found,  # SciPy's module before the one that imports another of SciPy's
            "initialize",
            ("lapack_a_ffi", 1, "cpu", 1),
            "lapack_a_ffi",
            *[("lapack_a_ffi_in_parts", -1, "cpu", 1), "lapack_a_ffi_in_parts"][: 2 * extended],
        ]
    )


def test_programs_on_several_devices_are_split_by_shardings():
    at = clients.runtime()
    devices = [SimpleNamespace(id=k) for k in (3, 1)]
    alone, several = at.compile_options(Facts(), ()), at.compile_options(Facts(), (), devices)
    assert (alone.num_replicas, alone.num_partitions) == (1, 1)
    assert not alone.executable_build_options.use_spmd_partitioning
    assert (several.num_replicas, several.num_partitions) == (1, 2)
    build = several.executable_build_options
    assert build.use_spmd_partitioning and build.use_shardy_partitioner
    assert "3" in str(several.device_assignment)


def test_shardings_of_the_runtime_say_whether_a_device_has_all():
    at = clients.runtime()
    assert at.sharding_on((at.device,)).is_fully_replicated
    assert not at.sharding_on((at.device,), "{maximal device=0}").is_fully_replicated


@pytest.mark.parametrize("level", [None, "0", "3"])
def test_what_jaxlib_logs_is_the_environments(monkeypatch, level):
    """Errors alone, where that says nothing; it is left as it was."""
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    if level is not None:
        monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", level)
    with clients._quiet():
        assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == (level or "2")
    assert os.environ.get("TF_CPP_MIN_LOG_LEVEL") == level


def test_where_the_compiler_of_gpus_is(plugin):
    at = gpus()
    at.plugin = plugin.found
    assert at.options_for(Facts(), (("a", 1),)) == [("a", 1)]
    plugin.found.toolkit = "/cuda"
    assert dict(at.options_for(Facts(), (("a", 1),))) == {"xla_gpu_cuda_data_dir": "/cuda", "a": 1}


def test_threads_may_be_there_while_a_runtime_is_made(monkeypatch):
    """So a child that is forked meanwhile must not use it."""
    for name, none in [("_runtime", None), ("_others", {}), ("_of_job", {})]:
        monkeypatch.setattr(clients, name, none)
    seen = []

    def made(*about):
        seen.append(clients.has_runtime())
        if about:
            raise RuntimeError("it fails")
        return SimpleNamespace(client=clients.ALONE.__class__(0, ()))

    monkeypatch.setattr(clients.weakref, "ref", lambda client: lambda: client)
    monkeypatch.setattr(clients, "_clients", [])
    ending = []
    monkeypatch.setattr(
        clients.xla.ending, "wait_at_end", lambda: ending.append(len(clients._clients))
    )
    clients._start(made)
    assert ending == [1], "the process waits for its programs when it ends"
    with pytest.raises(RuntimeError, match="it fails"):
        clients._start(made, "badly")
    assert seen == [True, True] and not clients.has_runtime()
