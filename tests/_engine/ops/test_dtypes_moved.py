"""Laws of the primitives that move elements, or choose among them, in every kind of dtype."""

import numpy as np
import pytest

from stretto._engine.ops import shape
from stretto._engine.ops.broadcast import BroadcastInDim, broadcast_to
from stretto._engine.ops.comparison import Select, select
from stretto._engine.ops.index import dynamic
from stretto._engine.ops.index import gather_scatter as index
from stretto._engine.ops.index import primitives as index_primitives
from stretto._engine.ops.index.geometry import ScatterDimensionNumbers
from stretto._engine.ops.layout import Reshape, Transpose, reshape
from stretto._engine.ops.layout import transpose as permute
from stretto._engine.ops.reducing import reduce
from stretto.laws import b1, bf16, c64, f32, f64, i32, law, u32

KINDS = (f32, f64, bf16, i32, u32, b1, c64)
ORDERED = (f32, f64, bf16, i32, u32)
ROWS = ScatterDimensionNumbers((1,), (0,), (0,))
PLACES = np.array([[2], [0]], np.int32)
START = np.array(1, np.int32)


def writes(fun):
    return lambda x, places, updates: fun(x, places, updates, ROWS, unique_indices=True)


MOVES = {
    BroadcastInDim: lambda x: broadcast_to(x, (2, 3, 2)),
    Reshape: lambda x: reshape(x, (2, 3)),
    Transpose: lambda x: permute(x, (1, 0)),
    shape.Slice: lambda x: shape.slice_(x, (0, 1), (3, 2), (2, 1)),
    shape.Rev: lambda x: shape.rev(x, (0,)),
}
PAIRS = {
    shape.Concatenate: lambda x, y: shape.concatenate([x, y], 1),
    Select: lambda x, y: select(np.array([[True, False], [False, True], [True, True]]), x, y),
}
UPDATES = {
    index_primitives.ScatterSet: (index.scatter, KINDS),
    index_primitives.ScatterAdd: (index.scatter_add, (*ORDERED, c64)),
    index_primitives.ScatterSub: (index.scatter_sub, (*ORDERED, c64)),
    index.ScatterMul: (index.scatter_mul, (*ORDERED, c64)),
    index.ScatterMin: (index.scatter_min, ORDERED),
    index.ScatterMax: (index.scatter_max, ORDERED),
}
LAWS = [
    *(law(p, f, t(3, 2)) for p, f in MOVES.items() for t in KINDS),
    *(law(p, f, t(3, 2), t(3, 2)) for p, f in PAIRS.items() for t in KINDS),
    *(
        law(p, writes(f), t(3, 2), PLACES, t(2, 2))
        for p, (f, kinds) in UPDATES.items()
        for t in kinds
    ),
    *(
        law(
            dynamic.DynamicSlice,
            lambda x, i: dynamic.dynamic_slice(x, (i, i), (2, 1)),
            t(3, 2),
            START,
        )
        for t in KINDS
    ),
    *(
        law(
            dynamic.DynamicUpdateSlice,
            lambda x, u, i: dynamic.dynamic_update_slice(x, u, (i, i)),
            t(3, 2),
            t(2, 1),
            START,
        )
        for t in KINDS
    ),
    *(
        law(p, lambda x, f=f: f(x, 1), t(3, 4))
        for p, f in ((reduce.Argmax, reduce.argmax), (reduce.Argmin, reduce.argmin))
        for t in (*ORDERED, b1)
    ),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()
