"""Words that tell two trainings apart."""

import numpy as np

import stretto as st
from stretto import optim
from stretto.ensemble import Trainer
from stretto.ensemble.training.checkpoints import configuration_of
from stretto.ensemble.training.fit_arguments import planned, types_of

X = np.linspace(-1, 1, 10, dtype=np.float32)


SGD = optim.sgd(0.1)


def of(optimizer=SGD, data=(X, X), **settings):
    loss = lambda member, x, y: ((member(x) - y) ** 2).mean()
    e = st.Ensemble(lambda p, x: p["w"] * x, [{"w": np.float32(i)} for i in range(2)])
    trainer = Trainer(loss, optimizer)
    plan, first, data = planned(loss, data, None, 5, 2, 1.0, None, False, None)
    state = trainer.start(e, st.random.key(0))
    example = types_of(first, 2)
    state = state.replace(sums=(trainer.no_sums(state.packs[0], example, True),))
    return configuration_of(trainer, state, [example], True, data, None, order=plan, **settings)


def differing(**changed):
    one, other = of(), of(**changed)
    return {n for n in {**one, **other} if one.get(n) != other.get(n)}


def test_what_differs():
    assert differing() == set()
    program = "architecture 0, program of a step (loss, optimizer, model)"
    assert differing(optimizer=optim.sgd(0.2)) == {program}
    assert differing(data=(X, -X)) == {"data"}
    assert differing(evaluate_every=3) == {"evaluate_every"}
