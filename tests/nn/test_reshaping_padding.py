"""Layers that pad: PyTorch's figures, settings, messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from tests.nn.figures import layer_digests, names, same, with_numbers

# Class, arguments, inputs; the names in state_dict; PyTorch's digests (``tests.nn.figures``).
CASES = [
    ("ZeroPad1d", (2,), {}, [(2, 3, 4)], [], [(2, 3, 8), -2.38503, 0.44653]),
    ("ZeroPad2d", ((1, 2, 0, -1),), {}, [(2, 3, 4)], [], [(2, 2, 7), -1.69664, 0.72387]),
    ("ZeroPad3d", (1,), {}, [(1, 2, 2, 3, 2)], [], [(1, 2, 4, 5, 4), -3.82399, 2.27239]),
    ("ConstantPad1d", ((1, 2), 1.5), {}, [(2, 3, 4)], [], [(2, 3, 7), 1.82036, 0.13762]),
    ("ConstantPad2d", (1, 1.5), {}, [(2, 3, 4)], [], [(2, 5, 6), -7.78784, -0.07376]),
    ("ConstantPad3d", (1, 1.5), {}, [(1, 2, 2, 3, 2)], [], [(1, 2, 4, 5, 4), -3.07935, 2.27239]),
    ("ReflectionPad1d", (2,), {}, [(2, 3, 4)], [], [(2, 3, 8), -5.90285, 7.33031]),
    ("ReflectionPad2d", ((1, 2, 0, 1),), {}, [(2, 3, 4)], [], [(2, 4, 7), 9.88007, 0.96872]),
    ("ReflectionPad3d", (1,), {}, [(1, 2, 2, 3, 2)], [], [(1, 2, 4, 5, 4), -1.65086, 3.08487]),
    ("ReplicationPad1d", (2,), {}, [(2, 3, 4)], [], [(2, 3, 8), -2.11029, 1.57147]),
    ("ReplicationPad2d", ((1, 2, 0, 1),), {}, [(2, 3, 4)], [], [(2, 4, 7), 7.9184, 2.73025]),
    ("ReplicationPad3d", (1,), {}, [(1, 2, 2, 3, 2)], [], [(1, 2, 4, 5, 4), -18.79423, -1.98169]),
    ("CircularPad1d", (2,), {}, [(2, 3, 4)], [], [(2, 3, 8), -2.07564, 2.53994]),
    ("CircularPad2d", ((1, 2, 0, 1),), {}, [(2, 3, 4)], [], [(2, 4, 7), -3.22063, 0.35387]),
    ("CircularPad3d", (1,), {}, [(1, 2, 2, 3, 2)], [], [(1, 2, 4, 5, 4), -2.37554, 6.50844]),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, args, settings, inputs, keys, want = case
    layer = with_numbers(name, args, settings)
    assert list(layer.state_dict()) == keys
    for run in (lambda f: f, st.jit):
        same(layer_digests(layer, inputs, run)[0], want)


def test_settings():
    assert nn.ZeroPad2d(1).padding == (1, 1, 1, 1)
    assert nn.ZeroPad2d([1, 2, 3, 4]).padding == (1, 2, 3, 4)
    assert repr(nn.ReflectionPad1d((1, 2))) == "ReflectionPad1d((1, 2))"
    assert repr(nn.ConstantPad1d(1, 2.5)) == "ConstantPad1d(padding=(1, 1), value=2.5)"


def test_compiled_and_mapped():
    x = st.random.normal(st.random.PRNGKey(0), (3, 2, 4, 4))
    layer = nn.CircularPad2d((1, 2, 0, 3))
    np.testing.assert_array_equal(st.jit(st.vmap(layer))(x), np.stack([layer(v) for v in x]))


def test_messages():
    with pytest.raises(ValueError, match="ZeroPad2d: padding must be a number or 4"):
        nn.ZeroPad2d((1, 2))
    with pytest.raises(ValueError, match=r"ReflectionPad2d\(\(1, 1, 1, 1\)\): expected input"):
        nn.ReflectionPad2d(1)(snp.ones((3, 3)))
    with pytest.raises(ValueError, match="can add at most 2 elements"):
        nn.ReflectionPad1d(3)(snp.ones((1, 3)))
