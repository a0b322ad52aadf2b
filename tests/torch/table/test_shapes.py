"""Shapes: views, permutations, parts, repetition, padding gives what PyTorch gives."""

from stretto.torch.table import shapes
from tests.torch.recorded import check_calls


def test_recorded_calls():
    check_calls(shapes, least=42)
