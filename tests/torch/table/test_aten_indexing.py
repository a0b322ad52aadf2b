"""Shapes and elements by index give what PyTorch gives."""

from stretto.torch.table import aten_indexing
from tests.torch.recorded import check_calls


def test_recorded_calls():
    check_calls(aten_indexing, least=56)
