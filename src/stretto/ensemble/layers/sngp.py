"""SNGP: a Gaussian process for a last layer, behind layers that keep distances.

``RandomFeatureGaussianProcess`` is a linear layer on random cosines, whose inner products are an
RBF kernel, with the Laplace approximation of its weights: logits far from the data are uncertain.
That needs features that tell far inputs from near ones, so residual layers before it have
``SpectralNorm``. Source: Liu, Lin, Padhy, Tran, Bedrax-Weiss and Lakshminarayanan, "Simple and
principled uncertainty estimation with deterministic deep learning via distance awareness", 2020;
random features: Rahimi and Recht, "Random features for large-scale kernel machines", 2007.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Literal, TypeVar, cast, get_args

import numpy as np

import stretto.numpy as snp
from stretto import lax, tree
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.position import user_stack_level
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key, Tree
from stretto._engine.higher_order.stop_gradient import stop_gradient
from stretto.ensemble.ensemble import Ensemble
from stretto.ensemble.gaussian import Gaussian
from stretto.func import functional_call, vjp
from stretto.nn import init
from stretto.nn.convolution import Conv1d, Conv2d, Conv3d
from stretto.nn.functional.affine import linear
from stretto.nn.functional.checks import check_features, positive
from stretto.nn.linear import Linear
from stretto.nn.module import Module, Parameter, stateful_call
from stretto.numpy.normalized import softmax
from stretto.random.keys import as_key, split
from stretto.random.streams import next_key
from stretto.scipy.linalg import solve_triangular
from stretto.special import expit

__all__ = ["RandomFeatureGaussianProcess", "SpectralNorm", "mean_field_logits", "update_precision"]

Likelihood = Literal["categorical", "bernoulli", "gaussian"]
M = TypeVar("M")

_LARGE = 2**30
"""Bytes of precision from which a layer warns."""


def mean_field_logits(mean: ArrayLike, variance: ArrayLike, factor: float = math.pi / 8) -> Array:
    """Return logits whose softmax or sigmoid is near the mean one of Gaussian logits.

    μ / √(1 + ``factor`` σ²) (MacKay, 1992, of a sigmoid; Lu, Ie and Sha, 2020, of a softmax).

    Args:
        mean: (..., classes).
        variance: of the same shape, or one that broadcasts to it.
        factor: how much variance counts, at least 0.

    Returns:
        (..., classes).

    Raises:
        ValueError: ``factor`` is negative.

    >>> from stretto.ensemble.layers import mean_field_logits
    >>> mean_field_logits(snp.array([2.0]), snp.array([24.0]), factor=0.125).tolist()
    [1.0]
    """
    if factor < 0:
        raise ValueError(f"mean_field_logits: factor must be at least 0, got {factor}")
    return snp.asarray(mean) / snp.sqrt(1 + factor * snp.asarray(variance))


class RandomFeatureGaussianProcess(Module):
    """A Gaussian process of random Fourier features, as a network's last layer.

    Features are φ = √(2/D) cos(W x / ℓ + b), with W normal and b uniform, which stay as they are
    drawn: φᵀφ' is about exp(−‖x − x'‖² / 2ℓ²). Their means are φᵀβ, with β = ``weight``
    (out_features, num_features), and their variances φᵀ (αI + P)⁻¹ φ. P, the buffer ``precision``,
    is Σ λ φφᵀ over the data, for each output: λ is p (1 − p) of a class or a logit, and 1/σ² of
    numbers, which share one matrix. ``update_precision`` computes it after training, by one pass
    over the data, and factors it: the buffer ``root`` is Cholesky's of αI + P, which predictions
    solve with. With ``momentum`` train mode tracks P, as batch normalization does its statistics,
    and predictions factor it each time until ``update_precision`` has.

    In train mode the output is the mean, for a loss such as cross-entropy. In evaluation mode it is
    ``mean_field_logits`` of mean and variance; for numbers the mean. ``distribution`` gives both. A
    weight decay on ``weight`` of α, in a loss that is a sum over the data, is the prior.

    Args:
        in_features: the size of the input's last axis.
        out_features: how many logits or numbers.
        num_features: D.
        likelihood: ``"categorical"``, ``"bernoulli"`` (each logit on its own) or ``"gaussian"``.
        length_scale: ℓ.
        prior_precision: α.
        noise: σ, of ``"gaussian"``.
        momentum: the share of P that a batch in train mode keeps; ``None`` leaves P alone.
        data_size: how many examples the data have, for ``momentum``.
        mean_field_factor: of ``mean_field_logits``; 0 for plain means.
        key: a key; ``None`` draws from the ambient stream.
        dtype: of the arrays; the default float by default.

    Raises:
        RuntimeError: an update of ``precision`` would be lost; see ``nn.stateful_call``.
        ValueError: a setting is out of range; or, when called, the input does not match.

    Warns where ``precision`` and ``root`` take more than 1 GiB: they are (out_features, D, D).

    >>> import stretto as st
    >>> from stretto.ensemble.layers import RandomFeatureGaussianProcess, update_precision
    >>> head = RandomFeatureGaussianProcess(2, 3, 64, key=st.random.PRNGKey(0)).eval()
    >>> x = snp.array([[0.0, 0.1], [0.1, 0.0], [9.0, 9.0]])
    >>> head = update_precision(head, [x[:2]] * 20)
    >>> variance = head.distribution(x).variance
    >>> bool((variance[0] < variance[2]).all())
    True
    """

    weight: Any
    random_weight: Any
    random_phase: Any
    precision: Any
    root: Any
    root_is_current: Any

    def __init__(
        self,
        in_features: int,
        out_features: int,
        num_features: int = 1024,
        *,
        likelihood: Likelihood = "categorical",
        length_scale: float = 1.0,
        prior_precision: float = 1.0,
        noise: float = 1.0,
        momentum: float | None = None,
        data_size: int | None = None,
        mean_field_factor: float = math.pi / 8,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        caller = type(self).__name__
        sizes = {"in_features": in_features, "out_features": out_features}
        positive(caller, **sizes, num_features=num_features)
        if likelihood not in get_args(Likelihood):
            raise ValueError(
                f"{caller}: likelihood must be 'categorical', 'bernoulli' or 'gaussian', got "
                f"{likelihood!r}"
            )
        if likelihood == "categorical" and out_features == 1:
            raise ValueError(f"{caller}: one logit is of the likelihood 'bernoulli'")
        scales = {"length_scale": length_scale, "prior_precision": prior_precision, "noise": noise}
        for name, scale in scales.items():
            if not scale > 0:
                raise ValueError(f"{caller}: {name} must be positive, got {scale}")
        if momentum is not None and not (0 <= momentum < 1 and data_size is not None):
            raise ValueError(
                f"{caller}: momentum must be in [0, 1), and takes data_size, how many examples "
                f"the data have; got {momentum} and {data_size}"
            )
        self.in_features, self.out_features, self.num_features = (
            in_features,
            out_features,
            num_features,
        )
        self.likelihood = likelihood
        self.length_scale, self.prior_precision, self.noise = length_scale, prior_precision, noise
        self.momentum, self.data_size = momentum, data_size
        self.mean_field_factor = mean_field_factor
        self.accumulates = False
        keys = split(next_key(caller) if key is None else as_key(key, caller), 3)
        scale = 1 / math.sqrt(prior_precision)
        drawn = init.normal(keys[0], (out_features, num_features), std=scale, dtype=dtype)
        self.weight = Parameter(drawn)
        shape = (num_features, in_features)
        self.register_buffer("random_weight", init.normal(keys[1], shape, dtype=dtype))
        phase = init.uniform(keys[2], (num_features,), 0.0, 2 * math.pi, dtype)
        self.register_buffer("random_phase", phase)
        matrices = 1 if likelihood == "gaussian" else out_features
        shape = (matrices, num_features, num_features)
        size = 2 * math.prod(shape) * np.dtype(drawn.dtype).itemsize
        if size > _LARGE:
            warnings.warn(
                f"{caller}: precision {shape} and its root take {size / 2**30:.1f} GiB; fewer "
                f"num_features take less, and the likelihood 'gaussian' has one matrix for all "
                f"outputs",
                stacklevel=user_stack_level(),
            )
        self.register_buffer("precision", init.zeros(shape, dtype))
        prior = math.sqrt(prior_precision) * snp.eye(num_features, dtype=drawn.dtype)
        self.register_buffer("root", snp.broadcast_to(prior, shape))
        if momentum is not None:
            self.register_buffer("root_is_current", np.asarray(True))

    def features(self, input: ArrayLike) -> Array:
        """Return the random features.

        Args:
            input: (..., in_features).

        Returns:
            (..., num_features).

        Raises:
            ValueError: the last axis of ``input`` has another size.
        """
        x = check_features(self, input, self.in_features)
        waves = linear(x / self.length_scale, self.random_weight, self.random_phase)
        return math.sqrt(2 / self.num_features) * snp.cos(waves)

    def distribution(self, input: ArrayLike) -> Gaussian:
        """Return means and variances of the outputs.

        Args:
            input: (..., in_features).

        Returns:
            A distribution for each number: mean and variance are (..., out_features).
        """
        features = self.features(input)
        return Gaussian(linear(features, self.weight), self._variance(features))

    def forward(self, input: ArrayLike) -> Array:
        """Map the input; in train mode with ``momentum`` the precision approaches the batch's.

        Args:
            input: (..., in_features).

        Returns:
            (..., out_features): means in train mode, and for numbers; otherwise mean-field logits.
        """
        features = self.features(input)
        mean = linear(features, self.weight)
        if self.accumulates:
            self.update_buffer("precision", self.precision + self._of_batch(features, mean))
        elif self.training and self.momentum is not None:
            examples = math.prod(mean.shape[:-1])
            whole = self._of_batch(features, mean) * (cast("int", self.data_size) / examples)
            share = 1 - self.momentum
            self.update_buffer("precision", self.precision + share * (whole - self.precision))
            self.update_buffer("root_is_current", snp.zeros_like(self.root_is_current))
        if self.training or self.likelihood == "gaussian" or not self.mean_field_factor:
            return mean
        return mean_field_logits(mean, self._variance(features), self.mean_field_factor)

    def _of_batch(self, features: Array, mean: Array) -> Array:
        """Return Σ λ φφᵀ over a batch, (matrices, num_features, num_features)."""
        phi = stop_gradient(features).reshape(-1, self.num_features)
        logits = stop_gradient(mean).reshape(-1, self.out_features)
        if self.likelihood == "gaussian":
            return (phi.T @ phi)[None] / self.noise**2
        p = softmax(logits, axis=-1) if self.likelihood == "categorical" else expit(logits)
        weighted = (p * (1 - p)).T[:, None] * phi.T  # (outputs, features, examples)
        return weighted @ phi

    def _root_of_precision(self) -> Array:
        """Return Cholesky's root of αI + P, of each matrix."""
        prior = self.prior_precision * snp.eye(self.num_features, dtype=self.precision.dtype)
        return snp.linalg.cholesky(self.precision + prior)

    def _variance(self, features: Array) -> Array:
        phi = features.reshape(-1, self.num_features)
        root = self.root
        if self.momentum is not None:
            root = lax.cond(self.root_is_current, lambda: self.root, self._root_of_precision)

        def of_matrix(root: Array) -> Array:
            return snp.sum(snp.square(solve_triangular(root, phi.T, lower=True)), axis=0)

        variance = vmap(of_matrix, out_axes=-1)(root)
        shape = (*features.shape[:-1], self.out_features)
        return snp.broadcast_to(variance, (phi.shape[0], self.out_features)).reshape(shape)

    def extra_repr(self) -> str:
        """Return the settings."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"num_features={self.num_features}, likelihood={self.likelihood!r}"
        )


def update_precision(model: M, data: Iterable[Any]) -> M:
    """Compute the precision of a model's Gaussian process layers, from zero, over ``data``.

    The sum over all examples, at the weights that the model has, and with it in evaluation mode:
    what follows training. Its root is computed once, here. ``model`` itself stays as it is.

    Args:
        model: a module, or an ``Ensemble`` of modules, all of whose members are run at once.
        data: batches; of a batch that is a tuple or list, the first part is the model's input.

    Returns:
        A model like ``model``, with the precision.

    Raises:
        TypeError: the model is not a module, or an Ensemble of modules.
        ValueError: it has no ``RandomFeatureGaussianProcess``, or ``data`` has no batch.

    >>> import stretto as st
    >>> from stretto.ensemble.layers import RandomFeatureGaussianProcess, update_precision
    >>> head = RandomFeatureGaussianProcess(2, 1, 8, likelihood="gaussian")
    >>> after = update_precision(head, [snp.ones((3, 2)), snp.ones((1, 2))])
    >>> phi = head.features(snp.ones((4, 2)))
    >>> bool(snp.allclose(after.precision[0], phi.T @ phi, rtol=1e-5))
    True
    """
    if isinstance(model, Ensemble):
        groups = [list(group) for group in model.groups]
        if not all(isinstance(members[0], Module) for members in groups):
            raise TypeError("update_precision: expected an Ensemble of modules")
        stacked = [tree.stack(members) for members in groups]
        computed = _over([(m, len(g)) for m, g in zip(stacked, groups, strict=True)], data)
        arrays = [
            {f"{path}.{n}" if path else n: x for path, layer in _heads(m) for n, x in _state(layer)}
            for m in computed
        ]
        return cast("M", model.replace(arrays))
    if not isinstance(model, Module):
        raise TypeError(
            f"update_precision: expected a module or an Ensemble of modules, got a "
            f"{type(model).__name__}"
        )
    (after,) = _over([(model, None)], data)
    copy = model.clone()
    for (_, layer), (_, other) in zip(_heads(copy), _heads(after), strict=True):
        for name, x in _state(other):
            layer.update_buffer(name, x)
    return cast("M", copy)


def _heads(module: Module) -> Iterator[tuple[str, RandomFeatureGaussianProcess]]:
    for path, layer in module.named_modules():
        if isinstance(layer, RandomFeatureGaussianProcess):
            yield path, layer


def _state(layer: RandomFeatureGaussianProcess) -> list[tuple[str, Array]]:
    """Return what ``update_precision`` computes, by name."""
    tracked = [] if layer.momentum is None else ["root_is_current"]
    return [(name, getattr(layer, name)) for name in ["precision", "root", *tracked]]


def _over(modules: list[tuple[Module, int | None]], data: Iterable[Any]) -> list[Module]:
    """Return the modules, of which one with a size is a stack of that many, after all batches."""
    running = []
    for module, size in modules:
        copy = module.clone().eval()
        for _, layer in _heads(copy):
            layer.accumulates = True
            layer.update_buffer("precision", snp.zeros_like(layer.precision))
        if not any(True for _ in _heads(copy)):
            raise ValueError(
                f"update_precision: {type(module).__name__} has no RandomFeatureGaussianProcess"
            )
        running.append((copy, size))
    batches = 0
    for batch in data:
        x = batch[0] if isinstance(batch, (tuple, list)) else batch
        running = [(_after(module, x, size), size) for module, size in running]
        batches += 1
    if not batches:
        raise ValueError("update_precision: expected at least one batch of data, got none")
    for module, _ in running:
        for _, layer in _heads(module):
            layer.update_buffer("root", layer._root_of_precision())
            if layer.momentum is not None:
                layer.update_buffer("root_is_current", snp.ones_like(layer.root_is_current))
    return [module for module, _ in running]


@partial(jit, static_argnums=2)
def _after(module: Module, x: Tree, size: int | None) -> Module:
    one = lambda module: stateful_call(module, x)[1]
    return one(module) if size is None else vmap(one)(module)


class SpectralNorm(Module):
    """Bound by how much a linear or convolutional layer stretches distances.

    Where the layer's spectral norm s, the greatest ‖layer(x) − layer(y)‖ / ‖x − y‖, is above the
    bound c, its weight counts as c/s of itself. s is found by power iteration with the layer and
    its transpose, so that a convolution's is the operator's own, on images of ``input_shape``, and
    not that of its kernel as a matrix (Yoshida and Miyato, 2017; Gouk et al., 2021). In train mode
    each call does ``n_power_iterations``, and updates the buffer ``direction``, the input that is
    stretched most. Iterations approach s from below; a layer begins with 20.

    Args:
        layer: a ``Linear`` or a ``Conv1d``, ``Conv2d`` or ``Conv3d``, kept as ``layer``.
        norm_bound: c.
        n_power_iterations: how many at each call in train mode.
        input_shape: of one input without the batch, (channels, *space), which a convolution needs.
        key: a key to draw the first direction from; ``None`` draws from the ambient stream.

    Raises:
        RuntimeError: an update of the buffer would be lost; see ``nn.stateful_call``.
        TypeError: the layer is none of these.
        ValueError: a setting is out of range, or ``input_shape`` is missing.

    >>> import stretto as st
    >>> from stretto import nn
    >>> from stretto.ensemble.layers import SpectralNorm
    >>> layer = nn.Linear(2, 2, bias=False)
    >>> layer.weight = nn.Parameter(snp.array([[4.0, 0.0], [0.0, 1.0]]))
    >>> bounded = SpectralNorm(layer, norm_bound=2.0, key=st.random.PRNGKey(0))
    >>> bounded(snp.array([1.0, 1.0])).round(3).tolist()
    [2.0, 0.5]
    """

    layer: Any
    direction: Any

    def __init__(
        self,
        layer: Module,
        norm_bound: float = 1.0,
        n_power_iterations: int = 1,
        input_shape: Sequence[int] | None = None,
        *,
        key: Key | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(layer, (Linear, Conv1d, Conv2d, Conv3d)):
            raise TypeError(
                f"SpectralNorm: expected a Linear, Conv1d, Conv2d or Conv3d, got "
                f"{type(layer).__name__}"
            )
        positive("SpectralNorm", n_power_iterations=n_power_iterations)
        if not norm_bound > 0:
            raise ValueError(f"SpectralNorm: norm_bound must be positive, got {norm_bound}")
        if isinstance(layer, Linear):
            expected: tuple[int, ...] | None = (layer.in_features,)
            shape = expected if input_shape is None else tuple(input_shape)
        else:
            shape = None if input_shape is None else tuple(input_shape)
            expected = None if shape is None else (layer.in_channels, *shape[1:])
            if shape is None or len(shape) != layer.weight.ndim - 1:
                raise ValueError(
                    f"SpectralNorm: the norm of {type(layer).__name__} is that for inputs of one "
                    f"size: expected input_shape (channels, *space), got {input_shape}"
                )
        if shape != expected:
            raise ValueError(
                f"SpectralNorm: expected input_shape {expected}, as of the layer, got {shape}"
            )
        self.layer = layer
        self.norm_bound = norm_bound
        self.n_power_iterations = n_power_iterations
        key = next_key("SpectralNorm") if key is None else as_key(key, "SpectralNorm")
        start = _unit(init.normal(key, cast("tuple[int, ...]", shape), dtype=layer.weight.dtype))
        self.register_buffer("direction", self._iterate(start, 20))

    def spectral_norm(self) -> Array:
        """Return the layer's spectral norm as found so far, differentiable.

        Returns:
            A scalar, at most the true norm.
        """
        x = self._linear(stop_gradient(self.direction))
        return snp.sqrt(snp.sum(snp.square(x)))

    def forward(self, input: ArrayLike) -> Array:
        """Call the layer with its weight scaled to the bound.

        Args:
            input: what the layer takes.

        Returns:
            What it gives.
        """
        if self.training:
            self.update_buffer("direction", self._iterate(self.direction, self.n_power_iterations))
        scale = self.norm_bound / snp.maximum(self.spectral_norm(), self.norm_bound)
        return functional_call(self.layer, {"weight": self.layer.weight * scale}, (input,))

    def _linear(self, x: Array) -> Array:
        """Call the layer without its bias."""
        bare = self.layer.clone()
        bare.bias = None
        return bare(x)

    def _iterate(self, direction: Array, iterations: int) -> Array:
        def once(_: Array, direction: Array) -> Array:
            out, pull = vjp(self._linear, direction)
            return _unit(pull(out)[0])

        return stop_gradient(lax.fori_loop(0, iterations, once, stop_gradient(direction)))

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"norm_bound={self.norm_bound}, n_power_iterations={self.n_power_iterations}"


def _unit(x: Array) -> Array:
    length = snp.sqrt(snp.sum(snp.square(x)))
    return x / snp.maximum(length, float(np.finfo(x.dtype).tiny))
