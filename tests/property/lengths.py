"""Random programs whose arrays have an axis of any size, as text that any length can be given.

A program is a chain of operations on values of a few kinds: `rows` are [n, 3], a `line` is [n], a
`square` [n, n], `more` is [m, 3] for another size m that n decides, and `fixed` is [3]. One
operation, `each_row`, maps a random program of `writer` over the rows.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import stretto as st
import stretto.numpy as snp
from stretto import lax, nn
from tests.property import chains  # noqa: F401 (fills the table)
from tests.property.programs import namespace
from tests.property.writer import draw_program

__all__ = ["OPERATIONS", "Lengths"]

WIDTH = 3
softmax = nn.functional.softmax


def gram(x: Any) -> Any:
    """A positive definite matrix of the rows' products."""
    return x @ x.T / WIDTH + 2 * snp.eye(x.shape[0], dtype=x.dtype)


def convolved(x: Any) -> Any:
    """Each row and its neighbours, weighted."""
    kernel = snp.array([[[0.5, -0.2, 0.3]]] * WIDTH, x.dtype)
    return lax.conv_general_dilated(x.T[None], kernel, (1,), "SAME", feature_group_count=WIDTH)[0].T


OPERATIONS: dict[str, tuple[str, str, Callable[..., Any]]] = {
    # name: kinds of the operands, kind of the result, function
    "sine": ("rows", "rows", snp.sin),
    "centred": ("rows", "rows", lambda x: x - x.mean(0)),
    "scaled": ("rows", "rows", lambda x: x / snp.sqrt(x.var(0) + 1)),
    "softmax": ("rows", "rows", lambda x: softmax(x, 0)),
    "cumsum": ("rows", "rows", lambda x: snp.cumsum(x, 0)),
    "from the end": ("rows", "rows", lambda x: lax.cummax(x, 0, reverse=True)),
    "sort": ("rows", "rows", lambda x: snp.sort(x, 0)),
    "flip": ("rows", "rows", lambda x: x[::-1]),
    "roll": ("rows", "rows", lambda x: snp.roll(x, 2, 0)),
    "turn": ("rows", "rows", lambda x: snp.concatenate([x[1:], x[:1]])),
    "set first": ("rows", "rows", lambda x: x.at[0].set(0.5)),
    "add to last": ("rows fixed", "rows", lambda x, y: x.at[-1].add(y)),
    "scan": ("rows", "rows", lambda x: lax.scan(lambda c, r: (snp.tanh(c + r), c), x[0], x)[1]),
    "scan back": (
        "rows",
        "rows",
        lambda x: lax.scan(lambda c, r: (c * 0.5 + r, c), x[-1], x, reverse=True)[1],
    ),
    "map": ("rows", "line", lambda x: lax.map(lambda r: (r * r).sum(), x)),
    "convolution": ("rows", "rows", convolved),
    "pool": (
        "rows",
        "rows",
        lambda x: lax.reduce_window(x, -snp.inf, lax.max, (3, 1), (1, 1), ((1, 1), (0, 0))),
    ),
    "add": ("rows rows", "rows", lambda x, y: x + y),
    "multiply": ("rows rows", "rows", lambda x, y: x * y),
    "where": ("rows rows", "rows", lambda x, y: snp.where(x > 0.1003, y, x)),
    "attention": ("rows rows", "rows", lambda x, y: softmax(x @ y.T / 2, -1) @ y),
    "shift rows": ("rows fixed", "rows", lambda x, y: x + y),
    "weigh rows": ("rows line", "rows", lambda x, y: x * y[:, None]),
    "in order": ("rows line", "rows", lambda x, y: x[snp.argsort(y)]),
    "solve": ("rows", "rows", lambda x: snp.linalg.solve(gram(x), x)),
    "product": ("square rows", "rows", lambda m, x: m @ x / 4),
    "fit": ("more rows", "rows", lambda m, x: m[:1] + x),
    "gram": ("rows rows", "square", lambda x, y: x @ y.T),
    "outer": ("line line", "square", snp.outer),
    "tril": ("square", "square", snp.tril),
    "transposed": ("square", "square", lambda m: m.T),
    "cholesky": ("rows", "square", lambda x: snp.linalg.cholesky(gram(x))),
    "column": ("rows", "line", lambda x: x[:, 1]),
    "row sums": ("rows", "line", lambda x: x.sum(1)),
    "diagonal": ("square", "line", snp.diagonal),
    "row maxima": ("square", "line", lambda m: m.max(1)),
    "ranks": ("line", "line", lambda x: x * snp.argsort(x) / x.shape[0]),
    "positions": ("line", "line", lambda x: x - snp.arange(x.shape[0]) / x.shape[0]),
    "joined": ("rows rows", "more", lambda x, y: snp.concatenate([x, y])),
    "joined again": ("more rows", "more", lambda x, y: snp.concatenate([x, y, x[:1]])),
    "repeated": ("rows", "more", lambda x: snp.repeat(x, 2, 0)),
    "padded": ("rows", "more", lambda x: snp.pad(x, ((1, 2), (0, 0)), constant_values=0.5)),
    "every second": ("more", "more", lambda x: x[::2]),
    "first half": ("more", "more", lambda x: x[: (x.shape[0] + 1) // 2]),
    "sorted": ("more", "more", lambda x: snp.sort(x, 0)),
    "total": ("rows", "fixed", lambda x: x.sum(0)),
    "greatest": ("more", "fixed", lambda x: x.max(0)),
    "first and last": ("rows", "fixed", lambda x: x[0] - x[-1]),
    "mean": ("more", "fixed", lambda x: x.mean(0)),
    "median": ("rows", "fixed", lambda x: snp.median(x, 0)),
    "segments": (
        "rows",
        "fixed",
        lambda x: st.lax.segment_sum(x[:, 0], snp.arange(x.shape[0]) % WIDTH, WIDTH),
    ),
    "matrix": ("square line", "line", lambda m, x: m @ x / 4),
}

Step = tuple[str, Callable[..., Any], tuple[int, ...]]


class Lengths:
    """A program of rows, [n, 3], and weights, [3], for any n."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(f"lengths {seed}")
        self.seed = seed
        self.kinds = ["rows", "fixed"]
        self.steps: list[Step] = []
        wanted = rng.randint(3, 8)
        while len(self.steps) < wanted:
            name = rng.choice([*OPERATIONS, "each row", "each row"])
            takes, gives, function = (
                ("rows", "line", each_row(rng.randrange(500)))
                if name == "each row"
                else OPERATIONS[name]
            )
            places = [[i for i, k in enumerate(self.kinds) if k == kind] for kind in takes.split()]
            if all(places):
                chosen = tuple(rng.choices(p, range(1, len(p) + 1))[0] for p in places)
                self.steps.append((name, function, chosen))
                self.kinds.append(gives)

    def __call__(self, rows: Any, weights: Any) -> list[Any]:
        """The last three values."""
        values = [rows, weights]
        for _, function, places in self.steps:
            values.append(snp.tanh(function(*[values[i] for i in places])))
        return values[-3:]

    def __repr__(self) -> str:
        steps = [f"{name} of {places}" for name, _, places in self.steps]
        return f"program {self.seed}: {', '.join(steps)}"


def each_row(seed: int) -> Callable[..., Any]:
    """A random program of `writer`, mapped over rows; one number for each."""
    while True:
        block, way = draw_program(seed, 4)
        if way == "both" and "callback" not in block.source():  # Python would see padding
            break
        seed += 1
    program = namespace(block.source())["g0"]

    def one(row: Any) -> Any:
        args = []
        for v in block.params:
            x = snp.resize(row, v.shape)
            integers = snp.zeros(v.shape, int)
            args.append(integers if v.kind == "int" else x + 0.5j if v.kind == "complex" else x)
        outs = [snp.real(x).mean() for x in program(*args) if x.dtype.kind in "fc"]
        return sum(outs[1:], outs[0])

    return st.vmap(one)
