"""IVON: Adam's kin that learns a variance for each weight, from gradients at draws of the weights.

With N examples, a prior of precision δ and a posterior N(m, 1/p), element by element, a step is

    θ = m + ε / √p                            a draw, at which the gradient g of the mean loss is
    p ← p (1 + x + x²/2),  x = (1 − β₂) (N g (θ − m) − 1 + δ/p)
    m ← m − η (N ḡ + δ m) / p                 with ḡ the mean of gradients, corrected for its start

which is the source's algorithm 1 with p = N (h + δ/N): N g (θ − m) − 1 is N/p times the difference
of its estimate ĥ = g (θ − m) p of the Hessian and h. The term x²/2 keeps p positive.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import stretto.numpy as snp
from stretto._engine.core import tree
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import brief
from stretto._engine.core.types import kind_of
from stretto._engine.core.typing import Array, Key, Tree
from stretto._engine.ops.convert import convert
from stretto.optim.base import (
    GradientTransformationExtraArgs,
    Scalar,
    ScalarOrSchedule,
    caller_of,
    check,
    columns,
    fill_like,
    first_count,
    leafwise,
    need_params,
    optimizer,
    running_mean,
    safe_increment,
    trained,
    unbias,
    wide,
)
from stretto.random import normal, split
from stretto.random.keys import as_key

__all__ = ["Ivon", "IvonState", "ivon"]


@brief
class IvonState(NamedTuple):
    """``count``, the updates done, int32; ``mean_gradient``, a tree; ``precision``, a tree.

    The precisions are those of the posterior, N (h + δ/N), of at least float32.
    """

    count: Array
    mean_gradient: Tree
    precision: Tree


class Ivon(GradientTransformationExtraArgs):
    """The transformation that ``ivon`` makes; ``sample`` draws weights, ``variance`` gives theirs.

    Args:
        init: ``init(params)`` gives an ``IvonState``.
        update: ``update(updates, state, params, draw=draw)`` gives the updates and the new state.
    """

    def sample(self, state: IvonState, params: Tree, key: Key) -> Tree:
        """Draw weights from N(params, 1 / precision); buffers and frozen ones stay.

        Args:
            state: the state.
            params: the means, a tree of arrays or a module.
            key: a PRNG key.

        Returns:
            A tree like ``params``, in its dtypes.

        Raises:
            ValueError: the state is that of other parameters.
            TypeError: ``key`` is not one key.

        >>> import stretto as st, stretto.numpy as snp
        >>> tx = ivon(0.1, data_size=4, prior_precision=1.0)
        >>> params = {"w": snp.zeros(10_000)}
        >>> draw = tx.sample(tx.init(params), params, st.random.key(0))
        >>> draw["w"].var().round(2)  # of precision 4 + 1
        Array(0.2, dtype=float32)
        """
        own, still = trained(params)
        pairs = {"params": own, "state.precision": state.precision}
        (means, precisions), _ = columns("ivon", pairs)
        keys = split(as_key(key, "ivon.sample"), max(len(means), 1))
        draws = iter([_drawn(*of) for of in zip(means, precisions, keys, strict=False)])
        leaves, spec = tree.flatten(params)
        return tree.unflatten(
            spec, [x if i in still else next(draws) for i, x in enumerate(leaves)]
        )

    def variance(self, state: IvonState) -> Tree:
        """Return the variance of each weight, 1 / precision.

        Args:
            state: the state.

        Returns:
            A tree like the parameters that are trained, of at least float32.

        >>> import stretto.numpy as snp
        >>> tx = ivon(0.1, data_size=4, prior_precision=1.0)
        >>> tx.variance(tx.init({"w": snp.zeros(2)}))
        {'w': Array([0.2, 0.2], dtype=float32)}
        """
        return tree.map(lambda p: 1 / p, state.precision)


def _drawn(mean: Array, precision: Array, key: Key) -> Array:
    mean = as_value(mean, "ivon", "a leaf of params")
    noise = normal(key, mean.shape, precision.dtype)
    return convert(wide(mean) + noise / snp.sqrt(precision), mean.dtype)


@optimizer
def ivon(
    learning_rate: ScalarOrSchedule,
    *,
    data_size: Scalar,
    prior_precision: Scalar,
    beta1: Scalar = 0.9,
    beta2: Scalar = 0.99999,
    hess_init: Scalar = 1.0,
) -> Ivon:
    """Improved variational online Newton: a Gaussian posterior for the cost of Adam.

    Gradients are those of the *mean* negative log likelihood of N examples, at a draw of the
    weights, which ``update`` is given, too. Write the loop: draw, gradient at the draw, update with
    the same draw. ``fit`` takes gradients at the parameters themselves, and is refused. Members of
    an ensemble are mapped, as here; each has means and variances of its own. The parameters become
    the means, 1 / ``precision`` the variances.

    Args:
        learning_rate: η, a number, an array of rank 0 or a schedule; steps are those of Newton's
            method, so that 1 goes to the mode of a parabola.
        data_size: N, the number of examples that the mean loss is over.
        prior_precision: δ, of the prior N(0, 1/δ) of each weight: N times the source's.
        beta1: the weight of the past in the mean of gradients.
        beta2: the weight of the past in h, near 1: variances settle in 1 / (1 − β₂) updates.
        hess_init: h before the first update, of the mean loss.

    Returns:
        The transformation, with ``sample`` and ``variance``.

    Raises:
        ValueError: a number is out of range; ``update`` is called without parameters or draw.
        TypeError: parameters are not real floats.

    Source: Shen et al., "Variational learning is effective for large deep networks", 2024
    (arXiv:2402.17641), algorithm 1.

    >>> import stretto as st, stretto.numpy as snp
    >>> x = snp.linspace(-1, 1, 20)
    >>> loss = lambda w: ((w * x - 2 * x) ** 2).mean() / 2
    >>> tx = ivon(0.1, data_size=20, prior_precision=1.0, beta2=0.99, hess_init=0.1)
    >>> def step(carry, key):
    ...     w, state = carry
    ...     draw = tx.sample(state, w, key)
    ...     updates, state = tx.update(st.grad(loss)(draw), state, w, draw=draw)
    ...     return (st.optim.apply_updates(w, updates), state), None
    >>> def train(w, key):
    ...     keys = st.random.split(key, 3_000)
    ...     w, state = st.lax.scan(step, (w, tx.init(w)), keys)[0]
    ...     return w, tx.variance(state)
    >>> keys = st.random.split(st.random.key(0), 3)
    >>> means, variances = st.jit(st.vmap(train))(snp.array([0.0, 1.0, -1.0]), keys)
    >>> precision = (x**2).sum() + 1  # of the posterior, whose mode is 2 (1 − 1 / precision)
    >>> bool((snp.abs(means - 2 * (1 - 1 / precision)) < 0.5).all())
    True
    >>> bool((snp.abs(variances * precision - 1) < 0.5).all())
    True
    """
    caller = caller_of("ivon")
    check(caller, least=0, schedules=True, learning_rate=learning_rate)
    check(caller, least=1, data_size=data_size)
    check(caller, above=0, prior_precision=prior_precision, hess_init=hess_init)
    check(caller, least=0, below=1, beta1=beta1, beta2=beta2)

    def init(params: Tree) -> IvonState:
        for path, x in zip(tree.paths(params, "params"), tree.leaves(params), strict=True):
            if kind_of(as_value(x, caller, path).dtype) != "float":
                raise TypeError(f"{caller}: {path} must be of real floats, got {as_value(x).dtype}")
        zeros = fill_like(params)
        first = lambda x: wide(x) + (data_size * hess_init + prior_precision)
        return IvonState(first_count(), zeros, tree.map(first, zeros))

    def update(
        updates: Tree, state: IvonState, params: Tree = None, *, draw: Tree = None, **extra: Any
    ) -> tuple[Tree, IvonState]:
        del extra
        need_params(params, caller)
        if draw is None:
            raise ValueError(
                f"{caller}: its update needs draw=, the weights that the gradient was taken at: "
                f"draw = tx.sample(state, params, key), then tx.update(gradient, state, params, "
                f"draw=draw). fit takes gradients at the parameters themselves, and cannot train "
                f"with ivon; its docstring has the loop for members"
            )
        count = safe_increment(state.count)
        rate: Any = learning_rate(state.count) if callable(learning_rate) else learning_rate
        debias = unbias(beta1, count)

        def rule(g: Array, mean: Array, p: Array, m: Array, theta: Array) -> tuple[Array, ...]:
            off: Any = data_size * g * (theta - m) - 1 + prior_precision / p
            off = (1 - beta2) * off
            p = p * (1 + off + off * off / 2)
            mean = running_mean(beta1, mean, g)
            return -rate * (data_size * debias * mean + prior_precision * m) / p, mean, p

        kept: dict[str, Tree] = {"mean_gradient": state.mean_gradient, "precision": state.precision}
        out, mean, precision = leafwise(caller, rule, updates, kept, params, draw=trained(draw)[0])
        return out, IvonState(count, mean, precision)

    made: Any = Ivon(init, update)
    return made
