"""What masks select: with numbers of elements that are known, and that are not."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.torch.table.aten_subgraphs import TABLE

MASK = np.array([[True, False, True], [False, False, True]])
X = snp.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("mask", [MASK, ~MASK, MASK & False, MASK | True], ids=str)
def test_selected(mask):
    def total(mask, x):
        (out,) = TABLE["stretto.selected"](
            lambda places, x: [snp.sum(snp.take(x.reshape(-1), places) ** 2)],
            (mask,),
            (x,),
            (False,),
        )
        return out

    for f in (total, st.jit(total)):
        assert float(f(snp.asarray(mask), X)) == (np.asarray(X)[mask] ** 2).sum()
    slope = st.jit(st.grad(total, 1))(snp.asarray(mask), X)
    np.testing.assert_array_equal(slope, np.where(mask, 2 * np.asarray(X), 0))


def test_places():
    places = np.flatnonzero(MASK)
    mask = snp.asarray(MASK)
    nonzero = TABLE["stretto.nonzero.default"](snp.asarray(places), mask)
    np.testing.assert_array_equal(nonzero, np.argwhere(MASK))
    index = TABLE["stretto.index.Tensor"](snp.asarray(places), X, (mask,))
    np.testing.assert_array_equal(index, np.asarray(X)[MASK])
    select = TABLE["stretto.masked_select.default"](snp.asarray(places), X, mask)
    np.testing.assert_array_equal(select, np.asarray(X)[MASK])
    with pytest.raises(NotImplementedError, match="expand the mask to the tensor's shape"):
        TABLE["stretto.masked_select.default"](snp.asarray(places), X, mask[:1])


def test_results_that_vary():
    f = st.jit(
        lambda mask, x: TABLE["stretto.selected"](lambda p, x: [x[p]], (mask,), (x,), (False,))
    )
    with pytest.raises(st.errors.SizeError, match="depends on the values of a mask"):
        f(snp.asarray(MASK[0]), X[0])
