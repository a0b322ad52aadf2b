"""Several processes that compute as one: what they compute, and how they are told apart."""

import re

import pytest

import stretto as st
from stretto import distributed
from tests.processes import together

COLLECTIVES = """
assert not st.distributed.is_initialized()
st.distributed.initialize()
assert st.distributed.is_initialized()
here, n = st.distributed.process_index(), len(st.devices())
own = st.distributed.local_device_count()
assert (st.distributed.process_count(), n) == (2, 2 * own)
assert st.distributed.process_indices() == [0, 1]
assert st.distributed.local_devices() == st.devices()[here * own : (here + 1) * own]
assert [device.process_index for device in st.devices()] == [0] * own + [1] * own

mesh = st.make_mesh((n,), ("d",))
assert mesh.is_multi_process
split, whole = NamedSharding(mesh, P("d")), NamedSharding(mesh, P())
assert not split.is_fully_addressable
assert split.addressable_devices == set(st.distributed.local_devices())


def check(result, expected):
    expected = np.asarray(expected)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    shards = result.addressable_shards
    assert [shard.device for shard in shards] == st.distributed.local_devices()
    for shard in shards:
        np.testing.assert_allclose(shard.data, expected[shard.index], rtol=1e-6, atol=1e-6)


A = np.random.default_rng(0).standard_normal((n * n, 3)).astype(np.float32)
a = st.device_put(A, split)
turn = [(i, (i + 1) % n) for i in range(n)]
FUNCTIONS = {
    "psum": lambda x: x + lax.psum(x * x, "d"),
    "pmean": lambda x: x - lax.pmean(x, "d"),
    "pmax": lambda x: x - lax.pmax(x, "d"),
    "pmin": lambda x: x - lax.pmin(x, "d"),
    "all_gather": lambda x: lax.all_gather(x, "d", tiled=True)[::n] * x[0],
    "psum_scatter": lambda x: lax.psum_scatter(x, "d", tiled=True),
    "all_to_all": lambda x: lax.all_to_all(x, "d", 0, 0, tiled=True) * 2,
    "ppermute": lambda x: lax.ppermute(x, "d", turn),
    "axis_index": lambda x: x * lax.axis_index("d"),
}
for name, f in FUNCTIONS.items():
    mapped = st.shard_map(f, mesh=mesh, in_specs=P("d"), out_specs=P("d"))
    parts = st.vmap(f, axis_name="d")(snp.array(A.reshape(n, n, 3)))
    check(st.jit(mapped)(a), parts.reshape(-1, 3))
print("collectives", len(FUNCTIONS))

# The gradient of a data-parallel loss, written for the parts, and for the whole.
W = np.random.default_rng(1).standard_normal((3, 2)).astype(np.float32)


def loss(w, x):
    return (snp.tanh(x @ w) ** 2).mean()


def over_parts(w, x):
    part = st.shard_map(
        lambda w, x: lax.pmean(loss(w, x), "d"), mesh=mesh, in_specs=(P(), P("d")), out_specs=P()
    )
    return part(w, x)


value, slope = st.value_and_grad(loss)(snp.array(W), snp.array(A))
for f in (loss, over_parts):
    got, gradient = st.jit(st.value_and_grad(f))(st.device_put(W, whole), a)
    assert gradient.is_fully_replicated
    np.testing.assert_allclose(gradient, slope, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(float(got), float(value), rtol=1e-5)
print("gradient")

# Operations one by one; results that are whole are read everywhere.
check(snp.sin(a) * 2 + 1, np.sin(A) * 2 + 1)
np.testing.assert_allclose(a.sum(0), A.sum(0), rtol=1e-5)
assert bool((a**2 >= 0).all()) and int((a > 0).sum()) == (A > 0).sum()
check(st.device_put(st.device_put(a, whole), split), A)
np.testing.assert_array_equal(st.device_put(a, whole), A)
assert repr(a) == str(a) == f"Array(float32[{n * n},3], {split})"
assert repr(st.device_put(a, whole)) == repr(snp.array(A))
try:
    np.asarray(a)
except RuntimeError as error:
    print(error)
try:
    st.device_put(A, NamedSharding(st.make_mesh((1,), ("x",), devices=st.devices()[-1:]), P()))
    assert here == 1
except ValueError as error:
    print(error)

own_parts = [shard.data for shard in a.addressable_shards]
for parts in (own_parts, [st.device_put(np.asarray(p), p.device) for p in own_parts]):
    whole_again = st.sharding.make_array_from_single_device_arrays(a.shape, split, parts)
    check(whole_again * 2, A * 2)

# What was not put anywhere is here.
x = st.jit(lambda x: x @ x)(snp.ones((100, 100)) * (here + 1))
assert x.device == st.distributed.local_devices()[0] and x[0, 0] == 100 * (here + 1) ** 2
assert st.device_put(x, st.distributed.local_devices()[0]) is x
assert (st.device_put(x, st.distributed.local_devices()[-1]) + 1)[0, 0] == x[0, 0] + 1
assert st.pure_callback(lambda v: v * 2, x, x)[0, 0] == 2 * x[0, 0]
from stretto._engine.api.sharding.shard_map import pmap
shares = pmap(lambda v: v / lax.psum(v, "i"), axis_name="i")(np.ones(own))
assert shares.tolist() == [1 / own] * own and shares.is_fully_addressable
try:
    st.distributed.initialize()
except RuntimeError as error:
    print(error)
print("alone")
"""


@pytest.mark.parametrize("devices", [1, 2])
def test_two_processes(devices):
    first, second = together(COLLECTIVES, 2, devices)
    for text in (first, second):
        assert "collectives 9\ngradient\n" in text and text.endswith("alone\n")
        assert re.search("this process has only a part: read that, x.addressable_shards", text)
        assert "this process takes part in a job; call distributed.shutdown() first" in text
    there = "the devices must be those of all 2 processes, or those of this one, process 0; got"
    assert there in first and there not in second


def test_too_late():
    script = """
    st.jit(lambda x: x @ x)(snp.ones((100, 100)))
    try:
        st.distributed.initialize()
    except RuntimeError as error:
        print(error)
    """
    (text,) = together(script, 1)
    assert "distributed.initialize comes too late: a program was compiled already" in text


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((), "coordinator_address must be given"),
        (("localhost", 1, 0), "must be 'host:port'; got 'localhost'"),
        (("localhost:70000", 1, 0), "must be 'host:port'"),
        (("localhost:1",), "num_processes must be given"),
        (("localhost:1", 2), "process_id must be given"),
        (("localhost:1", 0, 0), "num_processes must be 1 or more; got 0"),
        (("localhost:1", 2, -1), "process_id must be from 0 to 1, for 2 processes; got -1"),
    ],
)
def test_arguments(arguments, message, monkeypatch):
    for name in ("STRETTO_COORDINATOR", "SLURM_JOB_ID", "OMPI_COMM_WORLD_SIZE", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match=re.escape(message)):
        distributed.initialize(*arguments)
    assert not distributed.is_initialized()


def test_more_arguments():
    with pytest.raises(TypeError, match="num_processes"):
        distributed.initialize("localhost:1", 1.5, 0)
    with pytest.raises(ValueError, match="seconds, more than 0; got 300 and 0"):
        distributed.initialize("localhost:1", 1, 0, heartbeat_timeout=0)
    st.distributed.shutdown()  # of no job


OURS = {
    "STRETTO_COORDINATOR": "10.0.0.1:80",
    "STRETTO_NUM_PROCESSES": "3",
    "STRETTO_PROCESS_ID": "1",
}
SLURM = {
    "SLURM_JOB_ID": "4097",
    "SLURM_STEP_NODELIST": "gpu[03-05,07],login",
    "SLURM_NTASKS": "8",
    "SLURM_PROCID": "5",
}
OPEN_MPI = {
    "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_RANK": "3",
}
TORCHRUN = {"MASTER_ADDR": "node1", "MASTER_PORT": "29500", "WORLD_SIZE": "2", "RANK": "0"}


@pytest.mark.parametrize(
    "environ, expected",
    [
        ({}, (None, None, None)),
        (OURS, ("10.0.0.1:80", 3, 1)),
        ({**SLURM, **OURS}, ("10.0.0.1:80", 3, 1)),
        (SLURM, ("gpu03:61441", 8, 5)),
        ({**SLURM, "SLURM_STEP_NODELIST": "a,b"}, ("a:61441", 8, 5)),
        ({**SLURM, "SLURM_STEP_NODELIST": "node-7"}, ("node-7:61441", 8, 5)),
        (OPEN_MPI, ("10.96.0.1:61440", 4, 3)),
        ({**OPEN_MPI, "OMPI_MCA_orte_hnp_uri": ""}, (None, 4, 3)),
        (TORCHRUN, ("node1:29500", 2, 0)),
        ({**TORCHRUN, "TORCHELASTIC_USE_AGENT_STORE": "True"}, ("node1:29501", 2, 0)),
    ],
)
def test_environments(environ, expected):
    assert distributed._from_environment(environ) == expected
