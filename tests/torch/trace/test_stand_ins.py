"""Operations that stand in a trace: their shapes, and that gradients are seen to pass."""

import pytest

torch = pytest.importorskip("torch")

from stretto.torch.trace.stand_ins import OPS, of_values  # noqa: E402 (only where PyTorch is)


def shapes(results):
    return [tuple(x.shape) for x in results]


def test_shapes():
    with torch._subclasses.FakeTensorMode():
        x, y = torch.ones(4, 5, 3), torch.ones(2)
        assert OPS.fresh(x).shape == x.shape
        assert OPS.example(x, 1).shape == (4, 3)
        assert shapes(OPS.grad([x], [y, x], [None])) == [(2,), (4, 5, 3)]
        assert shapes(OPS.jvp([x], [y], [y])) == [(4, 5, 3)]
        assert shapes(OPS.vmap([y, y], [y], [x], [1], [0, -1], "error")) == [(5, 2), (2, 5)]
        assert OPS.steps(torch.ones(3, dtype=torch.int64), 7).shape == (7, 3)
        data, h, c = OPS.recurrent(
            torch.ones(9, 3), x, x, [torch.ones(2, 4, 6)] * 2, [], "LSTM", True, 1, 0.0, False, True
        )
        assert shapes([data, h, c]) == [(9, 12), (2, 4, 6), (2, 4, 6)]
        targets = torch.ones(4, dtype=torch.int64)
        loss = OPS.cross_entropy_loss(torch.ones(4, 5), targets, None, 0, -100, 0.0)
        assert loss.shape == (4,)
        assert OPS.nll_loss_nd(torch.ones(4, 5), targets, None, 1, -100).shape == ()


def test_gradients_are_seen_to_pass():
    with torch._subclasses.FakeTensorMode():
        x = torch.ones(3, requires_grad=True)
        (g,) = OPS.grad([x.sum()], [x], [None])
        assert g.requires_grad
        with pytest.raises(NotImplementedError, match="differentiated by stretto alone"):
            g.sum().backward()


def test_sizes_of_values():
    assert not of_values(3)
