import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.curvature import ggn
from stretto.curvature.batches import batch_of, need_room, outputs_of, rank_of, sum_over_batches


def describe(examples, **options):
    x = snp.arange(2.0 * examples).reshape(examples, 2)
    return ggn((lambda p, x: x @ p["w"], {"w": snp.ones((2, 3))}), x, **options)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 100])
def test_every_example_counts_once(size):
    curvature = describe(7)

    def one(batch):
        weight = batch.here.astype(np.float32)
        return (batch.x * weight[:, None]).sum(axis=0), (batch.numbers * weight).sum()

    total, numbers = st.jit(lambda c: sum_over_batches(c, size, one))(curvature)
    np.testing.assert_array_equal(total, np.asarray(curvature.x).sum(0))
    assert numbers == 21


def test_batches_are_a_loop_in_the_program():
    program = st.make_graph(lambda c: sum_over_batches(c, 2, lambda b: b.x.sum()))(describe(100))
    assert str(program).count("scan") == 1 and len(program.equations) < 10


def test_batches_are_of_the_size_that_is_asked_for_or_of_sensible_memory():
    assert batch_of(describe(7, batch_size=5), 10) == 5
    assert batch_of(describe(7), 10) == 256
    assert batch_of(describe(7), 1 << 22) == 4
    assert batch_of(describe(7), 1 << 30) == 1


def test_types_are_known_before_anything_is_computed():
    out, root = outputs_of(describe(7))
    assert out.shape == (1, 3) and root.shape == (1, 3, 2)
    assert rank_of(describe(7)) == 2


def test_what_does_not_fit_is_told_with_its_size():
    with st.config(memory_budget=1 << 20):
        need_room("f", 1000, "float32", "this")
        with pytest.raises(MemoryError, match=r"f: that takes 4\.0 GB, and 0\.0 GB may be used"):
            need_room("f", 10**9, "float32", "that")
