"""Normalization, pooling, resizing, recurrent networks and losses give what PyTorch gives."""

from stretto.torch.table import aten_layers
from tests.torch.recorded import check_calls


def test_recorded_calls():
    check_calls(aten_layers, least=20)
