"""``jax.example_libraries.stax``: layers as pairs of functions, ``init`` and ``apply``."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from stretto import lax, nn, random
from stretto import numpy as snp
from stretto.nn import initializers

__all__ = [
    "Conv",
    "Dense",
    "Dropout",
    "Elu",
    "Exp",
    "FanInConcat",
    "FanInSum",
    "FanOut",
    "Flatten",
    "Gelu",
    "Identity",
    "LeakyRelu",
    "LogSoftmax",
    "Relu",
    "Selu",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Tanh",
    "elementwise",
    "parallel",
    "serial",
    "shape_dependent",
]

Layer = tuple[Callable[..., Any], Callable[..., Any]]
_GLOROT, _NORMAL, _SMALL = (
    initializers.glorot_normal(),
    initializers.normal(),
    initializers.normal(1e-6),
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


def Conv(
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Any = None,
    b_init: Any = _SMALL,
) -> Layer:
    """A convolution of images of the axes NHWC, and a bias."""
    numbers = ("NHWC", "HWIO", "NHWC")
    steps = tuple(strides or (1,) * len(filter_shape))
    kernel_init = W_init or initializers.glorot_normal(2, 3)

    def init(rng: Any, input_shape: Sequence[int]) -> Any:
        one, two = random.split(rng)
        kernel = (*filter_shape, input_shape[-1], out_chan)
        params = kernel_init(one, kernel), b_init(two, (1, 1, 1, out_chan))
        shape = lax.conv_general_shape_tuple(tuple(input_shape), kernel, steps, padding, numbers)
        return shape, params

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        made = lax.conv_general_dilated(
            inputs, params[0], steps, padding, dimension_numbers=numbers
        )
        return made + params[1]

    return init, apply


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """A function of each element."""
    return (
        lambda rng, input_shape: (input_shape, ()),
        lambda params, inputs, **kwargs: fun(inputs, **fun_kwargs),
    )


Tanh = elementwise(snp.tanh)
Relu = elementwise(nn.relu)
Exp = elementwise(snp.exp)
LogSoftmax = elementwise(nn.log_softmax, axis=-1)
Softmax = elementwise(nn.softmax, axis=-1)
Softplus = elementwise(nn.softplus)
Sigmoid = elementwise(nn.sigmoid)
Elu = elementwise(nn.elu)
LeakyRelu = elementwise(nn.leaky_relu)
Selu = elementwise(nn.selu)
Gelu = elementwise(nn.gelu)
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
