"""Random numbers from keys: their distributions, and that equal keys give equal numbers."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.torch.table.aten_randomness import TABLE

KEY = st.random.key(3)


def drawn(op, *args, **kwargs):
    with st.nn.keys(KEY):
        return TABLE[op](*args, **kwargs)


@pytest.mark.parametrize(
    ("op", "args", "mean", "deviation"),
    [
        ("aten.rand.default", ((40, 50),), 0.5, 12**-0.5),
        ("aten.rand_like.default", (snp.ones((40, 50)),), 0.5, 12**-0.5),
        ("aten.randn.default", ((2000,),), 0, 1),
        ("aten.randn_like.default", (snp.ones(2000),), 0, 1),
        ("aten.bernoulli.p", (snp.ones(2000), 0.25), 0.25, (0.25 * 0.75) ** 0.5),
        ("aten.bernoulli.default", (snp.full(2000, 0.25),), 0.25, (0.25 * 0.75) ** 0.5),
        ("aten.exponential.default", (snp.ones(2000), 4.0), 0.25, 0.25),
        ("aten.normal_functional.default", (snp.ones(2000), 1.0, 3.0), 1, 3),
        ("aten.uniform.default", (snp.ones(2000), -1.0, 1.0), 0, 3**-0.5),
        ("aten.randint.low", (-3, 4, (2000,)), 0, 2),
        ("aten.randint.default", (7, (2000,)), 3, 2),
    ],
)
def test_distributions(op, args, mean, deviation):
    x = np.asarray(drawn(op, *args), np.float64)
    assert x.size == 2000
    np.testing.assert_array_equal(x, np.asarray(drawn(op, *args)))
    assert abs(x.mean() - mean) < 4 * deviation / 2000**0.5
    assert abs(x.std() - deviation) < 0.1 * deviation + 0.01


def test_permutations():
    assert sorted(np.asarray(drawn("aten.randperm.default", 50)).tolist()) == list(range(50))


def test_dropout():
    x = snp.ones(2000)
    out, kept = drawn("aten.native_dropout.default", x, 0.25, True)
    np.testing.assert_allclose(np.unique(out), [0, 4 / 3], rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(out) != 0, kept)
    assert abs(np.mean(kept) - 0.75) < 0.05
    assert set(np.unique(drawn("aten.dropout.default", x, 0.5, True)).tolist()) == {0.0, 2.0}
    same, all_ = TABLE["aten.native_dropout.default"](x, 0.5, False)
    assert same is x and bool(all_.all())
    nothing, none = TABLE["aten.native_dropout.default"](x, 1.0, True)
    assert not nothing.any() and not none.any()


def test_in_a_trace_it_is_said_how_to_give_a_key():
    with pytest.raises(RuntimeError, match="keys"):
        st.jit(lambda: TABLE["aten.rand.default"]((3,)))()
