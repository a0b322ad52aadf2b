"""Implementations of keys: JAX's numbers for rbg and unsafe_rbg, and their laws."""

import numpy as np
import pytest

from stretto import random as R
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.config import config
from tests.random.seeds import JAX

# Each implementation and draw, and what JAX 0.10.2 gives on a CPU for the same expression with
# R = jax.random, k = key(0x123456789, impl=...), and jax_threefry_partitionable off, then on; in
# row-major order.
KEYS = {
    "rbg key": (R.key_data, [0, 591751049, 0, 591751049], [0, 591751049, 0, 591751049]),
    "rbg split": (
        lambda k: R.key_data(R.split(k)),
        [
            3617274360,
            3753205001,
            3617274360,
            3753205001,
            1297336295,
            580763498,
            1297336295,
            580763498,
        ],
        [
            4147644527,
            3151391983,
            4147644527,
            3151391983,
            2345107987,
            3548103583,
            2345107987,
            3548103583,
        ],
    ),
    "rbg split_shape": (
        lambda k: R.key_data(R.split(k, (2, 3))),
        [
            2123359501,
            3375942428,
            2123359501,
            3375942428,
            350141705,
            586968893,
            350141705,
            586968893,
            24764119,
            3978029425,
            24764119,
            3978029425,
            82684473,
            2584000059,
            82684473,
            2584000059,
            1425147383,
            1394193198,
            1425147383,
            1394193198,
            619146639,
            2105450447,
            619146639,
            2105450447,
        ],
        [
            4147644527,
            3151391983,
            4147644527,
            3151391983,
            2345107987,
            3548103583,
            2345107987,
            3548103583,
            3617274360,
            1297336295,
            3617274360,
            1297336295,
            268604172,
            3709136966,
            268604172,
            3709136966,
            539398600,
            76987084,
            539398600,
            76987084,
            1840601139,
            1475309804,
            1840601139,
            1475309804,
        ],
    ),
    "rbg fold_in": (
        lambda k: R.key_data(R.fold_in(k, 7)),
        [1879776590, 3956557084, 1879776590, 3956557084],
        [1879776590, 3956557084, 1879776590, 3956557084],
    ),
    "rbg bits": (
        lambda k: R.bits(k, (5,)),
        [755862127, 2388056602, 1462277846, 3922755766, 2553657853],
        [755862127, 2388056602, 1462277846, 3922755766, 2553657853],
    ),
    "rbg bits8": (
        lambda k: R.bits(k, (5,), "uint8"),
        [111, 26, 214, 182, 253],
        [111, 26, 214, 182, 253],
    ),
    "rbg bits16": (
        lambda k: R.bits(k, (2, 3), "uint16"),
        [35439, 55834, 38614, 32950, 47613, 55456],
        [35439, 55834, 38614, 32950, 47613, 55456],
    ),
    "rbg normal": (
        lambda k: R.normal(k, (3,)),
        [-0.93076384, 0.14086771, -0.4111997],
        [-0.93076384, 0.14086771, -0.4111997],
    ),
    "rbg gamma": (
        lambda k: R.gamma(k, 0.7, (3,)),
        [0.35322946, 0.1301411, 0.019760089],
        [0.19464947, 0.0070636645, 0.081315205],
    ),
    "rbg permutation": (
        lambda k: R.permutation(k, 8),
        [3, 2, 6, 5, 1, 0, 4, 7],
        [1, 4, 0, 2, 6, 3, 7, 5],
    ),
    "unsafe_rbg key": (R.key_data, [0, 591751049, 0, 591751049], [0, 591751049, 0, 591751049]),
    "unsafe_rbg split": (
        lambda k: R.key_data(R.split(k)),
        [
            755862127,
            2388056602,
            1462277846,
            3922755766,
            3686679818,
            2465563900,
            1529890914,
            3153476047,
        ],
        [
            755862127,
            2388056602,
            1462277846,
            3922755766,
            3686679818,
            2465563900,
            1529890914,
            3153476047,
        ],
    ),
    "unsafe_rbg split_shape": (
        lambda k: R.key_data(R.split(k, (2, 3))),
        [
            755862127,
            2388056602,
            1462277846,
            3922755766,
            3686679818,
            2465563900,
            1529890914,
            3153476047,
            3841128459,
            3331156549,
            42464358,
            1210877363,
            487592495,
            1663147636,
            3102712773,
            800993709,
            1582629730,
            1259364500,
            2918231475,
            3647259821,
            1930041309,
            440592583,
            6676322,
            500037242,
        ],
        [
            755862127,
            2388056602,
            1462277846,
            3922755766,
            3686679818,
            2465563900,
            1529890914,
            3153476047,
            3841128459,
            3331156549,
            42464358,
            1210877363,
            487592495,
            1663147636,
            3102712773,
            800993709,
            1582629730,
            1259364500,
            2918231475,
            3647259821,
            1930041309,
            440592583,
            6676322,
            500037242,
        ],
    ),
    "unsafe_rbg fold_in": (
        lambda k: R.key_data(R.fold_in(k, 7)),
        [2104303640, 766254594, 1106406590, 1434356799],
        [2104303640, 766254594, 1106406590, 1434356799],
    ),
    "unsafe_rbg bits": (
        lambda k: R.bits(k, (5,)),
        [755862127, 2388056602, 1462277846, 3922755766, 2553657853],
        [755862127, 2388056602, 1462277846, 3922755766, 2553657853],
    ),
    "unsafe_rbg bits8": (
        lambda k: R.bits(k, (5,), "uint8"),
        [111, 26, 214, 182, 253],
        [111, 26, 214, 182, 253],
    ),
    "unsafe_rbg bits16": (
        lambda k: R.bits(k, (2, 3), "uint16"),
        [35439, 55834, 38614, 32950, 47613, 55456],
        [35439, 55834, 38614, 32950, 47613, 55456],
    ),
    "unsafe_rbg normal": (
        lambda k: R.normal(k, (3,)),
        [-0.93076384, 0.14086771, -0.4111997],
        [-0.93076384, 0.14086771, -0.4111997],
    ),
    "unsafe_rbg gamma": (
        lambda k: R.gamma(k, 0.7, (3,)),
        [1.6076669, 1.5140153, 0.3229994],
        [1.6076669, 1.5140153, 0.3229994],
    ),
    "unsafe_rbg permutation": (
        lambda k: R.permutation(k, 8),
        [0, 2, 4, 5, 3, 7, 1, 6],
        [0, 2, 4, 5, 3, 7, 1, 6],
    ),
}


def key_of(name):
    with JAX:
        return R.key(0x123456789, impl=name.split()[0])


def check(name, drawn, want):
    x = np.asarray(drawn).reshape(-1)
    if name.endswith(("normal", "gamma")):  # logarithms and roots
        np.testing.assert_allclose(x, want, rtol=2e-6, err_msg=name)
    else:
        np.testing.assert_array_equal(x, want, name)


def test_draws_are_jaxs(partitionable):
    with config(threefry_partitionable=partitionable):
        for name, (draw, *want) in KEYS.items():
            check(name, draw(key_of(name)), want[partitionable])


def test_compiled_draws_are_the_same(partitionable):
    some = [name for name in KEYS if not name.endswith(("gamma", "permutation"))]
    with config(threefry_partitionable=partitionable):
        draws = jit(lambda keys: {name: KEYS[name][0](keys[name]) for name in some})
        for name, x in draws({name: key_of(name) for name in some}).items():
            check(name, x, KEYS[name][1 + partitionable])


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_mapped_draws_are_those_of_each_key(impl, partitionable):
    with config(threefry_partitionable=partitionable):
        keys = R.split(R.key(1, impl=impl), 3)
        for draw in (
            lambda k: R.key_data(R.split(k, (2, 2))),
            lambda k: R.key_data(R.fold_in(k, 9)),
            lambda k: R.bits(k, (5,), "uint16"),
            lambda k: R.gamma(k, 0.5, (2,)),
        ):
            np.testing.assert_array_equal(vmap(draw)(keys), np.stack([draw(k) for k in keys]))
        folded = vmap(R.fold_in)(keys, np.arange(3, dtype=np.uint32))
        assert bool((folded[2] == R.fold_in(keys[2], 2)).all())


def test_the_default_is_a_setting():
    with config(default_prng_impl="rbg"):
        raw = R.PRNGKey(3)
        assert raw.shape == (4,)
        assert R.key_impl(raw) == R.key_impl(R.key(3)) == "rbg"
        np.testing.assert_array_equal(R.normal(raw, (3,)), R.normal(R.key(3), (3,)))
    with pytest.raises(TypeError, match=r"expected a key, uint32\[2\], got uint32\[4\]"):
        R.normal(raw)
