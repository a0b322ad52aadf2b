from __future__ import annotations

import numpy as np
import pytest

import stretto.numpy as snp


def test_limits():
    assert snp.finfo(snp.float32).eps == np.finfo(np.float32).eps
    assert float(snp.finfo(snp.bfloat16).max) == pytest.approx(3.39e38, rel=1e-2)
    assert snp.iinfo(snp.int4).max == 7
    assert snp.iinfo(int_type="int8").bits == 8
    assert snp.iinfo(snp.array([1], snp.int16)).min == -32768


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: snp.finfo(snp.int32),
            ValueError,
            r"finfo: expected a float or complex dtype, got int32",
        ),
        (
            lambda: snp.iinfo(snp.float32),
            ValueError,
            r"iinfo: expected an integer dtype, got float32",
        ),
    ],
)
def test_messages_name_the_function_called(call, error, words):
    with pytest.raises(error, match="^" + words):
        call()
