"""Pictures of what ensembles know: where they agree, where they do not, and how they learn.

Each function trains a small ensemble and draws one figure. They are the pictures of
``docs/gallery.md``; to make them anew: ``python examples/gallery.py docs/images``.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import stretto as st
import stretto.numpy as snp
from stretto import nn, optim

BLUE, ORANGE, GREY = "#1f6fb4", "#d9730d", "#8a8a8a"


def network(inputs, width, outputs):
    """A function of a key that makes a network with two hidden layers."""

    def new(key):
        a, b, c = st.random.split(key, 3)
        return nn.Sequential(
            *(nn.Linear(inputs, width, key=a), nn.Tanh()),
            *(nn.Linear(width, width, key=b), nn.Tanh()),
            nn.Linear(width, outputs, key=c),
        )

    return new


def axes(width=6.0, height=3.2):
    """An empty figure, and its axes without a box."""
    figure = Figure(figsize=(width, height), dpi=110, layout="constrained")
    drawn = figure.subplots()
    drawn.spines[["top", "right"]].set_visible(False)
    return figure, drawn


def sine(epochs=300):
    """Twenty networks on noisy points of a sine: they agree where there was data."""
    draw, noise, start, order = st.random.split(st.random.key(0), 4)
    x = st.random.uniform(draw, (60, 1), minval=-3.0, maxval=3.0)
    x = snp.where(x > 0.8, x * 0.4 + 1.8, x)  # with a gap
    y = snp.sin(x) + 0.1 * st.random.normal(noise, x.shape)
    ensemble = st.Ensemble.init(network(1, 32, 1), start, 20)
    ensemble.fit(
        lambda model, x, y: ((model(x) - y) ** 2).mean(),
        (x, y),
        optim.adam(1e-2),
        epochs=epochs,
        order="bootstrap",
        key=order,
        progress=False,
    )
    at = np.linspace(-6, 6, 200, dtype=np.float32)
    lines = np.asarray(ensemble(at[:, None]))[:, :, 0]
    figure, drawn = axes()
    mean, spread = lines.mean(0), lines.std(0)
    drawn.fill_between(at, mean - 2 * spread, mean + 2 * spread, color=BLUE, alpha=0.15, lw=0)
    drawn.plot(at, lines.T, color=BLUE, alpha=0.25, lw=0.7)
    drawn.plot(at, mean, color=BLUE, lw=2, label="mean of 20 networks")
    drawn.plot(x[:, 0], y[:, 0], "o", color=ORANGE, ms=3.5, label="data")
    drawn.set(ylim=(-2.6, 2.6), xlabel="x")
    drawn.legend(frameon=False, loc="upper left")
    return figure, spread


def moons(epochs=80):
    """Sixteen classifiers of two moons: how much they disagree, over the plane."""
    turn, noise, start, order = st.random.split(st.random.key(1), 4)
    angle = st.random.uniform(turn, (160,), minval=0.0, maxval=snp.pi)
    upper = snp.arange(160) % 2 == 0
    x = snp.where(upper, snp.cos(angle), 1 - snp.cos(angle))
    y = snp.where(upper, snp.sin(angle), 0.4 - snp.sin(angle))
    points = snp.stack([x, y], 1) + 0.12 * st.random.normal(noise, (160, 2))
    labels = upper.astype(snp.int32)
    ensemble = st.Ensemble.init(network(2, 32, 2), start, 16)
    ensemble.fit(
        lambda model, x, y: nn.functional.cross_entropy(model(x), y),
        (points, labels),
        optim.adam(1e-2),
        epochs=epochs,
        order="bootstrap",
        key=order,
        progress=False,
    )
    across, up = np.linspace(-3, 4, 120), np.linspace(-2.5, 2.9, 90)
    grid = np.stack(np.meshgrid(across, up), -1).astype(np.float32)
    unsure = np.asarray(st.ensemble.mutual_information(nn.softmax(ensemble(grid), -1)))
    figure, drawn = axes(6.0, 4.2)
    shown = drawn.pcolormesh(across, up, unsure, cmap="Blues", shading="gouraud", rasterized=True)
    figure.colorbar(shown, label="disagreement (nats)")
    for name, where, color in (("upper", upper, ORANGE), ("lower", ~upper, GREY)):
        drawn.plot(*np.asarray(points)[np.asarray(where)].T, "o", ms=3.5, color=color, label=name)
    drawn.legend(frameon=False, loc="upper left")
    return figure, unsure


def rates(epochs=60):
    """Forty learning rates tried at once: the loss of each, epoch by epoch."""
    draw, start, order = st.random.split(st.random.key(2), 3)
    x = st.random.normal(draw, (256, 4))
    y = snp.sin(x.sum(1, keepdims=True))
    tried = np.geomspace(1e-4, 3e-1, 40)
    ensemble = st.Ensemble.init(network(4, 32, 1), start, len(tried))
    fitted = ensemble.fit(
        lambda model, x, y: ((model(x) - y) ** 2).mean(),
        (x, y),
        optim.adam,
        hyperparams={"learning_rate": tried},
        epochs=epochs,
        key=order,
        progress=False,
    )
    losses = fitted.history["loss"]
    figure, drawn = axes()
    for epoch, alpha in ((0, 0.25), (len(losses) // 6, 0.5), (len(losses) - 1, 1.0)):
        drawn.loglog(tried, losses[epoch], color=BLUE, alpha=alpha, label=f"epoch {epoch + 1}")
    drawn.set(xlabel="learning rate of the member", ylabel="loss")
    drawn.legend(frameon=False)
    return figure, losses


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for draw in (sine, moons, rates):
        draw()[0].savefig(folder / f"gallery-{draw.__name__}.png")
