"""What notebooks, terminals and ``repr`` show of an artifact."""

import numpy as np

import stretto as st
import stretto.numpy as snp


def test_the_text():
    w = snp.array(np.arange(6.0).reshape(2, 3))
    artifact = st.export.program(
        lambda x: {"y": snp.sin(x @ w)}, snp.ones((4, 2)), dynamic_axes=({0: "n"},)
    )
    assert repr(artifact).split("\n") == [
        "Artifact function",
        "  x: float32[n,2]",
        "  -> y: float32[n,3]",
        "  2 operations, any size n, weights of 24 bytes",
    ]


def test_guards_are_said():
    artifact = st.export.program(
        lambda x: st.lax.slice(x, (2,), (5,)), snp.ones(10), dynamic_axes=({0: "n"},)
    )
    assert "any size n, where " in repr(artifact)


def test_many_arguments_are_left_out():
    artifact = st.export.program(lambda xs: xs, list(range(100)))
    assert "  ... 80 more" in repr(artifact)
    assert len(repr(artifact).split("\n")) < 50


def test_the_card():
    model = st.nn.Linear(2, 3)
    html = st.export.program(model, snp.ones((4, 2)))._repr_html_()
    for words in ("Artifact Linear", "weights", "weight: ", "float32[3,2]", "<details"):
        assert words in html
