"""When a pack is divided; the loop itself is tested through ``fit``."""

import numpy as np
import pytest

import stretto as st
from stretto import optim
from stretto.ensemble import Trainer
from stretto.ensemble.training.loop import settled


def begun(**options):
    members = [{"w": np.float32(i), "b": np.float32(9)} for i in range(4)]
    e = st.Ensemble(lambda p, x: p["w"] * x + p["b"], members, **options)
    trainer = Trainer(lambda m, x: m(x).sum(), optim.sgd(0.1))
    return trainer.start(e, st.random.PRNGKey(0))


def with_active(state, active):
    return state.replace(packs=(state.packs[0].replace(active=st.numpy.array(active)),))


@pytest.mark.parametrize(
    ("active", "options", "left"),
    [
        ([True, True, True, False], {}, (0, 1, 2, 3)),
        ([False, True, True, False], {}, (1, 2)),
        ([False, False, False, True], {}, (3,)),
        ([True, True, True, False], {"shared": "b"}, (0, 1, 2)),
        ([False, False, False, False], {}, (0, 1, 2, 3)),
    ],
    ids=["most", "half", "one", "shared", "none"],
)
def test_when_a_pack_is_divided(active, options, left):
    state = settled(with_active(begun(**options), active))
    assert state.packs[0].group.places == left
    assert state.going == (any(active),)
    assert state.each("active").tolist() == active
