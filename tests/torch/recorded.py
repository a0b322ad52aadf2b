"""Calls of PyTorch's operations and what it gave for them; ``benchmarks.torch_samples`` records."""

import functools
import json
from pathlib import Path

import numpy as np

import stretto as st
from stretto.torch.programs.torch_graph import Graph
from stretto.torch.programs.torch_program import run

SAMPLES = Path(__file__).parent / "samples.json"


@functools.cache
def _calls():
    found = {}
    for call in json.loads(SAMPLES.read_text("utf-8")):
        graph = Graph.from_json(call["graph"])
        arrays = [_array(a) for a in call["arrays"]]
        expected = [_array(a) for a in call["expected"]]
        for op in {node.op for node in graph.nodes}:
            found.setdefault(op, []).append((graph, arrays, expected))
    return found


def _array(data):
    dtype, shape, flat = data
    if dtype.startswith("complex"):
        flat = [complex(float(x), float(y)) for x, y in flat]
    elif not dtype.startswith(("int", "uint", "bool")):
        flat = [float(x) for x in flat]
    return np.array(flat, dtype).reshape(shape)


def check_calls(family, *, least):
    """Run the recorded calls of a family's operations eagerly, and all of them as one program.

    There must be calls of ``least`` operations.
    """
    calls = [(op, *call) for op in family.TABLE for call in _calls().get(op, ())]
    found = len({op for op, *_ in calls})
    assert found >= least, f"calls of {found} operations were recorded"

    def every(arrays):
        return [run(graph, own) for (_, graph, _, _), own in zip(calls, arrays, strict=True)]

    with st.config(enable_x64=True), st.nn.keys(st.random.key(0)):
        arrays = [[st.numpy.asarray(a) for a in own] for _, _, own, _ in calls]
        for outs in (every(arrays), st.jit(every)(arrays)):
            for (op, _, own, expected), found in zip(calls, outs, strict=True):
                assert found[0] is not None, op
                for x, y in zip(found, expected, strict=True):
                    if x is not None:  # as what PyTorch keeps for its own backward pass is here
                        _check(op, own, np.asarray(x), y)


def _check(op, arrays, x, y):
    described = f"{op} of {[f'{a.dtype}{list(a.shape)}' for a in arrays]}"
    assert x.dtype == y.dtype and x.shape == y.shape, described
    np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-7, err_msg=described)
