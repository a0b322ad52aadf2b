"""The form of a convolution follows from its geometry, and its lowering writes that form."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.ops.convolution.formulation import formulation

CASES = {
    # image, kernel, groups, dtype: name, a word of the reason, convolutions in the text
    "plain": ((2, 8, 9, 9), (4, 8, 3, 3), 1, "float32", "XLA's convolution", "no groups", 1),
    "one element": ((2, 8, 9, 9), (4, 8, 1, 1), 1, "float32", "windows in one product", "over", 0),
    "few outputs": ((2, 32, 9, 9), (3, 32, 3, 3), 1, "float32", "elements, then", "few", 0),
    "few inputs": ((2, 3, 9, 9), (4, 3, 3, 3), 1, "float32", "windows in one product", "few", 0),
    "depthwise": ((2, 8, 9, 9), (8, 1, 3, 3), 8, "float32", "sum of shifted slices", "few", 0),
    "wide groups": ((2, 32, 9, 9), (16, 16, 3, 3), 2, "float32", "groups written out", "2 gr", 2),
    "many groups": ((1, 520, 5, 5), (65, 8, 3, 3), 65, "float32", "XLA's convolution", "65 gr", 1),
    "many terms": ((1, 2, 20, 20), (2, 1, 12, 12), 2, "float32", "XLA's convolution", "144", 1),
    "few positions": ((2, 5, 7, 7), (4, 5, 7, 7), 1, "float32", "positions in one", "few ex", 0),
    "large kernel": ((2, 3, 2, 2), (4, 3, 5, 5), 1, "float32", "windows in one product", "im", 0),
    "integers": ((2, 3, 2, 2), (4, 3, 5, 5), 1, "int32", "XLA's convolution", "integers", 1),
    "empty": ((0, 3, 9, 9), (4, 3, 3, 3), 1, "float32", "zeros", "nothing", 0),
}


@pytest.mark.parametrize("case", CASES)
def test_by_geometry(case):
    image, kernel, groups, dtype, name, why, count = CASES[case]
    x, w = snp.ones(image, dtype), snp.ones(kernel, dtype)
    conv = lambda x, w: lax.conv_general_dilated(
        x, w, (1, 1), [(2, 2), (2, 2)], feature_group_count=groups
    )
    (equation,) = st.make_graph(conv)(x, w).equations
    chosen = formulation(equation.primitive, x.type, w.type, equation.outputs[0].type)
    assert chosen.name.startswith(name)
    assert why in chosen.reason
    assert st.jit(conv).lower(x, w).as_text().count("stablehlo.convolution") == count


def test_the_batch_in_groups():
    """The gradient of a depthwise convolution by its kernel has the form of few positions."""
    x, w = snp.ones((2, 8, 9, 9)), snp.ones((8, 1, 3, 3))
    loss = lambda w: lax.conv_general_dilated(x, w, (1, 1), "VALID", feature_group_count=8).sum()
    graph = st.make_graph(st.grad(loss))(w)
    back = [e for e in graph.equations if getattr(e.primitive, "batch_groups", 1) > 1]
    names = []
    for equation in back:
        lhs, rhs = [a.type for a in equation.inputs]
        names.append(formulation(equation.primitive, lhs, rhs, equation.outputs[0].type).name)
    assert names == ["sum of shifted slices"]
