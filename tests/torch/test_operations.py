"""Operations of linear algebra, losses and counts that PyTorch cannot all trace by itself."""

import numpy as np
import pytest

import stretto as st

torch = pytest.importorskip("torch")
from torch import tensor  # noqa: E402 (only where PyTorch is)
from torch.nn import functional as F  # noqa: E402

from stretto.torch.table import TABLE  # noqa: E402
from tests.torch.beside_pytorch import Calls, check_function  # noqa: E402

MATRIX, WIDE, RIGHT = (
    torch.from_numpy(np.random.default_rng(k).normal(size=shape))
    for k, shape in enumerate([(5, 3), (3, 5), (5, 2)])
)
SQUARE = MATRIX[:3] + 2 * torch.eye(3)


@pytest.mark.parametrize("driver", [None, "gels", "gelsd"])
def test_least_squares(driver):
    def solved(a, b):
        return torch.linalg.lstsq(a, b, driver=driver).solution

    check_function(solved, MATRIX, RIGHT, single=driver is None)
    check_function(solved, WIDE, RIGHT[:3], single=False)
    check_function(
        solved, torch.stack([MATRIX, -MATRIX]), torch.stack([RIGHT, RIGHT]), single=False
    )


def test_what_least_squares_gives_besides():
    def all_of(a, b):
        found = torch.linalg.lstsq(a, b, driver="gelsd")
        return torch.cat([found.residuals.reshape(-1), found.singular_values, found.rank[None]])

    check_function(lambda a, b: all_of(a.detach(), b.detach()), MATRIX, RIGHT, single=False)
    check_function(
        lambda a, b: torch.linalg.lstsq(a, b).solution, MATRIX, RIGHT[:, 0], single=False
    )
    with st.config(enable_x64=True):
        deficient = torch.cat([MATRIX, MATRIX], -1)[:, :4]
        residuals = Calls(lambda a, b: torch.linalg.lstsq(a, b, driver="gelsd").residuals)
        args = deficient[:, [0, 0]].contiguous(), RIGHT
        assert np.isnan(st.from_torch(residuals, args)(*map(np.asarray, args))).all()


@pytest.mark.parametrize("how", [{}, {"rtol": 0.5}, {"atol": 1.0}, {"atol": 0.5, "rtol": 0.2}])
def test_pseudo_inverses(how):
    check_function(lambda x: torch.linalg.pinv(x, **how), MATRIX, single=not how)


@pytest.mark.parametrize("read", ["L", "U"])
def test_slopes_of_eigenvalues_are_those_of_any_matrix(read):
    check_function(lambda x: torch.linalg.eigvalsh(x, UPLO=read), SQUARE)
    check_function(lambda x: torch.linalg.eigh(x, UPLO=read)[1].abs(), SQUARE, single=False)


def test_eigenvalues_and_the_sizes_of_eigenvectors():
    turning = SQUARE + torch.tensor([[0, 5.0, 0], [-5, 0, 0], [0, 0, 9]])
    check_function(lambda x: torch.linalg.eigvals(x).imag.sort()[0], turning, single=False)
    check_function(lambda x: torch.linalg.eig(x)[1].abs().sum(1).sort()[0], turning, single=False)


def test_as_many_vectors_as_singular_values_have_slopes():
    def shared(x):
        u, s, vh = torch.linalg.svd(x)
        k = s.shape[-1]
        return torch.cat([u[..., :k].abs(), vh.mT[..., :k].abs(), s[..., None, :]], -2)

    check_function(shared, MATRIX, single=False)
    check_function(shared, torch.stack([WIDE, -2 * WIDE]), single=False)
    with st.config(enable_x64=True):
        ours = st.from_torch(Calls(torch.linalg.svd), MATRIX)
        for turned in (ours, st.jit(ours)):
            u, s, vh = map(np.asarray, turned(MATRIX.numpy()))
            np.testing.assert_allclose(u.T @ u, np.eye(5), atol=1e-12)
            np.testing.assert_allclose((u[:, :3] * s) @ vh, MATRIX, atol=1e-12)


def test_logarithms_of_sums_of_complex_numbers():
    rng = np.random.default_rng(0)
    x, y = (torch.from_numpy(9 * rng.normal(size=(2, 4, 5))) for _ in range(2))
    x[:, 0, 0], y[:, 0, 0] = tensor([-np.inf, 0]), tensor([-np.inf, 0])

    def parts(function):
        return lambda *xs: torch.view_as_real(function(*[torch.complex(*x.unbind()) for x in xs]))

    check_function(lambda x, y: parts(torch.logaddexp)(x.detach(), y.detach()), x, y, single=False)
    check_function(parts(torch.logaddexp), x[:, 1:], y[:, 1:], single=False)
    check_function(parts(lambda z: z.logcumsumexp(1)), x[:, 1:], single=False)
    check_function(parts(lambda z: z.logcumsumexp(0)), x[:, :0], single=False)


def test_the_median_of_nothing_but_nan_is_one_of_them():
    missing = torch.full((2, 5), torch.nan).double()
    missing[0, 2:4] = tensor([3.0, 1])
    check_function(lambda x: torch.nanmedian(x, -1).indices, missing, fixed=(0,), single=False)


def test_reflections():
    check_function(torch.linalg.householder_product, MATRIX, tensor([0.3, 1.1, 0.7]).double())
    check_function(torch.orgqr, torch.stack([MATRIX, -MATRIX]), RIGHT[:2].double(), single=False)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, float("inf")])
def test_distances_of_rows(p):
    check_function(lambda x: F.pdist(x, p), MATRIX, single=p == 2)


LOGITS = torch.from_numpy(np.random.default_rng(3).normal(size=(6, 3, 5)))
LABELS = tensor([[1, 2, 2], [3, 3, 1], [4, 1, 2]])
LENGTHS = tensor([6, 5, 4]), tensor([3, 2, 1])


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_connectionist_losses(reduction):
    def loss(x, *rest):
        return F.ctc_loss(x, *rest, reduction=reduction)

    check_function(lambda x, *rest: loss(x.log_softmax(-1), *rest), LOGITS, LABELS, *LENGTHS)
    # Numbers that are no logarithms of probabilities: PyTorch's slope supposes that they are.
    check_function(loss, LOGITS - 2, LABELS, *LENGTHS, single=False)


def test_connectionist_losses_in_other_forms():
    logits = LOGITS.log_softmax(-1)
    check_function(
        lambda x, y: F.ctc_loss(x, y, (6, 5, 4), (3, 2, 1)), logits, LABELS, single=False
    )
    flat = tensor([1, 2, 2, 3, 1])
    check_function(
        lambda x: F.ctc_loss(x, flat, (6, 6), (2, 3), blank=4), logits[:, :2], single=False
    )
    one = tensor([1, 2, 2])
    check_function(lambda x: F.ctc_loss(x, one, tensor(6), tensor(3)), logits[:, 0], single=False)
    short = tensor([2, 2, 2])
    check_function(
        lambda x, y: F.ctc_loss(x, y, short, LENGTHS[1], zero_infinity=True),
        logits[:2],
        tensor([[1, 1, 1], [2, 3, 4], [1, 2, 3]]),
        single=False,
    )


def test_modes():
    x = torch.from_numpy(np.random.default_rng(0).integers(0, 4, (6, 9))).double()
    check_function(lambda x: torch.mode(x, -1).values, x)
    check_function(lambda x: torch.mode(x, 0, keepdim=True).values, x, single=False)
    check_function(lambda x: torch.mode(x, -1).indices, x, single=False)
    missing = torch.where(x == 3, float("nan"), x + torch.arange(9) / 9)
    check_function(lambda x: torch.nanmedian(x, -1).values, missing, single=False)


def test_counts():
    x = tensor([1, 6, 2, 2, 0])
    check_function(lambda x: torch.bincount(x, minlength=7) / 5, x)
    check_function(lambda x, w: torch.bincount(x, w.detach(), 7), x, RIGHT[:, 0], single=False)
    counting = st.from_torch(Calls(lambda x: torch.bincount(x, minlength=7)), x)
    with pytest.raises(ValueError, match="bincount: an element is not below minlength, 7"):
        counting(np.array([7, 1]))
    assert (st.jit(counting)(np.array([7, 1])) == -1).all()
    with pytest.raises(NotImplementedError, match=r"give it minlength|number of classes"):
        st.jit(st.from_torch(Calls(torch.bincount), x))(x.numpy())


def test_repeats_without_their_total_are_refused():
    with pytest.raises(
        NotImplementedError, match=r"repeat_interleave without .*: give it output_s"
    ):
        TABLE["aten.repeat_interleave.Tensor"](st.numpy.array([1, 2]))


def test_rows_by_number_with_slopes_by_frequency():
    rows = tensor([[0, 1, 1], [2, 1, 0]])
    check_function(lambda w: F.embedding(rows, w, padding_idx=0, scale_grad_by_freq=True), MATRIX)


def test_losses_that_pytorch_decomposes_otherwise():
    scores = tensor([[1.0, 0, 2], [1, 2, 1]]).double()
    targets = tensor([[0, -1, 1], [2, 1, -1]])
    for reduction in ("none", "mean", "sum"):
        check_function(
            lambda x, how=reduction: F.multilabel_margin_loss(x, targets, reduction=how),
            scores,
            single=False,
        )


def test_leaky_slopes_that_are_drawn():
    layer, x = torch.nn.RReLU(0.1, 0.3).double(), torch.linspace(-2, 2, 9).double()
    check_function(layer.eval(), x, single=False)
    with st.config(enable_x64=True):
        ours = st.from_torch(layer, x, train=True).train()
        with st.nn.keys(st.random.key(0)):
            slopes = np.asarray(ours(x.numpy())) / np.where(x == 0, 1, x)
    assert ((slopes[:4] >= 0.1) & (slopes[:4] <= 0.3)).all() and len(set(slopes[:4])) == 4
    np.testing.assert_array_equal(slopes[5:], 1)
