"""``jax.example_libraries.stax``: layers as pairs of functions, ``init`` and ``apply``."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from stretto import ShapeDtypeStruct, eval_shape, lax, random
from stretto import numpy as snp
from stretto.compat.jax.initializers import glorot_normal, normal, ones, zeros
from stretto.compat.jax.nn import (
    elu,
    gelu,
    leaky_relu,
    log_softmax,
    relu,
    selu,
    sigmoid,
    softmax,
    softplus,
    standardize,
)

__all__ = [
    "AvgPool",
    "BatchNorm",
    "Conv",
    "Conv1DTranspose",
    "ConvTranspose",
    "Dense",
    "Dropout",
    "Elu",
    "Exp",
    "FanInConcat",
    "FanInSum",
    "FanOut",
    "Flatten",
    "Gelu",
    "GeneralConv",
    "GeneralConvTranspose",
    "Identity",
    "LeakyRelu",
    "LogSoftmax",
    "MaxPool",
    "Relu",
    "Selu",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "SumPool",
    "Tanh",
    "elementwise",
    "elu",
    "gelu",
    "glorot",
    "glorot_normal",
    "leaky_relu",
    "log_softmax",
    "logsoftmax",
    "normal",
    "ones",
    "parallel",
    "randn",
    "relu",
    "selu",
    "serial",
    "shape_dependent",
    "sigmoid",
    "softmax",
    "softplus",
    "standardize",
    "zeros",
]

glorot, randn, logsoftmax = glorot_normal, normal, log_softmax

Layer = tuple[Callable[..., Any], Callable[..., Any]]
_GLOROT, _NORMAL, _SMALL = (
    glorot_normal(),
    normal(),
    normal(1e-6),
)


def Dense(out_dim: int, W_init: Any = _GLOROT, b_init: Any = _NORMAL) -> Layer:
    """A matrix product, and a bias."""

    def init(rng: Any, input_shape: Sequence[int]) -> Any:
        one, two = random.split(rng)
        weights = W_init(one, (input_shape[-1], out_dim)), b_init(two, (out_dim,))
        return (*input_shape[:-1], out_dim), weights

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return snp.dot(inputs, params[0]) + params[1]

    return init, apply


def _shape_after(fun: Callable[[Any], Any], shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of a result; a size of -1, which stands for any, is the same in it."""
    free = [i for i, n in enumerate(shape) if n == -1]
    out = eval_shape(fun, ShapeDtypeStruct(tuple([abs(n) for n in shape]), snp.float32)).shape
    return tuple([-1 if i in free else n for i, n in enumerate(out)])


def _convolution(convolve: Callable[..., Any]) -> Callable[..., Layer]:
    def layer(
        dimension_numbers: tuple[str, str, str],
        out_chan: int,
        filter_shape: Sequence[int],
        strides: Sequence[int] | None = None,
        padding: Any = "VALID",
        W_init: Any = None,
        b_init: Any = _SMALL,
    ) -> Layer:
        """A convolution of arrays of these axes, and a bias for each channel of its results."""
        images, kernels, results = dimension_numbers
        steps = tuple(strides or (1,) * len(filter_shape))
        kernel_init = W_init or glorot_normal(kernels.index("I"), kernels.index("O"))

        def convolved(x: Any, kernel: Any) -> Any:
            return convolve(x, kernel, steps, padding, dimension_numbers=dimension_numbers)

        def init(rng: Any, input_shape: Sequence[int]) -> Any:
            sizes = iter(filter_shape)
            channels = {"O": out_chan, "I": input_shape[images.index("C")]}
            kernel = tuple([channels[c] if c in channels else next(sizes) for c in kernels])
            one, two = random.split(rng)
            bias = tuple([out_chan if c == "C" else 1 for c in results])
            params = kernel_init(one, kernel), b_init(two, bias)
            return _shape_after(lambda x: convolved(x, snp.zeros(kernel)), input_shape), params

        def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
            return convolved(inputs, params[0]) + params[1]

        return init, apply

    return layer


GeneralConv = _convolution(lax.conv_general_dilated)
GeneralConvTranspose = _convolution(lax.conv_transpose)
Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Any = zeros,
    gamma_init: Any = ones,
) -> Layer:
    """Mean 0 and variance 1 along axes of a batch, then a scale and a shift."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init(rng: Any, input_shape: Sequence[int]) -> Any:
        shape = tuple([n for i, n in enumerate(input_shape) if i not in axes])
        one, two = random.split(rng)
        beta = beta_init(one, shape) if center else ()
        return input_shape, (beta, gamma_init(two, shape) if scale else ())

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        out = standardize(inputs, axes, epsilon=epsilon)
        if scale:
            out = out * snp.expand_dims(gamma, axes)
        return out + snp.expand_dims(beta, axes) if center else out

    return init, apply


def _pool(combine: Callable[..., Any], start: float, mean: bool = False) -> Callable[..., Layer]:
    def layer(
        window_shape: Sequence[int],
        strides: Sequence[int] | None = None,
        padding: Any = "VALID",
        spec: str | None = None,
    ) -> Layer:
        """What windows of an image come to; ``spec`` names its axes, NHWC by default."""
        axes = spec or "N" + "HWDEFG"[: len(window_shape)] + "C"
        steps = strides or (1,) * len(window_shape)

        def spread(sizes: Sequence[int]) -> tuple[int, ...]:
            rest = iter(sizes)
            return tuple([1 if c in "NC" else next(rest) for c in axes])

        def pooled(x: Any) -> Any:
            return lax.reduce_window(
                x, start, combine, spread(window_shape), spread(steps), padding
            )

        def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
            return pooled(inputs) / pooled(snp.ones_like(inputs)) if mean else pooled(inputs)

        return lambda rng, input_shape: (_shape_after(pooled, input_shape), ()), apply

    return layer


MaxPool = _pool(lax.max, -math.inf)
SumPool = _pool(lax.add, 0.0)
AvgPool = _pool(lax.add, 0.0, mean=True)


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """A function of each element."""
    return (
        lambda rng, input_shape: (input_shape, ()),
        lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs),
    )


Tanh = elementwise(snp.tanh)
Relu = elementwise(relu)
Exp = elementwise(snp.exp)
LogSoftmax = elementwise(log_softmax, axis=-1)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Sigmoid = elementwise(sigmoid)
Elu = elementwise(elu)
LeakyRelu = elementwise(leaky_relu)
Selu = elementwise(selu)
Gelu = elementwise(gelu)
Identity: Layer = (
    lambda rng, input_shape: (input_shape, ()),
    lambda params, inputs, **kwargs: inputs,
)
Flatten: Layer = (
    lambda rng, input_shape: ((input_shape[0], math.prod(input_shape[1:])), ()),
    lambda params, inputs, **kwargs: snp.reshape(inputs, (inputs.shape[0], -1)),
)
FanInSum: Layer = (
    lambda rng, input_shape: (input_shape[0], ()),
    lambda params, inputs, **kwargs: functools.reduce(snp.add, inputs),
)


def FanOut(num: int) -> Layer:
    """The input, so many times."""
    return (
        lambda rng, input_shape: ([input_shape] * num, ()),
        lambda params, inputs, **kwargs: [inputs] * num,
    )


def FanInConcat(axis: int = -1) -> Layer:
    """The inputs, one behind the other."""

    def init(rng: Any, input_shape: Any) -> Any:
        first = input_shape[0]
        at = axis % len(first)
        return (*first[:at], sum([s[at] for s in input_shape]), *first[at + 1 :]), ()

    return init, lambda params, inputs, **kwargs: snp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Some elements, each kept with probability ``rate`` and divided by it."""

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError("Dropout: apply needs a key, as in apply(params, inputs, rng=key)")
        if mode != "train":
            return inputs
        kept = random.bernoulli(rng, rate, inputs.shape)
        return snp.where(kept, inputs / rate, 0)

    return lambda rng, input_shape: (input_shape, ()), apply


def _split(rng: Any, count: int) -> Any:
    return [None] * count if rng is None else random.split(rng, count)


def serial(*layers: Layer) -> Layer:
    """One layer after the other."""
    inits, applies = zip(*layers) if layers else ((), ())

    def init(rng: Any, input_shape: Any) -> Any:
        params = []
        for one in inits:
            rng, own = random.split(rng)
            input_shape, param = one(own, input_shape)
            params.append(param)
        return input_shape, params

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rngs = _split(kwargs.pop("rng", None), len(layers))
        for fun, param, rng in zip(applies, params, rngs, strict=True):
            inputs = fun(param, inputs, rng=rng, **kwargs)
        return inputs

    return init, apply


def parallel(*layers: Layer) -> Layer:
    """Each layer on its own input."""
    inits, applies = zip(*layers)

    def init(rng: Any, input_shape: Any) -> Any:
        rngs = random.split(rng, len(layers))
        made = [one(r, s) for one, r, s in zip(inits, rngs, input_shape, strict=True)]
        return [shape for shape, _ in made], [params for _, params in made]

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        rngs = _split(kwargs.pop("rng", None), len(layers))
        return [
            f(p, x, rng=r, **kwargs)
            for f, p, x, r in zip(applies, params, inputs, rngs, strict=True)
        ]

    return init, apply


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """A layer that is made for the shape of its input."""
    return (
        lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape),
        lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](params, inputs, **kwargs),
    )
