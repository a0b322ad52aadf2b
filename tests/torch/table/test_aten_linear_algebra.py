"""Factorizations, solutions of equations, and Fourier transforms gives what PyTorch gives."""

from stretto.torch.table import aten_linear_algebra
from tests.torch.recorded import check_calls


def test_recorded_calls():
    check_calls(aten_linear_algebra, least=6)
