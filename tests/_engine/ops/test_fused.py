"""What operations that passes make last have in common."""

import numpy as np
import pytest

from stretto._engine.api.graph import make_graph
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.higher_order.fused_scan import FusedScan
from stretto._engine.ops.fused import Fused, FusedProgram
from stretto._engine.ops.fused_attention import FusedAttention
from stretto._engine.ops.fused_gather import FusedGather
from stretto._engine.ops.fused_product import FusedProduct
from stretto._engine.ops.fused_rows import FusedRows
from stretto._engine.ops.fused_updates import FusedUpdates
from stretto._engine.ops.identities import After


@pytest.mark.parametrize(
    "kind", [After, FusedAttention, FusedGather, FusedProduct, FusedRows, FusedScan, FusedUpdates]
)
def test_they_come_after_all_transformations(kind):
    assert issubclass(kind, Fused)
    op = object.__new__(kind)
    for rule in ("jvp", "transpose", "vmap", "padded"):
        with pytest.raises(MissingRuleError, match=f"{op.name}.*after all transformations"):
            getattr(op, rule)(None)


def test_a_program_says_types_values_and_work():
    program = make_graph(lambda x, y: (x + y, 2 * x))(*np.ones((2, 3), np.float32))
    op = FusedRows(program, None)
    assert isinstance(op, FusedProgram)
    assert op.infer(*program.in_types) == program.out_types
    with pytest.raises(TypeError, match=r"fused_rows: expected .*3.*, got .*4"):
        op.infer(program.in_types[0], program.in_types[1].with_shape((4,)))
    x, y = np.arange(3, dtype=np.float32), np.ones(3, np.float32)
    for got, expected in zip(op.reference(x, y), (x + y, 2 * x), strict=True):
        np.testing.assert_array_equal(got, expected)
    assert op.work(program.in_types, program.out_types) == program.work
