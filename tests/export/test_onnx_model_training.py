"""Training in onnxruntime: outputs named after the inputs that they replace, fed back by name."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn, optim
from tests.export.running import exported, session

X = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
Y = np.arange(8, dtype="int32") % 3
STEPS = 20

OPTIMIZERS = {
    "sgd": lambda: optim.sgd(0.1, momentum=0.9, nesterov=True),
    "adam": lambda: optim.adam(0.02),
    "adamw": lambda: optim.adamw(0.02, weight_decay=0.1),
    "clipped": lambda: optim.chain(
        optim.clip_by_global_norm(0.5), optim.adam(optim.cosine_decay_schedule(0.02, 30))
    ),
}


def make(key):
    """A network that draws in train mode, and normalizes; no bias that only rounding moves."""
    first, second = st.random.split(key)
    return nn.Sequential(
        nn.Linear(3, 8, bias=False, key=first),
        nn.BatchNorm1d(8),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(8, 3, key=second),
    )


def loss(model, x, y):
    return nn.functional.cross_entropy(model(x), y)


def inputs(model, values):
    """The arrays that a model takes, by name, of a tree of arguments."""
    names = [i.name for i in model.graph.input]
    return dict(
        zip(names, [np.asarray(snp.asarray(x)) for x in st.tree.leaves(values)], strict=True)
    )


def trained(model, values, output, per_step=lambda step: {}):
    """What an output is in each step, where each ``new_`` output goes to the input of its name."""
    running = session(model)
    feeds = inputs(model, values)
    outputs = [o.name for o in running.get_outputs()]
    replaced = {name: name.removeprefix("new_") for name in outputs if name.startswith("new_")}
    assert replaced and set(replaced.values()) <= set(feeds)
    found = []
    for step in range(STEPS):
        results = dict(zip(outputs, running.run(None, {**feeds, **per_step(step)}), strict=True))
        feeds |= {place: results[name] for name, place in replaced.items()}
        found.append(results[output])
    return np.array(found)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_twenty_steps_with_dropout_and_batch_statistics(name):
    optimizer = OPTIMIZERS[name]()

    def step(model, state, key, x, y):
        def value(model):
            with nn.keys(key):
                out, model = nn.stateful_call(model, x)
            return nn.functional.cross_entropy(out, y), model

        (value_now, new), slopes = st.value_and_grad(value, has_aux=True)(model)
        updates, state = optimizer.update(slopes, state, model)
        return optim.apply_updates(new, updates), state, value_now

    model = make(st.random.key(0)).train()
    state = optimizer.init(model)
    keys = st.random.split(st.random.key(1), STEPS)
    words = np.asarray(st.random.key_data(keys))
    axes = (None, None, None, {0: "batch"}, {0: "batch"})
    file = exported(step, model, state, keys[0], X, Y, dynamic_axes=axes)
    got = trained(file, (model, state, keys[0], X, Y), "out[2]", lambda k: {"key.words": words[k]})
    ours, want = st.jit(step), []
    for k in range(STEPS):
        model, state, value = ours(model, state, keys[k], X, Y)
        want.append(float(value))
    np.testing.assert_allclose(got, want, rtol=1e-4)
    assert len(set(got.tolist())) == STEPS


def test_ten_members_in_one_file():
    ensemble = st.Ensemble.init(make, st.random.key(2), 10).train()
    optimizer = optim.adamw(0.02)

    def step(ensemble, state, key, x, y):
        def total(ensemble):
            out, new = ensemble.stateful_call(x, key=key)
            each = st.vmap(lambda logits: nn.functional.cross_entropy(logits, y))(out)
            return each.sum(), (new, each)

        (_, (new, each)), slopes = st.value_and_grad(total, has_aux=True)(ensemble)
        updates, state = optimizer.update(slopes, state, ensemble)
        return optim.apply_updates(new, updates), state, each

    state, key = optimizer.init(ensemble), st.random.key(3)
    file = exported(step, ensemble, state, key, X, Y)
    got = trained(file, (ensemble, state, key, X, Y), "out[2]")
    ours, want = st.jit(step), []
    for _ in range(STEPS):
        ensemble, state, each = ours(ensemble, state, key, X, Y)
        want.append(np.asarray(each))
    assert got.shape == (STEPS, 10)
    np.testing.assert_allclose(got, want, rtol=1e-4)


def test_the_step_of_a_trainer():
    """Its state holds Python's numbers, and keys, and is replaced all the same."""
    trainer = st.ensemble.Trainer(loss, optim.adam(0.02))
    state = trainer.start(st.Ensemble.init(make, st.random.key(4), 10), st.random.key(5))
    file = exported(trainer.step, state, (X, Y))
    got = trained(file, (state, (X, Y)), "out[1]['loss']")
    want = []
    for _ in range(STEPS):
        state, metrics = trainer.step(state, (X, Y))
        want.append(np.asarray(metrics["loss"]))
    np.testing.assert_allclose(got, want, rtol=1e-4)
    assert want[-1].mean() < want[0].mean()
