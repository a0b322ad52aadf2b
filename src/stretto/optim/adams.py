"""Optimizers of Adam's family.

Each is a ``chain`` of transformations, the last of which is the learning rate.
"""

from __future__ import annotations

from stretto._engine.core.boundary import bounded
from stretto._engine.core.typing import DTypeLike
from stretto.optim.base import (
    GradientTransformationExtraArgs,
    Mask,
    Scalar,
    ScalarOrSchedule,
    optimizer,
)
from stretto.optim.combining import chain
from stretto.optim.moments import (
    scale_by_adam,
    scale_by_adamax,
    scale_by_amsgrad,
    scale_by_belief,
    scale_by_radam,
    scale_by_yogi,
)
from stretto.optim.scaling import add_decayed_weights, scale_by_learning_rate

__all__ = [
    "adabelief",
    "adam",
    "adamax",
    "adamaxw",
    "adamw",
    "amsgrad",
    "nadam",
    "nadamw",
    "radam",
    "yogi",
]


@bounded
@optimizer
def adam(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Adam: −learning_rate · m̂ / (√(v̂ + eps_root) + eps).

    m and v are running means of the gradients and of their squares, and m̂ and v̂ those over 1 −
    b1ᵗ and 1 − b2ᵗ.

    Args:
        nesterov: take m̂ of the step to come, as ``nadam``.

    Raises:
        ValueError: a number is out of its range, or an array has axes (see ``per_member``).

    Source: Kingma and Ba, "Adam: a method for stochastic optimization", 2015, algorithm 1; with
    ``nesterov``, Dozat, "Incorporating Nesterov momentum into Adam", 2016.

    >>> import stretto as st, stretto.numpy as snp
    >>> params = {"w": snp.array([1.0, -2.0])}
    >>> tx = adam(0.1)
    >>> state = tx.init(params)
    >>> grads = st.grad(lambda p: snp.sum(p["w"] ** 2))(params)
    >>> updates, state = tx.update(grads, state, params)
    >>> snp.round(st.optim.apply_updates(params, updates)["w"], 3)
    Array([ 0.9, -1.9], dtype=float32)
    """
    return chain(
        scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        scale_by_learning_rate(learning_rate),
    )


@bounded
@optimizer
def adamw(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: Mask | None = None,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Adam with decoupled weight decay: −learning_rate · (Adam's direction + weight_decay · p).

    ``update`` needs ``params``.

    Args:
        weight_decay: a number, an array of rank 0 or a schedule. PyTorch's default is 0.01.

    Raises:
        ValueError: as ``adam``; or ``update`` is called without parameters.

    Source: Loshchilov and Hutter, "Decoupled weight decay regularization", 2019, algorithm 2.

    >>> import stretto.numpy as snp
    >>> tx = adamw(0.1, weight_decay=0.5)
    >>> params = {"w": snp.array([10.0])}
    >>> updates, _ = tx.update({"w": snp.array([3.0])}, tx.init(params), params)
    >>> snp.round(updates["w"], 3)
    Array([-0.6], dtype=float32)
    """
    return chain(
        scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


@bounded
@optimizer
def nadam(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = True,
) -> GradientTransformationExtraArgs:
    """``adam`` with Nesterov's look ahead.

    Raises:
        ValueError: a number is out of its range, or an array has axes (see ``per_member``).

    Source: Dozat, "Incorporating Nesterov momentum into Adam", 2016, with b1 the same at all steps.

    >>> import stretto.numpy as snp
    >>> tx = nadam(0.1)
    >>> updates, _ = tx.update({"w": snp.array([3.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3)
    Array([-0.147], dtype=float32)
    """
    return adam(learning_rate, b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov)


@optimizer
def nadamw(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: Mask | None = None,
    *,
    nesterov: bool = True,
) -> GradientTransformationExtraArgs:
    """``adamw`` with Nesterov's look ahead; ``update`` needs ``params``.

    Raises:
        ValueError: as for ``adamw``.

    >>> import stretto.numpy as snp
    >>> tx = nadamw(0.1, weight_decay=0.0)
    >>> updates, _ = tx.update({"w": snp.array([3.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3)
    Array([-0.147], dtype=float32)
    """
    return adamw(
        learning_rate, b1, b2, eps, eps_root, mu_dtype, weight_decay, mask, nesterov=nesterov
    )


@optimizer
def amsgrad(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
    bias_correction_mu: bool = True,
    bias_correction_nu: bool = True,
) -> GradientTransformationExtraArgs:
    """Adam whose v̂ never falls.

    Raises:
        ValueError: as ``adam``.

    Source: Reddi, Kale and Kumar, "On the convergence of Adam and beyond", 2018, algorithm 2, which
    has no corrections: give False for both.

    >>> import stretto.numpy as snp
    >>> tx = amsgrad(0.1)
    >>> updates, _ = tx.update({"w": snp.array([3.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3)
    Array([-0.1], dtype=float32)
    """
    return chain(
        scale_by_amsgrad(b1, b2, eps, eps_root, mu_dtype, bias_correction_mu, bias_correction_nu),
        scale_by_learning_rate(learning_rate),
    )


@bounded
@optimizer
def radam(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    threshold: Scalar = 5.0,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Rectified Adam, which scales by v̂ only where that is known well enough.

    Args:
        threshold: from which length ρ of the mean v̂ counts as known; at least 4.

    Raises:
        ValueError: as ``adam``, or the threshold is below 4.

    Source: Liu et al., "On the variance of the adaptive learning rate and beyond", 2020, algorithm
    2.

    >>> import stretto.numpy as snp
    >>> tx = radam(0.1)
    >>> updates, _ = tx.update({"w": snp.array([3.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3)
    Array([-0.3], dtype=float32)
    """
    return chain(
        scale_by_radam(b1, b2, eps, eps_root, threshold, nesterov=nesterov),
        scale_by_learning_rate(learning_rate),
    )


@bounded
@optimizer
def adamax(
    learning_rate: ScalarOrSchedule, b1: Scalar = 0.9, b2: Scalar = 0.999, eps: Scalar = 1e-8
) -> GradientTransformationExtraArgs:
    """Adam with the infinity norm of past gradients in place of the root of v̂.

    Args:
        b2: the weight of the past in the norm.
        eps: added to the size of the gradient.

    Raises:
        ValueError: a number is out of its range, or an array has axes (see ``per_member``).

    Source: Kingma and Ba, "Adam: a method for stochastic optimization", 2015, algorithm 2.

    >>> import stretto.numpy as snp
    >>> tx = adamax(0.1)
    >>> updates, _ = tx.update({"w": snp.array([3.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3)
    Array([-0.1], dtype=float32)
    """
    return chain(scale_by_adamax(b1, b2, eps), scale_by_learning_rate(learning_rate))


@optimizer
def adamaxw(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: Mask | None = None,
) -> GradientTransformationExtraArgs:
    """``adamax`` with decoupled weight decay; ``update`` needs ``params``.

    Args:
        b2: the weight of the past in the norm.
        eps: added to the size of the gradient.

    Raises:
        ValueError: as for ``adamw``.

    >>> import stretto.numpy as snp
    >>> tx = adamaxw(0.1, weight_decay=0.5)
    >>> params = {"w": snp.array([10.0])}
    >>> updates, _ = tx.update({"w": snp.array([3.0])}, tx.init(params), params)
    >>> snp.round(updates["w"], 3)
    Array([-0.6], dtype=float32)
    """
    return chain(
        scale_by_adamax(b1, b2, eps),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


@optimizer
def adabelief(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-16,
    eps_root: Scalar = 1e-16,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Adam with the running mean of (g − m)² in place of that of g².

    Args:
        eps_root: added to v, the epsilon of the paper.

    Raises:
        ValueError: a number is out of its range, or an array has axes (see ``per_member``).

    Source: Zhuang et al., "AdaBelief optimizer", 2020, algorithm 2.

    >>> import stretto.numpy as snp
    >>> tx = adabelief(0.1)
    >>> updates, _ = tx.update({"w": snp.array([3.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3)
    Array([-0.111], dtype=float32)
    """
    return chain(
        scale_by_belief(b1, b2, eps, eps_root, nesterov=nesterov),
        scale_by_learning_rate(learning_rate),
    )


@optimizer
def yogi(
    learning_rate: ScalarOrSchedule, b1: Scalar = 0.9, b2: Scalar = 0.999, eps: Scalar = 1e-3
) -> GradientTransformationExtraArgs:
    """Adam whose v moves by a share of g² up or down, and so forgets large gradients slowly.

    Raises:
        ValueError: a number is out of its range, or an array has axes (see ``per_member``).

    Source: Zaheer et al., "Adaptive methods for nonconvex optimization", 2018, algorithm 2.

    >>> import stretto.numpy as snp
    >>> tx = yogi(0.1)
    >>> updates, _ = tx.update({"w": snp.array([3.0])}, tx.init({"w": snp.zeros(1)}))
    >>> snp.round(updates["w"], 3)
    Array([-0.1], dtype=float32)
    """
    return chain(scale_by_yogi(b1, b2, eps), scale_by_learning_rate(learning_rate))
