"""``check_grads``."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax.gradients import check_grads


def test_right_derivatives_pass():
    check_grads(lambda x, y: snp.sin(x) * y, (np.float32(0.5), np.ones(2, np.float32)), 2)


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_wrong_derivatives_fail(mode):
    f = st.custom_jvp(snp.sin)
    f.defjvp(lambda primals, tangents: (snp.sin(*primals), 2 * tangents[0]))
    with pytest.raises(AssertionError):
        check_grads(f, (np.full(9, 0.5, np.float32),), 1, modes=[mode])
