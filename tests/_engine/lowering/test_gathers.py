"""What the kernel for gathers is told."""

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto._engine.lowering.gathers import geometry
from stretto._engine.ops.fused_gather import FusedGather
from stretto._engine.ops.product_strides import View, row_major
from stretto._engine.passes.fuse_gathers import fuse_gathers
from stretto._engine.passes.prepare import prepare

NONE = [0, 0, 0, 0]


def told(function, *shapes, views=None):
    """The numbers for the one gather in a program of float32 and int32 arrays."""
    floats, ints, *more = shapes
    args = [np.zeros(floats, np.float32), np.zeros(ints, np.int32)]
    args += [np.zeros(shape, np.float32) for shape in more]
    program = fuse_gathers(prepare(st.make_graph(function)(*args)))
    (e,) = [e for e in program.equations if isinstance(e.primitive, FusedGather)]
    types = [a.type for a in e.inputs]
    found = geometry(e.primitive, types[0], *(views or [row_major(t.shape) for t in types]))
    return None if found is None else [*found]


def test_rows():
    head = [0, 1, 64, 4, 0, 0, 0]  # no bag, one term, 64 elements of 4 bytes, nothing to fill
    index = [1, 0, *[64, 0, 0, 0], *[49, 0, 0, 0], *[50, 0, 0, 0]]
    lead = [*[1, 1, 1, 80], *[0, 0, 0, 0], *[0, 0, 0, 1], *NONE, *NONE]
    rest = [*[0, 0], *lead, *NONE, *[0, 0]]
    assert told(lambda w, i: w[i], (50, 64), (16, 5)) == [*head, *index, *rest]


def test_a_bag():
    found = told(lambda w, i: w[i].mean(1), (50, 64), (16, 5))
    assert found[:4] == [1, 5, 64, 4]
    assert found[21:23] == [1, np.float64(5).view(np.int64)]
    assert found[23:43] == [*[1, 1, 1, 16], *NONE, *[0, 0, 0, 5], *NONE, *NONE]
    assert found[43:] == [*[0, 1, 0, 0], *[0, 0]]


def test_weights_lie_along_rows():
    views = [row_major((50, 64)), row_major((16, 5)), View((16, 5, 64), (5, 1, 0))]
    bags = lambda w, i, f: (w[i] * f[:, :, None]).sum(1)
    found = told(bags, (50, 64), (16, 5), (16, 5), views=views)
    assert found[0] == 1 and found[35:39] == [0, 0, 0, 5] and found[43:] == [0, 1, 1, 0, 1, 0]


def test_members_and_windows():
    both = st.vmap(lambda w, i: w[i])
    found = told(both, (3, 50, 64), (3, 80))
    assert found[23:35] == [*[1, 1, 3, 80], *[0, 0, 3200, 0], *[0, 0, 80, 1]]
    tables = st.vmap(lambda w, i: w[i], (0, None))
    found = told(tables, (3, 50, 64), (80,))
    assert found[23:35] == [*[1, 1, 3, 80], *[0, 0, 3200, 0], *[0, 0, 0, 1]]


def test_components_that_count():
    found = told(lambda x, i: x[snp.arange(4096), i], (4096, 32), (4096,))
    assert found[:4] == [0, 1, 1, 4] and found[7:10] == [1, 0, 1]
    assert found[23:35] == [*[1, 1, 1, 4096], *[0, 0, 0, 32], *[0, 0, 0, 1]]


def test_what_a_kernel_cannot_read():
    turned = [View((50, 64), (1, 50)), row_major((16, 5))]
    assert told(lambda w, i: w[i].sum(1), (50, 64), (16, 5), views=turned) is None
    far = [row_major((50, 64)), View((16, 5, 3), (99, 7, 1))]
    assert told(lambda w, i: w[i].sum((0, 2)), (50, 64), (16, 5, 3), views=far) is None
    assert told(lambda w, i: w[i], (50, 64), (16, 5), views=turned)[2] == 1
