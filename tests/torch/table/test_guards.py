"""Whether buffers are as they were imported."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.torch.table.guards import TABLE

as_imported = TABLE["stretto.as_imported.default"]
where_as_imported = TABLE["stretto.where_as_imported.default"]


def test_values_that_are_known():
    assert as_imported(snp.asarray([1, 2]), (1, 2), "n") is True
    assert as_imported(snp.asarray(True), (True,), "n") is True
    with pytest.raises(ValueError, match="its buffer n had"):
        as_imported(snp.asarray([1, 2]), (1, 3), "n")


@pytest.mark.parametrize("dtype, lost", [("float32", np.nan), ("int32", -1), ("bool", True)])
def test_values_that_are_traced(dtype, lost):
    x = snp.ones(2, dtype)
    f = st.jit(lambda n: where_as_imported(as_imported(n, (3,), "n"), x))
    np.testing.assert_array_equal(f(snp.asarray([3])), np.ones(2, dtype))
    np.testing.assert_array_equal(f(snp.asarray([4])), np.full(2, lost, dtype))
