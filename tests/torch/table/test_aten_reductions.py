"""Reductions, sorting and products of matrices give what PyTorch gives."""

from stretto.torch.table import aten_reductions
from tests.torch.recorded import check_calls


def test_recorded_calls():
    check_calls(aten_reductions, least=45)
