"""Products of matrices, convolutions, attention gives what PyTorch gives."""

from stretto.torch.table import aten_products
from tests.torch.recorded import check_calls


def test_recorded_calls():
    check_calls(aten_products, least=10)
