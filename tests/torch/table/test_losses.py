"""Losses, and PyTorch's numbers for their reductions."""

from stretto.torch.table import losses
from tests.torch.recorded import check_calls


def test_recorded_calls():
    check_calls(losses, least=8)
