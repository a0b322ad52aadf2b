"""A fixture: a function of ``stretto.numpy`` gives what NumPy's gives, eagerly and jitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6, "complex64": 2e-6}


def _compare(got: Any, want: Any, rtol: float | None) -> None:
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            _compare(g, w, rtol)
        return
    want = np.asarray(want)
    assert got.shape == want.shape
    tolerance = TOLERANCE.get(got.dtype.name, 0) if rtol is None else rtol
    wide = (
        np.complex128
        if "complex" in (got.dtype.kind, want.dtype.kind) or want.dtype.kind == "c"
        else np.float64
    )
    np.testing.assert_allclose(
        np.asarray(got).astype(wide), want.astype(wide), rtol=tolerance, atol=tolerance
    )


@pytest.fixture
def agree() -> Callable[..., Any]:
    """``agree(name, *args, **settings)``: eager, jitted and NumPy's results are one."""

    def check(
        name: str,
        *args: Any,
        numpy: Callable[..., Any] | None = None,
        dtype: Any = None,
        rtol: float | None = None,
        **settings: Any,
    ) -> Any:
        ours = getattr(snp, name)
        theirs = getattr(np, name) if numpy is None else numpy
        traced = [i for i, a in enumerate(args) if isinstance(a, np.ndarray)]
        static = {i: a for i, a in enumerate(args) if i not in traced}

        def of_arrays(*arrays: Any) -> Any:
            given = iter(arrays)
            return ours(
                *[static[i] if i in static else next(given) for i in range(len(args))], **settings
            )

        arrays = [snp.array(args[i]) for i in traced]
        eager, jitted = of_arrays(*arrays), st.jit(of_arrays)(*arrays)
        with np.errstate(all="ignore"):
            want = theirs(*args, **settings)
        _compare(eager, want, rtol)
        _compare(jitted, want, rtol)
        for e, j in zip(st.tree.leaves(eager), st.tree.leaves(jitted), strict=True):
            assert e.dtype == j.dtype
            assert e.weak_type == j.weak_type
            if dtype is not None:
                assert e.dtype == np.dtype(dtype)
        return eager

    return check
