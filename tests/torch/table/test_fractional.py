"""Fractional pooling gives what PyTorch gives."""

from stretto.torch.table import fractional
from tests.torch.recorded import check_calls


def test_recorded_calls():
    check_calls(fractional, least=2)
