"""Learning to learn (MAML): parameters from which one gradient step fits a new task.

The loss of a task is taken after a step of its own, and its gradient goes through that step: a
gradient of a gradient. Tasks are independent, so they are one ``vmap``. The tasks are sines of
random size and phase, ten points to learn from and ten to be judged by. Source: Finn, Abbeel and
Levine (2017), Model-agnostic meta-learning. Run it: ``python examples/maml.py``.
"""

import stretto as st
import stretto.numpy as snp

tree = st.tree
POINTS, RATE = 10, 0.01


def init(key, sizes=(1, 40, 40, 1)):
    """Weights of a small network."""
    keys = st.random.split(key, len(sizes) - 1)
    return [
        {"w": st.random.normal(k, (n, m)) * n**-0.5, "b": snp.zeros(m)}
        for k, n, m in zip(keys, sizes, sizes[1:], strict=False)
    ]


def predict(params, x):
    """The network's outputs at points ``x``."""
    *hidden, last = params
    for layer in hidden:
        x = st.nn.relu(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]


def loss(params, x, y):
    """The mean squared error."""
    return snp.mean((predict(params, x) - y) ** 2)


def adapt(params, x, y):
    """The parameters after one step on a task's own points."""
    return tree.map(lambda p, g: p - RATE * g, params, st.grad(loss)(params, x, y))


def after_adapting(params, task):
    """A task's loss on its second points, after a step on its first."""
    x, y = task
    return loss(adapt(params, x[:POINTS], y[:POINTS]), x[POINTS:], y[POINTS:])


def mean_after_adapting(params, tasks):
    """The same, for many tasks at once."""
    return snp.mean(st.vmap(after_adapting, (None, 0))(params, tasks))


def sample_task(key):
    """Points of a sine of random size and phase."""
    for_size, for_phase, for_x = st.random.split(key, 3)
    size = st.random.uniform(for_size, minval=0.1, maxval=5.0)
    phase = st.random.uniform(for_phase, maxval=snp.pi)
    x = st.random.uniform(for_x, (2 * POINTS, 1), minval=-5.0, maxval=5.0)
    return x, size * snp.sin(x - phase)


def sample_tasks(key, count):
    """Many of them."""
    return st.vmap(sample_task)(st.random.split(key, count))


def train(params, key, steps, tasks=25, rate=1e-3):
    """Adam on the loss after adapting; the whole training is one program."""

    def step(state, i):
        params, m, v = state
        batch = sample_tasks(st.random.fold_in(key, i), tasks)
        value, g = st.value_and_grad(mean_after_adapting)(params, batch)
        t = i + 1.0
        m = tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        params = tree.map(
            lambda p, m, v: p - rate * (m / (1 - 0.9**t)) / (snp.sqrt(v / (1 - 0.999**t)) + 1e-8),
            params,
            m,
            v,
        )
        return (params, m, v), value

    zeros = tree.map(snp.zeros_like, params)
    (params, _, _), history = st.lax.scan(step, (params, zeros, zeros), snp.arange(steps))
    return params, history


def main(steps=3000):
    """Train, and compare with the parameters before on tasks not seen."""
    key = st.random.key(0)
    start = init(st.random.fold_in(key, 1))
    trained, _ = st.jit(train, static_argnames="steps")(start, st.random.fold_in(key, 2), steps)
    unseen = sample_tasks(st.random.fold_in(key, 3), 200)
    before, after = (float(mean_after_adapting(p, unseen)) for p in (start, trained))
    print(f"loss on 200 new tasks after one step: {before:.3f} untrained, {after:.3f} trained")
    return before, after


if __name__ == "__main__":
    main()
