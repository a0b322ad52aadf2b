"""Shardings as the runtime has them, there and back."""

import itertools
import threading

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P, lax
from stretto._engine.lowering.text import Text
from stretto._engine.xla import disk, partitions, pjrt, store
from stretto.sharding import NamedSharding

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
