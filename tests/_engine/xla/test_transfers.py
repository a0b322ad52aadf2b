"""Collectives read from compiled programs, beside their text."""

import re

import numpy as np
import pytest

import stretto as st
from stretto import NamedSharding, P, lax
from stretto._engine.xla.transfers import transfers_of
from tests.meshes import mesh

pytestmark = pytest.mark.devices


def compiled(f, *args):
    return st.jit(f).lower(*args).compile()


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float16, np.float32, np.complex64])
def test_kinds_and_bytes(dtype):
    over = mesh(x=4)
    f = st.shard_map(
        lambda a: (
            lax.all_gather(a, "x", tiled=True),
            lax.all_to_all(a, "x", 0, 0, tiled=True),
            lax.ppermute(a, "x", [(0, 1), (1, 0)]),
        ),
        mesh=over,
        in_specs=P("x"),
        out_specs=(P(), P("x"), P("x")),
    )
    program = compiled(f, np.ones((16, 3), dtype))
    size = np.dtype(dtype).itemsize
    found = {t.kind: t.bytes for t in transfers_of(program._executable)}
    assert found == {
        "all-gather": 48 * size,
        "all-to-all": 12 * size,
        "collective-permute": 12 * size,
    }
    text = program.as_text()
    assert all(re.search(rf"\b{kind}(-start)?\(", text) for kind in found)


def test_the_argument_that_is_gathered():
    over = mesh(x=4)
    put = lambda *shape: st.device_put(np.ones(shape, np.float32), NamedSharding(over, P("x")))
    program = compiled(lambda x, w: x @ w, put(8, 16), put(16, 4))
    (gathered,) = transfers_of(program._executable)
    assert (gathered.kind, gathered.argument) == ("all-gather", 1)
    program = compiled(lambda x, w: x @ (w + x[0, 0]), put(8, 16), put(16, 4))
    assert {t.argument for t in transfers_of(program._executable)} == {None}


def test_no_collective_in_a_program_of_one_device():
    assert transfers_of(compiled(lambda x: x + 1, np.ones(3, np.float32))._executable) == []
