"""Arithmetic, comparison, bits and the functions of calculus give what PyTorch gives."""

from stretto.torch.table import aten_arithmetic
from tests.torch.recorded import check_calls


def test_recorded_calls():
    check_calls(aten_arithmetic, least=121)
