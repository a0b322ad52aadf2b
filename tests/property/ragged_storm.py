"""Random functions of examples that differ in length, beside each example by itself.

``make ragged-storm ARGS="--minutes 10 --seed 0"``. Each program maps a chain of functions over
ragged examples (attention of several kinds, recurrent layers both ways, norms, sums, products along
examples, loops over layers), in one call or in two with something between them, and takes a loss
and its gradients by weights and by the examples. All is in float64: compiled, with kernels, it is
held to the same functions of one example after the other, without. Exit status 1 after any
disagreement, each printed with its seed.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto import nn

__all__ = ["FUNCTIONS", "Case", "disagreement", "draw_case", "main"]

_HEADS, _WIDTH = 3, 8
_FEATURES = _HEADS * _WIDTH

Function = Callable[[Any, Any], Any]


def _heads(x: Any) -> Any:
    return x.reshape(x.shape[0], _HEADS, _WIDTH)


def _attend(q: Any, k: Any, v: Any, change: Callable[[Any], Any] = lambda scores: scores) -> Any:
    scores = change(snp.einsum("nhd,mhd->hnm", q, k) * 0.3)
    out = snp.einsum("hnm,mhd->nhd", nn.functional.softmax(scores, -1), v)
    return out.reshape(out.shape[0], _FEATURES)


def _of_three(change: Callable[[Any], Callable[[Any], Any]]) -> Function:
    return lambda w, x: _attend(*[_heads(x @ w[i]) for i in range(3)], change(x))


def _places(x: Any) -> Any:
    return snp.arange(x.shape[0])


def _distance(x: Any) -> Any:
    return snp.abs(_places(x)[:, None] - _places(x))


def _by_function(w: Any, x: Any) -> Any:
    q, k, v = [_heads(x @ w[i]).swapaxes(0, 1) for i in range(3)]
    mixed = nn.functional.scaled_dot_product_attention(q, k, v).swapaxes(0, 1)
    return mixed.reshape(x.shape[0], _FEATURES)


def _recurrent(reverse: bool) -> Function:
    def run(w: Any, x: Any) -> Any:
        def step(state: Any, row: Any) -> Any:
            h, c = state
            gates = row + h @ w[1]
            c = nn.functional.sigmoid(gates) * c + snp.tanh(gates) * 0.5
            h = snp.tanh(c) * nn.functional.sigmoid(gates + 1)
            return (h, c), h

        zeros = snp.zeros(_FEATURES)
        return st.lax.scan(step, (zeros, zeros), x @ w[0], reverse=reverse)[1]

    return run


def _layers(w: Any, x: Any) -> Any:
    plain = FUNCTIONS["attention"]
    return st.lax.scan(lambda x, k: (x + plain(w * k, x), None), x, snp.arange(1.0, 3.0))[0]


FUNCTIONS: dict[str, Function] = {
    "attention": _of_three(lambda x: lambda s: s),
    "causal": _of_three(
        lambda x: lambda s: snp.where(_places(x)[:, None] >= _places(x), s, -snp.inf)
    ),
    "windowed": _of_three(lambda x: lambda s: snp.where(_distance(x) < 6, s, -1e9)),
    "biased": _of_three(lambda x: lambda s: s + -0.1 * _distance(x)),
    "by a function": _by_function,
    "one head": lambda w, x: nn.functional.softmax(x @ x.T, -1) @ x,
    "of what all share": lambda w, x: _attend(_heads(x @ w[0]), _heads(w[1]), _heads(w[2])),
    "recurrent": _recurrent(False),
    "backwards": _recurrent(True),
    "loop over layers": _layers,
    "affine": lambda w, x: snp.tanh(x @ w[3]),
    "centred": lambda w, x: x - x.mean(0),
    "norm": lambda w, x: nn.functional.layer_norm(x, (_FEATURES,)),
    "running sum": lambda w, x: x + snp.cumsum(x, 0) * 0.01,
    "by places": lambda w, x: x * _places(x)[:, None] * 0.01,
    "shifted": lambda w, x: snp.concatenate([x[:1], x[:-1]]),
    "products along": lambda w, x: x @ (x.T @ x) * 1e-3,
}


class Case(NamedTuple):
    """A chain of functions, and what is made of its results."""

    functions: tuple[str, ...]
    first: int
    """How many are in the first call; the others are in a second one."""
    residual: bool
    between: str
    """Nothing, or ``sum``: the second call reads a sum over all that the first one gave."""
    loss: str
    """``mean``, or ``logarithm`` of it."""
    lengths: tuple[int, ...]
    seed: int

    @property
    def words(self) -> str:
        """The case in a line."""
        return ", ".join([f"{name} {value}" for name, value in self._asdict().items()])


def draw_case(seed: int) -> Case:
    """Draw functions, calls and lengths."""
    rng = random.Random(f"ragged {seed}")
    functions = tuple([rng.choice([*FUNCTIONS]) for _ in range(rng.randint(1, 4))])
    lengths = [rng.randint(1, 40) for _ in range(rng.randint(2, 6))]
    if rng.random() < 0.2:
        lengths[0] = rng.randint(200, 300)
    return Case(
        functions,
        rng.randint(1, len(functions)),
        rng.random() < 0.5,
        rng.choice(("", "sum")),
        rng.choice(("mean", "logarithm")),
        tuple(lengths),
        seed,
    )


def _chain(case: Case, names: Sequence[str]) -> Function:
    def run(w: Any, x: Any) -> Any:
        for name in names:
            new = FUNCTIONS[name](w, x)
            x = x + new if case.residual else new
        return x

    return run


def _loss(case: Case, every: Callable[..., Any], w: Any, words: Any) -> Any:
    """The loss, with what maps a function over all examples."""
    first, second = case.functions[: case.first], case.functions[case.first :]
    out = every(lambda x: _chain(case, first)(w, x), words)
    factor = 1.0
    if case.between:
        factor = 1 + 0.1 * every(lambda y: (y**2).mean(), out).sum()
    if second or case.between:
        out = every(lambda y: _chain(case, second)(w, y * factor), out)
    mean = every(lambda y: (y**2).mean(), out).mean()
    return snp.log(1 + mean) if case.loss == "logarithm" else mean


def _one_by_one(f: Callable[[Any], Any], words: Any) -> Any:
    outs = [f(x) for x in words]
    return outs if outs[0].ndim else snp.stack(outs)


def disagreement(case: Case) -> str:
    """What is wrong with the compiled loss and its gradients, or nothing."""
    with st.enable_x64(True):
        draw = np.random.default_rng(case.seed)
        w = draw.standard_normal((4, _FEATURES, _FEATURES)) * 0.2
        xs = [draw.standard_normal((n, _FEATURES)) for n in case.lengths]
        every = lambda f, words: st.vmap(f)(words)
        together = st.value_and_grad(lambda w, words: _loss(case, every, w, words), (0, 1))
        alone = st.value_and_grad(lambda w, words: _loss(case, _one_by_one, w, words), (0, 1))
        words = st.ragged(xs)
        value, (d_w, slope) = st.jit(together)(w, words)
        with st.config(kernels=False):
            expected, (by_w, by_x) = st.jit(alone)(w, list(map(snp.asarray, xs)))
        pairs = [(value, expected), (d_w, by_w), *zip(slope.like(words), by_x, strict=True)]
        greatest = max([np.abs(np.asarray(x)).max() for x in by_x])
        for n, (got, wanted) in enumerate(pairs):
            most = greatest if n > 1 else np.abs(np.asarray(wanted)).max()
            apart = np.abs(np.asarray(got) - np.asarray(wanted)).max()
            if not apart <= 1e-7 * (most + 1e-7):
                where = ("the value", "the gradient of weights")[n] if n < 2 else f"example {n - 2}"
                return f"{where} is {apart} off, of {most}"
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cases one after the other; 1 after any disagreement."""
    parser = argparse.ArgumentParser(prog="ragged_storm", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=10)
    given = parser.parse_args(arguments)
    end, seed, failed = time.monotonic() + 60 * given.minutes, given.seed, 0
    while time.monotonic() < end:
        case = draw_case(seed)
        wrong = disagreement(case)
        if wrong:
            failed += 1
            print(f"{wrong}: {case.words}", flush=True)
        seed += 1
    print(f"{seed - given.seed} cases, {failed} disagreements")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
