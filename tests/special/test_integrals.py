"""Exponential, sine, Fresnel integrals, dilogarithm: values, edges, derivatives."""

import numpy as np
import pytest
from scipy import special as sp

from stretto import grad, jit, special
from stretto._engine.core.config import enable_x64
from tests.special.values import check_values

INF, NAN = np.inf, np.nan

VALUES = {
    "exp1": [
        (1e-30, 68.5003371249198376), (1e-08, 17.8434650890508326),
        (0.999, 0.219752182022944541), (1.0, 0.219383934395520274), (1.7, 0.07465464440125305),
        (20.0, 9.83552529064988169e-11), (200.0, 6.8852261063076356e-90),
        (700.0, 1.40651876623403292e-307),
    ],
    "expi": [
        (1e-30, -68.5003371249198376), (0.372, -0.00197782762433429792),
        (0.373, 0.00191843837989627108),
        (5.999, 85.9225520179871409), (6.0, 85.9897621424392048), (11.9, 13663.5346167760561),
        (24.1, 1269948772.02955607), (60.0, 1.93618221392927654e+24),
        (700.0, 1.45097873605256085e+301), (-1e-08, -17.8434650890508326),
        (-3.0, -0.0130483810941970374), (-50.0, -3.78326402955045902e-24),
    ],
    "expn": [
        (0.0, 0.5, 1.21306131942526685), (2.0, 1e-10, 0.999999997655136473),
        (3.0, 0.999, 0.109840572457847169), (5.0, 1.001, 0.0703682297916393328),
        (20.0, 7.0, 0.0000347068486248843709), (1.0, 300.0, 1.71038427680451012e-133),
        (60.0, 1.0, 0.00612959350642334117),
    ],
    "spence": [
        (1e-30, 1.64493406684822644), (0.1, 1.29971472300495871), (0.4999, 0.582379162038695984),
        (0.5001, 0.582101903165441918), (0.99999, 0.0000100000250000656012),
        (1.00001, -9.9999750001766222e-6), (1.4999, -0.448333112459344878),
        (1.5001, -0.448495298502676532), (20.0, -5.92783972437652145),
        (10000000000.0, -266.739839588365542),
    ],
    "si": [
        (1e-30, 1.00000000000000008e-30), (1e-05, 9.99999999994444526e-6),
        (3.9999, 1.75822205843084084), (4.0001, 1.75818421830615787),
        (11.9, 1.50980719872892764), (40.0, 1.58698511935478451),
        (100000.0, 1.57080632039939412), (-2.0, -1.60541297680269485),
    ],
    "ci": [
        (1e-30, -68.5003371249198376),
        (3.9999, -0.140965355646150101), (4.0001, -0.14099803782717715),
        (11.9, -0.0566051650261970686), (40.0, 0.019020007896208767),
        (100000.0, 3.57587915729351357e-7),
    ],
    "fresnel_s": [
        (1e-100, 5.23598775598298904e-301), (0.001, 5.23598775598206625e-10),
        (1.5999, 0.638964718810535806), (1.6001, 0.638810616167802467),
        (-4.5, -0.434272975048703589), (36.0, 0.491158060317257788),
    ],
    "fresnel_c": [
        (1e-30, 1.00000000000000008e-30), (0.001, 0.000999999999999753281),
        (1.5999, 0.365525445201484525), (1.6001, 0.365397960409710105),
        (-4.5, -0.526025915053538741), (36.0, 0.499997828337363658),
    ],
}  # fmt: skip


FUNCTIONS = {
    "si": lambda x: special.sici(x)[0],
    "ci": lambda x: special.sici(x)[1],
    "fresnel_s": lambda x: special.fresnel(x)[0],
    "fresnel_c": lambda x: special.fresnel(x)[1],
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    check_values(FUNCTIONS.get(name) or getattr(special, name), VALUES[name])


def test_edges():
    x = np.array([0.0, -0.0, INF, -INF, NAN, -1.0])
    with enable_x64():
        for f in (lambda f: f, jit):
            np.testing.assert_array_equal(f(special.exp1)(x), [INF, INF, 0, NAN, NAN, NAN])
            np.testing.assert_allclose(f(special.expi)(x), sp.expi(x), rtol=1e-14)
            si, ci = f(special.sici)(x[:-1])
            np.testing.assert_allclose(si, [0, -0.0, np.pi / 2, -np.pi / 2, NAN])
            np.testing.assert_array_equal(ci, sp.sici(x[:-1])[1])
            for out in f(special.fresnel)(x[2:4]):
                np.testing.assert_allclose(out, [0.5, -0.5])
            np.testing.assert_allclose(f(special.spence)(x), sp.spence(x))
            np.testing.assert_allclose(f(special.spence)(np.array([0.0, 1.0])), [np.pi**2 / 6, 0])


def test_orders_of_the_exponential_integral():
    n, x = (v.ravel() for v in np.meshgrid(np.arange(0.0, 12), [1e-3, 0.5, 1.0, 2.0, 30.0]))
    with enable_x64():
        for f in (special.expn, jit(special.expn)):
            np.testing.assert_allclose(f(n, x), sp.expn(n.astype(int), x), rtol=1e-12)
            np.testing.assert_array_equal(f(np.array([0.0, 1, 2, 5]), 0.0), [INF, INF, 1, 0.25])
        np.testing.assert_allclose(special.expn(1.0, x), special.exp1(x), rtol=1e-14)


def test_odd_and_even():
    x = np.array([1e-3, 1.7, 5.0, 40.0])
    with enable_x64():
        for f in (special.fresnel, special.sici):
            (odd, other), (odd_, other_) = f(x), f(-x)
            np.testing.assert_array_equal(odd_, -odd)
            if f is special.fresnel:
                np.testing.assert_array_equal(other_, -other)


def test_the_dilogarithm_s_reflection():
    # Li_2(x) + Li_2(1 - x) = π^2 / 6 - log(x) log(1 - x)
    x = np.array([1e-5, 0.2, 0.5, 0.8])
    with enable_x64():
        total = special.spence(1 - x) + special.spence(x)
        np.testing.assert_allclose(total, np.pi**2 / 6 - np.log(x) * np.log1p(-x), rtol=1e-14)


def test_derivatives():
    x = 1.3
    with enable_x64():
        sine, cosine = np.sin(np.pi * x * x / 2), np.cos(np.pi * x * x / 2)
        for f, want in [
            (special.exp1, -np.exp(-x) / x),
            (special.expi, np.exp(x) / x),
            (lambda x: special.expn(3.0, x), -sp.expn(2, x)),
            (lambda x: special.sici(x)[0], np.sin(x) / x),
            (lambda x: special.sici(x)[1], np.cos(x) / x),
            (lambda x: special.fresnel(x)[0], sine),
            (lambda x: special.fresnel(x)[1], cosine),
            (special.spence, np.log(x) / (1 - x)),
        ]:
            np.testing.assert_allclose(grad(f)(x), want, rtol=1e-13)
        # log(x) / (1 - x) = -1 + (x - 1) / 2 - (x - 1)^2 / 3 ...
        slope = grad(special.spence)
        for want in (-1, 1 / 2, -2 / 3):
            np.testing.assert_allclose(slope(1.0), want, rtol=1e-12)
            slope = grad(slope)
