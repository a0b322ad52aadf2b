"""Sparse tensors of PyTorch's modules, which are dense here."""

import numpy as np
import pytest

import stretto as st

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402 (only where PyTorch is)

from tests.torch.beside_pytorch import Calls  # noqa: E402

torch.manual_seed(0)
DENSE = torch.rand(4, 4, dtype=torch.float64) * (torch.rand(4, 4) > 0.5)
PLACES = torch.tensor([[0, 1, 1, 3, 3], [1, 0, 0, 2, 3]])
X = torch.randn(4, 3, dtype=torch.float64)

pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning"),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning"),
]


class Held(nn.Module):
    """A layer, and a function of what it gives and of a matrix."""

    def __init__(self, matrix, function, buffer=True):
        super().__init__()
        if buffer:
            self.register_buffer("matrix", matrix)
        else:
            self.matrix = matrix
        self.function = function
        self.layer = nn.Linear(3, 3, dtype=torch.float64)

    def forward(self, x):
        return self.function(self.matrix, self.layer(x))


def check(module, weights=("layer.weight",)):
    with st.config(enable_x64=True):
        ours = st.from_torch(module, X)
        expected = module(X)
        for run in (ours, st.jit(ours)):
            np.testing.assert_allclose(run(X.numpy()), expected.detach(), rtol=1e-9, atol=1e-12)
        expected.square().sum().backward()
        slopes = st.grad(lambda m: (m(X.numpy()) ** 2).sum())(ours).state_dict()
        for name in weights:
            theirs = module.get_parameter(name).grad
            np.testing.assert_allclose(slopes[name], theirs, rtol=1e-9, atol=1e-12)


PRODUCTS = {
    "sparse.mm": torch.sparse.mm,
    "matmul": lambda a, x: a @ x,
    "spmm": torch.spmm,
    "mv": lambda a, x: torch.mv(a, x[:, 0]),
    "addmm": lambda a, x: torch.sparse.addmm(x, a, x, beta=0.5, alpha=2),
    "to_dense": lambda a, x: a.to_dense() @ x,
    "transposed": lambda a, x: a.t() @ x,
    "scaled": lambda a, x: (2 * a) @ x,
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
def test_matrices_that_a_module_holds(name, layout):
    check(Held(getattr(DENSE, layout)(), PRODUCTS[name]))


def test_attributes_and_constants():
    matrix = DENSE.to_sparse()
    check(Held(matrix, lambda a, x: torch.sparse.sum(a.coalesce(), 1).to_dense()[:, None] * x))
    held = Held(matrix, lambda a, x: a @ x, buffer=False)
    check(held)
    assert held.matrix is matrix and matrix.is_sparse
    check(Held(torch.zeros(1), lambda _, x: matrix @ x))


def test_buffers_are_dense_here():
    with st.config(enable_x64=True):
        ours = st.from_torch(Held(DENSE.to_sparse(), torch.sparse.mm), X)
        np.testing.assert_array_equal(ours.state_dict()["matrix"], DENSE)
        product = st.from_torch(Calls(torch.matmul), (DENSE.to_sparse(), X))
        np.testing.assert_allclose(product(DENSE.numpy(), X.numpy()), DENSE @ X)


class Made(nn.Module):
    """A matrix that is made of values, some of which are at one place."""

    def __init__(self, make):
        super().__init__()
        self.values = nn.Parameter(torch.randn(5, dtype=torch.float64))
        self.make = make

    def forward(self, x):
        return torch.sparse.mm(self.make(self.values), x)


def test_matrices_that_are_made():
    weights = ["values"]
    check(Made(lambda v: torch.sparse_coo_tensor(PLACES, v, (4, 4))), weights)
    check(Made(lambda v: torch.sparse_coo_tensor(PLACES, v, (4, 4)).coalesce()), weights)
    rows, columns = torch.tensor([0, 1, 3, 3, 5]), torch.tensor([1, 0, 2, 0, 1])
    check(Made(lambda v: torch.sparse_csr_tensor(rows, columns, v, (4, 4))), weights)


@pytest.mark.parametrize(
    "function, words",
    [
        (lambda a, x: torch.sparse.softmax(a, 1) @ x, "torch.sparse.softmax"),
        (lambda a, x: a.coalesce().values().sum() * x, "Tensor.values"),
        (lambda a, x: a.coalesce().indices().shape[1] * x, "Tensor.indices"),
        (lambda a, x: a._nnz() * x, "Tensor._nnz"),
        (lambda a, x: x if a.is_sparse else 2 * x, "Tensor.is_sparse"),
        (lambda a, x: x if a.layout == torch.sparse_coo else 2 * x, "Tensor.layout"),
    ],
)
def test_places_of_elements_are_refused(function, words):
    with pytest.raises(NotImplementedError, match=f"from_torch: {words}.* is not supported"):
        st.from_torch(Held(DENSE.to_sparse(), function), X)


def test_other_refusals():
    made = Made(lambda v: torch.sparse_coo_tensor(PLACES, v))
    with pytest.raises(NotImplementedError, match=r"depends on values: give it the size"):
        st.from_torch(made, X)
    held = Held(torch.zeros(1), torch.sparse.mm)
    del held.matrix
    held.matrix = nn.Parameter(DENSE.to_sparse())
    with pytest.raises(NotImplementedError, match=r"the parameter matrix is of layout"):
        st.from_torch(held, X)
