"""A recurrent network as a ``scan``: the adding problem.

A sequence holds random numbers, two of them marked; the network reads it step by step and must say
the sum of the marked ones. ``scan`` traces the cell once, however long the sequence, and its
derivative runs backwards through the same steps. Run it: ``python examples/rnn.py``.
"""

import stretto as st
import stretto.numpy as snp

tree = st.tree


def init(key, inputs=2, hidden=32):
    """Parameters of a gated recurrent unit and a linear output."""
    k1, k2, k3 = st.random.split(key, 3)
    return {
        "in": st.random.normal(k1, (inputs, 3 * hidden)) * inputs**-0.5,
        "state": st.random.normal(k2, (hidden, 3 * hidden)) * hidden**-0.5,
        "bias": snp.zeros(3 * hidden),
        "out": st.random.normal(k3, (hidden,)) * hidden**-0.5,
    }


def cell(params, h, x):
    """One step of a gated recurrent unit (Cho et al., 2014)."""
    from_x = snp.split(x @ params["in"] + params["bias"], 3)
    from_h = snp.split(h @ params["state"], 3)
    update = st.nn.sigmoid(from_x[0] + from_h[0])
    reset = st.nn.sigmoid(from_x[1] + from_h[1])
    candidate = snp.tanh(from_x[2] + reset * from_h[2])
    return update * h + (1 - update) * candidate


def predict(params, xs):
    """What the network says after reading the sequence ``xs``, (length, 2)."""
    h = snp.zeros(params["out"].shape)
    h, _ = st.lax.scan(lambda h, x: (cell(params, h, x), None), h, xs)
    return h @ params["out"]


def sample(key, length):
    """One sequence, and the sum of its two marked numbers."""
    for_numbers, for_marks = st.random.split(key)
    numbers = st.random.uniform(for_numbers, (length,))
    marked = st.random.permutation(for_marks, length) < 2
    return snp.stack([numbers, marked.astype(float)], 1), snp.sum(numbers * marked)


def loss(params, xs, ys):
    """The mean squared error over a batch of sequences."""
    return snp.mean((st.vmap(predict, (None, 0))(params, xs) - ys) ** 2)


def train(params, key, steps, length=20, batch=64, rate=3e-3):
    """Adam, fresh sequences at each step; the training loop is a ``scan`` too."""

    def step(state, i):
        params, m, v = state
        keys = st.random.split(st.random.fold_in(key, i), batch)
        xs, ys = st.vmap(lambda k: sample(k, length))(keys)
        value, g = st.value_and_grad(loss)(params, xs, ys)
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


def main(steps=1500):
    """Train, and say how far predictions are from the truth, compared with always saying 1."""
    key = st.random.key(0)
    start = init(st.random.fold_in(key, 1))
    run = st.jit(train, static_argnames="steps")
    _, history = run(start, st.random.fold_in(key, 2), steps)
    first, last = float(snp.mean(history[:20])), float(snp.mean(history[-20:]))
    print(f"mean squared error: {first:.3f} at first, {last:.4f} at last; always saying 1: 0.167")
    return first, last


if __name__ == "__main__":
    main()
