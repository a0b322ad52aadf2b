"""What is shown of modules."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from tests.pages import page_of, printed, text_in


def large():
    return nn.Sequential(
        *[nn.Sequential(nn.Linear(2, 2 + k), nn.Sequential(nn.Linear(2 + k, 2))) for k in range(30)]
    )


def test_small_modules_are_pytorchs_text():
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    assert (
        repr(model)
        == str(model)
        == (
            "Sequential(\n  (0): Linear(in_features=3, out_features=2, bias=True)\n  (1): ReLU()\n)"
        )
    )


def test_equal_neighbours_are_one():
    block = lambda: nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    model = nn.Sequential(*[block() for _ in range(12)], nn.Linear(2, 3))
    text = repr(model)
    assert text.count("\n") < 40 and "(0-11): 12 × Sequential(" in text and "(12): Linear(" in text
    assert "print(module)" not in text, "nothing was left out"
    assert str(model).count("Sequential(") == 13


def test_members_with_names_are_not_merged():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Sequential(*[nn.ReLU()] * 40)
            self.two = nn.Sequential(*[nn.ReLU()] * 40)

    assert "(one): Sequential(" in repr(Two()) and "(two): Sequential(" in repr(Two())


@pytest.mark.parametrize(
    "model",
    [
        large(),
        nn.Sequential(*[nn.Linear(1, 1 + k) for k in range(500)]),
        nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32), 6),
        nn.ModuleDict({f"layer{k}": nn.Linear(1, 1) for k in range(100)}),
    ],
)
def test_large_modules_stay_short(model):
    assert repr(model).count("\n") < 40 and str(model).count("\n") > 40
    is_whole = "6 ×" in repr(model)
    assert is_whole != repr(model).endswith("# print(module) shows all of it")
    page_of(model)
    assert printed(model).count("\n") <= 45


def test_a_repr_of_ones_own_is_kept():
    class Own(nn.Module):
        def __repr__(self):
            return "mine"

    class Within(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Own()

    assert repr(Own()) == str(Own()) == "mine"
    assert repr(Within()) == str(Within()) == "Within(\n  (inner): mine\n)"


def test_a_page_counts_parameters():
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).eval()
    text = text_in(model)
    assert "12 parameters" in text and "5 in buffers" in text and "in evaluation mode" in text
    assert "(0): Linear(in_features=3, out_features=2, bias=True) 8 parameters · 32 bytes" in text
    assert "weight: float32[2,3]" in text and "running_mean: float32[2] buffer" in text
    assert page_of(model).count("<details") == 3
    assert "12 parameters" in printed(model)


def test_names_are_escaped():
    class Evil(nn.Module):
        def extra_repr(self):
            return "<script>alert(1)</script>"

        def _get_name(self):
            return "<img src=x onerror=alert(1)>"

    text = text_in(nn.Sequential(Evil()))
    assert "<script>" in text and "<img src=x" in text


def test_modules_of_other_leaves():
    model = nn.Linear(3, 2)
    expected, pages = repr(model), []

    @st.jit
    def f(model):
        pages.append(text_in(model))
        assert repr(model) == expected
        return model

    f(model)
    assert "traced float32[2,3]" in pages[0]
    for leaf in (None, 3, "text", object()):
        other = st.tree.map(lambda x, leaf=leaf: leaf, model)
        assert "Linear" in text_in(other) and "Linear" in repr(other)
    model.weight.delete()
    assert "float32[2,3]" in text_in(model)
    axes = st.tree.map(lambda x: snp.asarray(x).shape, nn.Linear(3, 2))
    assert "Linear" in text_in(axes)
