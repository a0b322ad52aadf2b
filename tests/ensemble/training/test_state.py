"""States divided and united again."""

import numpy as np

import stretto as st
from stretto import optim
from stretto.ensemble import Trainer
from stretto.ensemble.training.state import divided, united

KEY = st.random.PRNGKey(0)


def begun(count=4, **options):
    members = [{"w": np.full(2, i, np.float32), "b": np.float32(9)} for i in range(count)]
    e = st.Ensemble(lambda p, x: p["w"] * x + p["b"], members, **options)
    return Trainer(lambda m, x: m(x).sum(), optim.adam(0.1)).start(e, KEY)


def test_divided_and_united():
    state = begun(shared="b")
    (pack,) = state.packs
    on, off = divided(pack, [False, True, False, True])
    assert on.group.places == (1, 3) and off.group.places == (0, 2)
    assert on.shared["b"] == 9 and off.shared == {}
    np.testing.assert_array_equal(on.rows.own["w"], [[1, 1], [3, 3]])
    whole = united((on, off))
    assert whole.group == pack.group
    for x, y in zip(st.tree.leaves(whole), st.tree.leaves(pack), strict=True):
        np.testing.assert_array_equal(x, y)
    halves = state.replace(packs=(on,), finished=((off,),))
    assert halves.size == 4 and halves.each("number").tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(halves.ensemble(1.0), state.ensemble(1.0))
