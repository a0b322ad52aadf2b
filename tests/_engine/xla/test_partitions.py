"""Shardings as the runtime has them, there and back."""

import itertools
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P, lax
from stretto._engine.core.errors import LostProcessError
from stretto._engine.core.types import array_type
from stretto._engine.lowering.text import Text
from stretto._engine.xla import disk, partitions, pjrt, store
from stretto._engine.xla.partitions import PlacedExecutable
from stretto.sharding import NamedSharding, SingleDeviceSharding

pytestmark = pytest.mark.devices


def _specs():
    names = ["x", "y", "z"]
    for first, second in itertools.product(range(4), range(4)):
        if first + second <= 3:
            yield from (
                P(tuple(order[:first]), tuple(order[first : first + second]))
                for order in itertools.permutations(names)
            )


@pytest.mark.parametrize("spec", sorted(set(map(str, _specs()))))
def test_the_compilers_choice_is_read_as_a_specification(spec):
    mesh = st.make_mesh((2, 2, 2), ("x", "y", "z"))
    sharding = NamedSharding(mesh, eval(spec, {"PartitionSpec": P}))
    out = st.jit(lambda x: x + 1)(st.device_put(np.zeros((8, 8), np.float32), sharding))
    assert out.sharding.is_equivalent_to(sharding, 2)
    for part in out.addressable_shards:
        assert part.data.shape == sharding.shard_shape((8, 8))


def test_part_of_an_axis():
    """The runtime may split an axis of the mesh between two axes of a result."""
    mesh = st.make_mesh((8,), ("x",))
    factored = partitions._factor_axes(mesh)
    assert dict(factored.shape) == {"x.0": 2, "x.1": 2, "x.2": 2}
    assert list(factored.devices.flat) == list(mesh.devices.flat)
    x = st.device_put(np.arange(64, dtype=np.float32), NamedSharding(mesh, P("x")))
    out = st.jit(lambda x: x.reshape(2, 32))(x)
    np.testing.assert_array_equal(out, np.arange(64).reshape(2, 32))
    np.testing.assert_array_equal(out + 1, np.arange(64).reshape(2, 32) + 1)


def test_programs_on_devices_are_kept_on_disk(kept_in, again, monkeypatch):
    mesh = st.make_mesh((4, 2), ("x", "y"))
    anew = []
    compiling = pjrt.load

    def loaded(at, text, options, *args, **kwargs):
        anew.append(text)
        return compiling(at, text, options, *args, **kwargs)

    monkeypatch.setattr(pjrt, "load", loaded)

    def run():
        x = st.device_put(
            np.arange(64, dtype=np.float32).reshape(8, 8), NamedSharding(mesh, P("x", "y"))
        )
        share = st.shard_map(
            lambda x: x / lax.psum(x.sum(), ("x", "y")),
            mesh=mesh,
            in_specs=P("x", "y"),
            out_specs=P("x", "y"),
        )
        total = st.jit(lambda x: (x @ x.T).sum(0))
        return share(x), total(x), total.lower(x).compile().as_text()

    first = run()
    count = len(anew)
    assert count == 2 == len(store.list_kept(kept_in))
    second = again(run)
    assert len(anew) == count
    for one, other in zip(first[:2], second[:2], strict=True):
        assert one.sharding == other.sharding
        np.testing.assert_array_equal(one, other)
    instructions = [
        [line.split(", metadata")[0] for line in text.splitlines() if " = " in line]
        for text in (first[2], second[2])
    ]
    assert instructions[0] == instructions[1] != []


def test_the_key_has_the_devices(kept_in):
    at = pjrt.runtime()
    devices = at.client.devices()
    choices = ((), devices[:2], devices[2:4], devices[:4])
    entries = [disk.entry_of(Text("module"), (), d) for d in choices]
    assert len({entry.key for entry in entries}) == 4


def test_parts_that_several_threads_ask_for_first():
    """The runtime adds them once for each thread, if it is let."""
    sharding = NamedSharding(st.make_mesh((8,), ("x",)), P("x"))
    for _ in range(20):
        x, together, counts = st.device_put(np.arange(8.0), sharding), threading.Barrier(4), []

        def ask(x=x, together=together, counts=counts):
            together.wait()
            counts.append(len(partitions.parts_of(x.to_give())))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert counts == [8] * 4
        np.testing.assert_array_equal(x, np.arange(8.0))


def test_functions_of_parts_may_have_no_results():
    f = st.shard_map(lambda x: (), mesh=st.make_mesh((8,), ("x",)), in_specs=P("x"), out_specs=())
    assert f(snp.ones(8)) == ()
    assert st.jit(f)(snp.ones(8)) == ()


def test_how_the_runtime_writes_shardings():
    """Parts by rows; devices that have the same part are behind one another in the last."""
    mesh = st.make_mesh((4, 2), ("x", "y"))
    written = {
        P(): "{replicated}",
        P("x", "y"): "{devices=[4,2]0,1,2,3,4,5,6,7}",
        P("y", "x"): "{devices=[2,4]0,2,4,6,1,3,5,7}",
        P("x"): "{devices=[4,1,2]0,1,2,3,4,5,6,7 last_tile_dim_replicate}",
        P(None, "y"): "{devices=[1,2,4]0,2,4,6,1,3,5,7 last_tile_dim_replicate}",
    }
    for spec, text in written.items():
        assert partitions._tiles(NamedSharding(mesh, spec), 2) == text


def test_axes_in_factors():
    sizes = lambda *shape: dict(partitions._factor_axes(st.make_mesh(shape, ("x", "y"))).shape)
    assert sizes(2, 4) == {"x": 2, "y.0": 2, "y.1": 2}
    assert sizes(1, 6) == {"x": 1, "y.0": 2, "y.1": 3}
    assert sizes(7, 1) == {"x": 7, "y": 1}


def test_a_choice_that_no_specification_says():
    mesh = st.make_mesh((4,), ("x",))
    tiles = lambda *order: SimpleNamespace(
        tile_assignment_dimensions=[4], tile_assignment_devices=list(order)
    )
    found = partitions._named_sharding(tiles(0, 2, 1, 3), mesh, 1)
    assert found.spec == P(("x.1", "x.0"))
    with pytest.raises(AssertionError, match="no specification over"):
        partitions._named_sharding(tiles(1, 0, 2, 3), mesh, 1)


# When programs that send one another data begin: one after the other.


@pytest.fixture
def begun(monkeypatch):
    """What is done, in its order, by programs that are none; nothing was begun before."""
    done = []
    monkeypatch.setattr(partitions, "_last", [])
    monkeypatch.setattr(partitions, "job_of_now", lambda: "job")
    monkeypatch.setattr(partitions.processes, "check", lambda: done.append("check"))
    monkeypatch.setattr(
        partitions.processes, "launch", lambda start: (done.append("ask"), start())[1]
    )
    monkeypatch.setattr(partitions.processes, "finish", lambda x: done.append(f"wait for {x}"))
    return done


def program(done, **flags):
    """A program over two devices, with two results, of which the second is the smaller."""

    def execute_sharded(buffers, with_tokens=False):
        done.append("begin")
        waits = SimpleNamespace(block_until_ready=lambda: done.append("wait"))
        return SimpleNamespace(
            consume_with_handlers=lambda handlers: ["large", "small"],
            consume_token=lambda: waits if with_tokens else None,
        )

    made = object.__new__(PlacedExecutable)
    made.loaded = SimpleNamespace(execute_sharded=execute_sharded)
    made.run, made.handlers, made._job = execute_sharded, [], "job"
    made.out_types = [array_type((n,), np.dtype(np.float32)) for n in (8, 2)]
    devices = [SimpleNamespace(job="job"), SimpleNamespace(job="another")]
    made.placement = SimpleNamespace(devices=devices)
    for name in ("_shared", "_alone", "_communicates"):
        setattr(made, name, flags.get(name, False))
    return made


@pytest.mark.parametrize(
    ("flags", "twice"),
    [
        ((), "begin begin"),
        (("_alone",), "begin wait begin"),
        (("_shared",), "begin begin"),
        (("_shared", "_communicates"), "check ask begin check ask begin"),
        (
            ("_shared", "_communicates", "_alone"),
            "check ask begin check wait for small ask begin",
        ),
    ],
    ids=lambda x: "".join(x) if isinstance(x, tuple) else "",
)
def test_what_waits_for_the_program_before(begun, flags, twice):
    one = program(begun, **dict.fromkeys(flags, True))
    for _ in range(2):
        assert one([]) == ["large", "small"]
    assert " ".join(begun) == twice


def test_programs_wait_for_those_of_their_job(begun):
    """For those of another, which has ended, nobody waits."""
    waits = [(None, "local"), ("another", "gone"), ("job", "ours")]
    partitions._last[:] = [(job, lambda name=name: begun.append(name)) for job, name in waits]
    partitions._wait_for_the_last()
    assert begun == ["ours", "local"] and not partitions._last


class Failure(RuntimeError):
    """What the runtime raises where a program has failed."""


@pytest.mark.parametrize(
    ("error", "is_raised"),
    [(Failure("computed badly"), False), (RuntimeError("of a handler"), True),
     (LostProcessError("gone"), True)],
)  # fmt: skip
def test_errors_of_the_program_before(begun, monkeypatch, error, is_raised):
    """Those of its results are raised where these are read."""

    def fail():
        raise error

    monkeypatch.setattr(pjrt, "is_failure", lambda found: type(found) is not RuntimeError)
    partitions._last[:] = [(None, fail)]
    one = program(begun, _alone=True)
    if is_raised:
        with pytest.raises(type(error), match=str(error)):
            one([])
    else:
        one([])
    assert begun == ["begin"] * (not is_raised)


def test_a_program_of_a_job_that_has_ended(begun, monkeypatch):
    one = program(begun)

    def ended(devices):
        raise RuntimeError("their job has ended")

    monkeypatch.setattr(partitions, "runtime_of", ended)
    assert one([]) == ["large", "small"]
    monkeypatch.setattr(partitions, "job_of_now", lambda: "another")
    with pytest.raises(RuntimeError, match="their job has ended"):
        one([])


# How programs are made


def over(count=4, *parts):
    return NamedSharding(st.make_mesh((count,), ("x",)), P(*parts))


def compiled(f, *args):
    return st.jit(f).lower(*args).compile()._executable


def test_64_bits_are_kept():
    with st.enable_x64():
        host = np.array([2**40 + 1, -(2**50)] * 2, np.int64)
        x = st.device_put(host, over(4, "x"))
        np.testing.assert_array_equal(x, host)
        parts = [part.data for part in x.addressable_shards]
        again = partitions.put_together([p.to_give() for p in parts], x.type, x.sharding)
        assert [pjrt.to_host(p).item() for p in partitions.parts_of(again)] == host.tolist()


def test_programs_that_wait_for_the_last_are_those_that_communicate(monkeypatch):
    """Only where the runtime could wait for ever; each device has a part in this memory."""
    shared = []
    runner = pjrt.runner
    note = lambda loaded, types, text, parts=1: (
        shared.append(parts) or runner(loaded, types, text, parts)
    )
    monkeypatch.setattr(pjrt, "runner", note)
    x = st.device_put(np.ones((8, 8), np.float32), over(4, "x"))
    with st.config(disk_cache=False):
        alone, together = compiled(lambda x: x + 1.75, x), compiled(lambda x: x.sum() + 1.75, x)
    assert (alone._communicates, together._communicates) == (False, True)
    assert (alone._alone, together._alone) == (False, bool(pjrt.runtime().skip_checks))
    assert not alone._shared and shared.count(4) == 2
    assert alone.run is not None and alone._job is together._job
    assert not alone.from_disk and not together.from_disk


def test_parts_in_the_memory_of_this_machine_are_those_of_its_own_processors(monkeypatch):
    shared = []
    monkeypatch.setattr(pjrt, "runner", lambda loaded, types, text, parts=1: shared.append(parts))
    monkeypatch.setattr(partitions, "has_collectives", lambda executable: False)
    at = SimpleNamespace(jax=pjrt.runtime().jax, skip_checks=())
    monkeypatch.setattr(partitions, "runtime_of", lambda devices: at)
    kinds = [("cpu", True), ("cpu", False), ("gpu", True), ("cpu", True), ("gpu", False)]
    devices = [SimpleNamespace(platform=kind, is_local=here) for kind, here in kinds]
    placement = SimpleNamespace(devices=devices, outs=(), mesh=None)
    made = PlacedExecutable(None, [], placement, Text(""), ())
    assert shared[-1] == 2 and made._shared


def test_what_comes_from_disk_says_so(monkeypatch):
    x = st.device_put(np.ones((8, 8), np.float32), over(4, "x"))
    with st.config(disk_cache=False):
        made = compiled(lambda x: x + 2.75, x)
    kept = []
    entry = SimpleNamespace(found=lambda: (made.loaded, False), keep=kept.append)
    monkeypatch.setattr(disk, "entry_of", lambda *about: entry)
    found = partitions.compile_placed(made.text, made.out_types, made.placement)
    assert found.from_disk and found.loaded is made.loaded and not found._same_lines and not kept
    entry.found = lambda: None
    anew = partitions.compile_placed(made.text, made.out_types, made.placement)
    assert kept == [anew] and not anew.from_disk and anew._same_lines


def test_what_is_done_at_each_call(begun, monkeypatch):
    tidied, gone_elsewhere = [], []
    monkeypatch.setattr(pjrt, "tidy", lambda: tidied.append(True))
    monkeypatch.setattr(
        partitions, "elsewhere", lambda run, buffers: gone_elsewhere.append(run) or run(buffers)
    )
    one = program(begun)
    for unusual in ([], ["abandoned"]):
        monkeypatch.setattr(partitions, "unusual", unusual)
        assert one([]) == ["large", "small"]
        assert len(gone_elsewhere) == len(unusual)
    assert tidied == [True, True]


def test_programs_that_call_python(monkeypatch):
    """They are compiled with their functions, run to the end, and never kept."""
    done = []
    functions = SimpleNamespace(deepen=lambda: done.append("deepen"), listed=lambda: "listed")
    monkeypatch.setattr(partitions, "Functions", lambda *about: (done.append(about), functions)[1])
    monkeypatch.setattr(pjrt, "load", lambda at, text, options, calls, devices: (calls, devices))
    monkeypatch.setattr(partitions.PlacedExecutable, "__init__", lambda self, *about: None)
    monkeypatch.setattr(pjrt, "run_to_the_end", lambda self, buffers: (self, buffers))
    placement = SimpleNamespace(devices=st.devices()[:1])
    text = SimpleNamespace(calls=["a call"])
    made = partitions.compile_placed(text, [], placement)
    assert isinstance(made, partitions.CallingPlaced) and made._functions is functions
    assert made(["x"]) == (made, ["x"]) and done == [(["a call"], 1), "deepen"]


def test_where_results_are():
    t = array_type((4,), np.dtype(np.float32))
    devices, mesh = st.devices(), over(4).mesh
    found = lambda outs, types, devices, mesh=None, chosen=None: partitions._out_shardings(
        SimpleNamespace(get_output_shardings=lambda: chosen), types,
        SimpleNamespace(outs=outs, devices=devices, mesh=mesh))  # fmt: skip
    single, split = SingleDeviceSharding(devices[3]), over(4, "x")
    assert found([], [], devices[:4], mesh) == []
    assert found([None, single], [t, t], devices[3:4]) == [single, single]
    assert found([None], [t], devices[2:4]) == [SingleDeviceSharding(devices[2])]
    one = st.make_mesh((1,), ("x",))
    assert found([None], [t], one.device_list, one) == [NamedSharding(one, P())]
    tiles = SimpleNamespace(tile_assignment_dimensions=[4], tile_assignment_devices=[0, 1, 2, 3])
    whole = SimpleNamespace(tile_assignment_dimensions=[])
    three = found([None, split, None], [t] * 3, mesh.device_list, mesh, [tiles, whole, whole])
    assert three == [split, split, over(4)]
