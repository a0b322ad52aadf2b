"""Barriers behind what extrema are taken of, for GPUs."""

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.api.graph import make_graph
from stretto._engine.core.shardings import Placement, SingleDeviceSharding
from stretto._engine.plan.prepare import for_platform, prepare
from stretto._engine.plan.settled import settled
from stretto._engine.runtime.device import Device

X = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def names(program):
    return [e.primitive.name for e in program.equations]


def test_all_who_read_the_value_read_it_behind_the_barrier():
    program = make_graph(st.grad(lambda x: (x * x).max()))(X)
    after = settled(program)
    assert names(after).count("optimization_barrier") == 1
    (barrier,) = [e for e in after.equations if e.primitive.name == "optimization_barrier"]
    readers = [e for e in after.equations if barrier.inputs[0] in e.inputs]
    assert readers == [barrier]
    compared = [e for e in after.equations if barrier.outputs[0] in e.inputs]
    assert {"reduce_max", "eq"} <= {e.primitive.name for e in compared}


def test_arguments_places_and_loops():
    program = make_graph(lambda x: (x.max(0), snp.argmin(x, 0), snp.sort(x)))(X)
    after = settled(program)
    assert names(after)[0] == "optimization_barrier"
    assert names(after).count("optimization_barrier") == 1
    loop = make_graph(lambda x: lax.scan(lambda c, row: (c + (row * 2).max(), c), 0.0, x))(X)
    inner = [p for e in settled(loop).equations for p in e.primitive.programs()]
    assert "optimization_barrier" in [n for p in inner for n in names(p)]
    plain = make_graph(lambda x: (x * 2).sum())(X)
    assert settled(plain) is plain and settled(program) is after


def test_for_gpus_alone():
    program = prepare(make_graph(lambda x: (x * 2).max())(X))
    for platform, changed in (("gpu", True), ("cpu", False)):
        device = Device(platform, 0)
        placement = Placement((device,), None, (SingleDeviceSharding(device),), (None,))
        assert (for_platform(program, placement) is not program) == changed
    assert for_platform(program, None) is program
