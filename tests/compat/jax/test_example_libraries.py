"""Optimizers and layers as functions."""

import math

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax.modules import module_of

optimizers = module_of("example_libraries.optimizers")
stax = module_of("example_libraries.stax")

X = np.random.default_rng(0).standard_normal((64, 3)).astype(np.float32)
Y = X @ np.array([1.0, -2.0, 0.5], np.float32) + 0.3


@pytest.mark.parametrize(
    "make",
    [
        lambda: optimizers.sgd(0.1),
        lambda: optimizers.momentum(0.03, 0.9),
        lambda: optimizers.nesterov(0.03, 0.9),
        lambda: optimizers.adagrad(0.5),
        lambda: optimizers.rmsprop(optimizers.exponential_decay(0.05, 50, 0.5)),
        lambda: optimizers.rmsprop_momentum(optimizers.exponential_decay(0.01, 50, 0.5)),
        lambda: optimizers.adam(optimizers.piecewise_constant([100], [0.1, 0.01])),
        lambda: optimizers.adamax(optimizers.polynomial_decay(0.1, 200, 0.001)),
        lambda: optimizers.sm3(0.5),
    ],
)
def test_optimizers_find_a_line(make):
    init, update, get = make()

    def loss(params):
        return ((X @ params["w"] + params["b"] - Y) ** 2).mean()

    @st.jit
    def step(i, state):
        return update(i, st.grad(loss)(get(state)), state)

    state = init({"w": snp.zeros(3), "b": snp.zeros(())})
    for i in range(200):
        state = step(i, state)
    assert loss(get(state)) < 1e-2
    again = optimizers.pack_optimizer_state(optimizers.unpack_optimizer_state(state))
    assert st.tree.structure(again) == st.tree.structure(state)


def test_the_first_steps_of_adam():
    """From zero, the first step is the step size, whatever the gradient."""
    init, update, get = optimizers.adam(0.1)
    state = update(0, snp.array([3.0, -0.01]), init(snp.zeros(2)))
    np.testing.assert_allclose(get(state), [-0.1, 0.1], rtol=1e-5)


def test_gradients_of_another_structure():
    init, update, _ = optimizers.sgd(0.1)
    with pytest.raises(TypeError, match="the gradients have the structure"):
        update(0, {"a": 1.0}, init([1.0]))


def test_norms_and_schedules():
    assert float(optimizers.l2_norm([snp.array([3.0]), snp.array(4.0)])) == 5
    clipped = optimizers.clip_grads(snp.array([3.0, 4.0]), 1.0)
    np.testing.assert_allclose(clipped, [0.6, 0.8], rtol=1e-6)
    assert float(optimizers.inverse_time_decay(1.0, 2, 1.0, staircase=True)(3)) == 0.5
    with pytest.raises(ValueError, match="one more value than boundaries"):
        optimizers.piecewise_constant([1, 2], [0.1])
    with pytest.raises(TypeError, match="a number or a function"):
        optimizers.make_schedule(np.ones(2))


def test_layers():
    init, apply = stax.serial(
        stax.FanOut(2),
        stax.parallel(stax.Dense(4), stax.serial(stax.Dense(4), stax.Relu)),
        stax.FanInSum,
        stax.Dropout(0.5),
    )
    shape, params = init(st.random.key(0), (-1, 3))
    out = apply(params, X, rng=st.random.key(1))
    assert shape == (-1, 4) and out.shape == (64, 4) and 0.3 < float((out == 0).mean()) < 0.7
    with pytest.raises(ValueError, match="needs a key"):
        apply(params, X)


def test_images():
    init, apply = stax.serial(stax.Conv(8, (3, 3), padding="SAME"), stax.Flatten, stax.Softmax)
    shape, params = init(st.random.key(0), (2, 5, 5, 1))
    out = apply(params, snp.ones((2, 5, 5, 1)))
    assert shape == out.shape == (2, 200)
    np.testing.assert_allclose(out.sum(-1), 1, rtol=1e-5)
    init, apply = stax.shape_dependent(lambda shape: stax.Dense(shape[-1] + 1))
    assert init(st.random.key(0), (2, 3))[0] == (2, 4)
    init, apply = stax.serial(stax.FanOut(2), stax.FanInConcat())
    assert init(st.random.key(0), (2, 3))[0] == (2, 6)
    assert apply([(), ()], snp.ones((2, 3))).shape == (2, 6)


X4 = snp.sin(snp.arange(2 * 6 * 6 * 3.0)).reshape(2, 6, 6, 3)


def waves(rng, shape):
    return snp.cos(snp.arange(float(math.prod(shape)))).reshape(shape)


@pytest.mark.parametrize(
    ("layer", "shape", "total"),
    [
        (stax.MaxPool((2, 3), (1, 2), "SAME"), (-1, 6, 3, 3), 89.21812),
        (stax.SumPool((2, 3), (1, 2), "SAME"), (-1, 6, 3, 3), -19.43566),
        (stax.AvgPool((2, 3), (1, 2), "SAME"), (-1, 6, 3, 3), -3.565794),
        (stax.BatchNorm(), (-1, 6, 6, 3), 0.0),
        (stax.ConvTranspose(4, (3, 2), (2, 1), "SAME", waves), (-1, 12, 6, 4), 191.2144),
        (
            stax.GeneralConv(("NHWC", "OIHW", "NCHW"), 4, (3, 3), W_init=waves),
            (-1, 4, 4, 4),
            2.7814,
        ),
    ],
)
def test_layers_of_images(layer, shape, total):
    """The sums, of magnitudes for convolutions, are JAX's."""
    init, apply = layer
    shape_after, params = init(st.random.key(0), (-1, *X4.shape[1:]))
    convolution = len(params) == 2 and params[0].ndim > 1
    if convolution:
        params = params[0], 0 * params[1]
    out = apply(params, X4)
    assert shape_after == shape and out.shape == (2, *shape[1:])
    np.testing.assert_allclose(abs(out).sum() if convolution else out.sum(), total, 1e-4, 1e-3)
