"""Elements in the opposite order, turned, and moved around."""

from __future__ import annotations

import numpy as np

import stretto as st
import stretto.numpy as snp

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_roll_by_a_traced_number():
    rolled = st.jit(lambda x, n: snp.roll(x, n, axis=1))
    for n in (0, 1, -2, 7):
        np.testing.assert_array_equal(rolled(X, n), np.roll(X, n, axis=1))
    shifts = st.vmap(lambda n: snp.roll(snp.arange(4), n))(snp.arange(4))
    np.testing.assert_array_equal(shifts, [np.roll(np.arange(4), n) for n in range(4)])
