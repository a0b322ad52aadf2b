"""Array methods that tell of devices."""

from __future__ import annotations

import pytest

import stretto.numpy as snp


def test_the_one_device_has_all():
    x = snp.ones(2)
    assert x.addressable_data(0) is x
    assert x.is_fully_addressable
    assert x.is_fully_replicated
    assert not x.committed
    with pytest.raises(IndexError, match="addressable_data: the array is on one device"):
        x.addressable_data(1)
