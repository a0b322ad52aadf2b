"""Products of matrices, convolutions, attention gives what PyTorch gives."""

from stretto.torch.table import products
from tests.torch.recorded import check_calls


def test_recorded_calls():
    check_calls(products, least=10)
