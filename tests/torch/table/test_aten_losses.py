"""Losses, and PyTorch's numbers for their reductions."""

from stretto.torch.table import aten_losses
from tests.torch.recorded import check_calls


def test_recorded_calls():
    check_calls(aten_losses, least=8)
