"""Functions against values of eighteen digits, computed with eighty."""

import numpy as np

from stretto import jit
from stretto._engine.core.config import enable_x64


def check_values(f, rows, rtol=1e-13):
    """Eagerly and compiled, which are by other formulas."""
    *args, want = map(np.array, zip(*rows, strict=True))
    with enable_x64():
        for g in (f, jit(f)):
            np.testing.assert_allclose(g(*args), want, rtol=rtol, atol=0)
