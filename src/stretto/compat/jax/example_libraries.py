"""``jax.example_libraries``: optimizers and layers as functions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from stretto import ShapeDtypeStruct, eval_shape, lax, random
from stretto import numpy as snp
from stretto.compat.jax import tree_util
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
from stretto.tree import register_pytree_node


class Optimizer(NamedTuple):
    """Three functions of trees of parameters."""

    init_fn: Callable[[Any], Any]
    update_fn: Callable[[Any, Any, Any], Any]
    params_fn: Callable[[Any], Any]


class OptimizerState:
    """The state of each parameter, flat, and the structures around them; a tree of arrays."""

    def __init__(self, packed_state: Any, tree_def: Any, subtree_defs: Any) -> None:
        self.packed_state, self.tree_def, self.subtree_defs = packed_state, tree_def, subtree_defs


register_pytree_node(
    OptimizerState,
    lambda s: ((s.packed_state,), (s.tree_def, s.subtree_defs)),
    lambda static, children: OptimizerState(children[0], *static),
)


def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """Decorate a maker of functions of one parameter: what it makes then takes trees of them."""

    @functools.wraps(opt_maker)
    def make(*args: Any, **kwargs: Any) -> Optimizer:
        init_one, update_one, params_one = opt_maker(*args, **kwargs)

        def init(params: Any) -> OptimizerState:
            flat, definition = tree_util.flatten(params)
            parts = [tree_util.flatten(init_one(x)) for x in flat]
            packed = tuple([tuple(leaves) for leaves, _ in parts])
            return OptimizerState(packed, definition, tuple([inner for _, inner in parts]))

        def update(i: Any, grads: Any, state: OptimizerState) -> OptimizerState:
            flat, definition = tree_util.flatten(grads)
            if definition != state.tree_def:
                raise TypeError(
                    f"optimizer: the gradients have the structure {definition}, and the "
                    f"parameters {state.tree_def}"
                )
            each = zip(flat, state.packed_state, state.subtree_defs, strict=True)
            new = [tree_util.flatten(update_one(i, g, inner.unflatten(s))) for g, s, inner in each]
            packed = tuple([tuple(leaves) for leaves, _ in new])
            return OptimizerState(packed, definition, state.subtree_defs)

        def get_params(state: OptimizerState) -> Any:
            each = zip(state.packed_state, state.subtree_defs, strict=True)
            return state.tree_def.unflatten([params_one(inner.unflatten(s)) for s, inner in each])

        return Optimizer(init, update, get_params)

    return make


Schedule = Callable[[Any], Any]


def constant(step_size: Any) -> Schedule:
    """Take the same step size always."""
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """Multiply the step size by ``decay_rate`` every ``decay_steps`` steps."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """Divide the step size by a number that grows by ``decay_rate`` every ``decay_steps`` steps."""
    whole = snp.floor if staircase else lambda x: x
    return lambda i: step_size / (1 + decay_rate * whole(i / decay_steps))


def polynomial_decay(
    step_size: Any, decay_steps: Any, final_step_size: Any, power: float = 1.0
) -> Schedule:
    """Go from one step size to another, by a power of the steps that are left."""

    def at(i: Any) -> Any:
        left = 1 - snp.minimum(i, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return at


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """Take one step size up to each boundary."""
    boundaries, values = snp.array(boundaries), snp.array(values)
    if not boundaries.ndim == values.ndim == 1 or values.size != boundaries.size + 1:
        raise ValueError(
            f"piecewise_constant: expected one more value than boundaries, both in one axis; got "
            f"shapes {values.shape} and {boundaries.shape}"
        )
    return lambda i: values[snp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """Return the schedule itself, or that of one step size."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if snp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(f"make_schedule: expected a number or a function, got {scalar_or_schedule!r}")


@optimizer
def sgd(step_size: Any) -> Any:
    """Step against the gradient."""
    size = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - size(i) * g, lambda x: x


@optimizer
def momentum(step_size: Any, mass: float) -> Any:
    """Step against a sum of gradients that decays."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * velocity, velocity

    return lambda x: (x, snp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def nesterov(step_size: Any, mass: float) -> Any:
    """Step by momentum, with the gradient taken ahead."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * (mass * velocity + g), velocity

    return lambda x: (x, snp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> Any:
    """Divide steps by the root of the sum of squared gradients."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, mean = state
        squares = squares + snp.square(g)
        root = snp.where(squares > 0, 1 / snp.sqrt(snp.where(squares > 0, squares, 1)), 0.0)
        mean = (1 - momentum) * (g * root) + momentum * mean
        return x - size(i) * mean, squares, mean

    return lambda x: (x, snp.zeros_like(x), snp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> Any:
    """Divide steps by the root of the mean of squared gradients."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares = state
        squares = gamma * squares + (1 - gamma) * snp.square(g)
        return x - size(i) * g / snp.sqrt(squares + eps), squares

    return lambda x: (x, snp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def rmsprop_momentum(
    step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> Any:
    """Make ``rmsprop`` with momentum."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, mean = state
        squares = gamma * squares + (1 - gamma) * snp.square(g)
        mean = momentum * mean + size(i) * g / snp.sqrt(squares + eps)
        return x - mean, squares, mean

    return lambda x: (x, snp.zeros_like(x), snp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Step along the mean of gradients, divided by the root of that of their squares."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, squares = state
        mean = (1 - b1) * g + b1 * mean
        squares = (1 - b2) * snp.square(g) + b2 * squares
        count = snp.asarray(i, mean.dtype) + 1
        unbiased, spread = mean / (1 - b1**count), squares / (1 - b2**count)
        return x - size(i) * unbiased / (snp.sqrt(spread) + eps), mean, squares

    return lambda x: (x, snp.zeros_like(x), snp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Make ``adam`` with the largest gradient in the place of the root of squares."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, largest = state
        mean = (1 - b1) * g + b1 * mean
        largest = snp.maximum(b2 * largest, snp.abs(g))
        scale = size(i) / (1 - b1 ** (snp.asarray(i, mean.dtype) + 1))
        return x - scale * mean / (largest + eps), mean, largest

    return lambda x: (x, snp.zeros_like(x), snp.zeros_like(x)), update, lambda state: state[0]


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> Any:
    """Make ``adagrad`` with one sum for each slice of an axis, not one for each element."""
    size = make_schedule(step_size)

    def along(x: Any, axis: int, ndim: int) -> Any:
        return x.reshape(*(1,) * axis, -1, *(1,) * (ndim - axis - 1))

    def init(x: Any) -> Any:
        sums = [snp.zeros(n, x.dtype) for n in x.shape or (1,)]
        return x, snp.zeros_like(x), sums

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, sums = state
        ndim = len(sums)
        least = functools.reduce(snp.minimum, [along(s, k, ndim) for k, s in enumerate(sums)])
        shape, x, mean, g = x.shape, *map(snp.atleast_1d, (x, mean, g))
        squares = least + snp.square(g)
        root = snp.where(squares > 0, 1 / snp.sqrt(snp.where(squares > 0, squares, 1)), 0.0)
        mean = (1 - momentum) * (g * root) + momentum * mean
        axes = range(ndim)
        sums = [squares.max(tuple([a for a in axes if a != k])) for k in axes]
        return (x - size(i) * mean).reshape(shape), mean.reshape(shape), sums

    return init, update, lambda state: state[0]


def l2_norm(tree: Any) -> Any:
    """Return the root of the sum of the squares of all leaves."""
    return snp.sqrt(sum([snp.vdot(x, x) for x in tree_util.leaves(tree)]))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Return the gradients, made smaller where their norm is above a bound."""
    norm = l2_norm(grad_tree)
    factor = snp.where(norm < max_norm, 1.0, max_norm / norm)
    return tree_util.map_(lambda g: g * factor.astype(g.dtype), grad_tree)


class JoinPoint:
    """Stands around the state of a parameter in ``unpack_optimizer_state``."""

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """Return the states as a tree like the parameters, each in a ``JoinPoint``."""
    each: Sequence[Any] = [
        JoinPoint(inner.unflatten(s))
        for s, inner in zip(opt_state.packed_state, opt_state.subtree_defs, strict=True)
    ]
    return opt_state.tree_def.unflatten(each)


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """Return the state that ``unpack_optimizer_state`` took apart."""
    points, definition = tree_util.flatten(marked_pytree)
    parts = [tree_util.flatten(point.subtree) for point in points]
    packed = tuple([tuple(leaves) for leaves, _ in parts])
    return OptimizerState(packed, definition, tuple([inner for _, inner in parts]))


glorot, randn, logsoftmax = glorot_normal, normal, log_softmax

Layer = tuple[Callable[..., Any], Callable[..., Any]]
_GLOROT, _NORMAL, _SMALL = (glorot_normal(), normal(), normal(1e-6))


def Dense(out_dim: int, W_init: Any = _GLOROT, b_init: Any = _NORMAL) -> Layer:
    """Make a layer of a matrix product, and a bias."""

    def init(rng: Any, input_shape: Sequence[int]) -> Any:
        one, two = random.split(rng)
        weights = W_init(one, (input_shape[-1], out_dim)), b_init(two, (out_dim,))
        return (*input_shape[:-1], out_dim), weights

    def apply(params: Any, inputs: Any, **kwargs: Any) -> Any:
        return snp.dot(inputs, params[0]) + params[1]

    return init, apply


def _shape_after(fun: Callable[[Any], Any], shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a result; a size of -1, which stands for any, is the same in it."""
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
        """Convolve arrays of these axes, and add a bias to each channel of the results."""
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
    """Bring axes of a batch to mean 0 and variance 1, then scale and shift."""
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
        """Return what windows of an image come to; ``spec`` names its axes, NHWC by default."""
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
    """Make a layer of a function of each element."""
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
    """Make a layer that gives its input so many times."""
    return (
        lambda rng, input_shape: ([input_shape] * num, ()),
        lambda params, inputs, **kwargs: [inputs] * num,
    )


def FanInConcat(axis: int = -1) -> Layer:
    """Make a layer that joins its inputs, one behind the other."""

    def init(rng: Any, input_shape: Any) -> Any:
        first = input_shape[0]
        at = axis % len(first)
        return (*first[:at], sum([s[at] for s in input_shape]), *first[at + 1 :]), ()

    return init, lambda params, inputs, **kwargs: snp.concatenate(inputs, axis)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Keep some elements, each with probability ``rate`` and divided by it."""

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
    """Make a layer of layers, one after the other."""
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
    """Make a layer of layers, each on its own input."""
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
    """Make a layer that depends on the shape of its input."""
    return (
        lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape),
        lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](params, inputs, **kwargs),
    )
