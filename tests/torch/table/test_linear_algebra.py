"""Factorizations, solutions of equations, and Fourier transforms gives what PyTorch gives."""

from stretto.torch.table import linear_algebra
from tests.torch.recorded import check_calls


def test_recorded_calls():
    check_calls(linear_algebra, least=6)
