"""Parameters: what cannot be trained is refused; marking twice is marking once."""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto import nn


def test_the_array_is_kept_whole():
    array = snp.ones(3)
    assert nn.Parameter(nn.Parameter(array)).value is array
    assert not nn.Parameter(0.5).value.weak_type


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ([1.0], TypeError, r"Parameter: value must be an array or a number; got a list"),
        (np.arange(3), TypeError, r"Parameter: int32\[3\] has no gradient.*register_buffer"),
        (np.array([True]), TypeError, r"Parameter: bool\[1\] has no gradient"),
        ("w", TypeError, "must be an array or a number"),
    ],
    ids=["list", "int", "bool", "str"],
)
def test_parameters_refused(value, error, words):
    with pytest.raises(error, match=words):
        nn.Parameter(value)
