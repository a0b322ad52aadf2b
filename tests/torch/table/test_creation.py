"""Tensors of numbers that are known are PyTorch's."""

from stretto.torch.table import creation
from tests.torch.recorded import check_calls


def test_recorded_calls():
    check_calls(creation, least=12)
