"""Entries of `special`, and of the special functions of `lax`."""

import numpy as np
import scipy.special as sp

from tests.functions.table import call, entry, without_entry, x

FLOATS = "f16 f32 f64"


def unary(name, like, low, high, dtypes=FLOATS, **options):
    """A function of one array, drawn from this range."""
    entry(name, like, [call(x(3, low=low, high=high)), call(x(2, 0))], dtypes, **options)


def several(name, like, *ranges, dtypes="f32", **options):
    """A function of several arrays, each drawn from its range."""
    arrays = [x(3, low=low, high=high) for low, high in ranges]
    entry(name, like, [call(*arrays)], dtypes, **options)


for name, like, low, high in [
    ("gamma", sp.gamma, 0.2, 5),
    ("gammaln", sp.gammaln, 0.2, 9),
    ("loggamma", sp.loggamma, 0.2, 9),
    ("digamma", sp.digamma, 0.2, 9),
    ("factorial", sp.factorial, 0.1, 5),
    ("erf", sp.erf, -2, 2),
    ("erfc", sp.erfc, -2, 2),
    ("erfcx", sp.erfcx, -2, 6),
    ("erfinv", sp.erfinv, -0.9, 0.9),
    ("dawsn", sp.dawsn, -7, 7),
    ("ndtr", sp.ndtr, -3, 3),
    ("log_ndtr", sp.log_ndtr, -6, 2),
    ("ndtri", sp.ndtri, 0.02, 0.98),
    ("exp1", sp.exp1, 0.2, 5),
    ("expi", sp.expi, 0.2, 8),
    ("spence", sp.spence, 0.1, 3),
    ("entr", sp.entr, 0.1, 3),
    ("logit", sp.logit, 0.1, 0.9),
    ("expit", sp.expit, -3, 3),
    ("i0", sp.i0, -4, 4),
    ("i0e", sp.i0e, -12, 12),
    ("i1", sp.i1, -4, 4),
    ("i1e", sp.i1e, -12, 12),
]:
    unary(f"special.{name}", like, low, high)

unary("special.gammasgn", sp.gammasgn, -3.9, 3)
unary("special.sici", sp.sici, 0.3, 9, "f32 f64")
unary("special.fresnel", sp.fresnel, -3, 3, "f32 f64")
unary("special.wofz", sp.wofz, -2, 2, "c64 c128")

several("special.beta", sp.beta, (0.3, 5), (0.3, 12))
several("special.betaln", sp.betaln, (0.3, 5), (0.3, 12))
several("special.gammainc", sp.gammainc, (0.3, 5), (0.3, 9))
several("special.gammaincc", sp.gammaincc, (0.3, 5), (0.3, 9))
several("special.betainc", sp.betainc, (0.3, 5), (0.3, 5), (0.1, 0.9))
several("special.poch", sp.poch, (0.3, 5), (0.3, 3))
several("special.xlogy", sp.xlogy, (-2, 2), (0.2, 3))
several("special.xlog1py", sp.xlog1py, (-2, 2), (-0.8, 3))
several("special.rel_entr", sp.rel_entr, (0.1, 2), (0.2, 3))
several("special.kl_div", sp.kl_div, (0.1, 2), (0.2, 3))
several("special.boxcox", sp.boxcox, (0.3, 3), (-2, 2))
several("special.boxcox1p", sp.boxcox1p, (-0.6, 3), (-2, 2))
several("special.owens_t", sp.owens_t, (-3, 3), (-3, 3))
several("special.hyp1f1", sp.hyp1f1, (0.3, 4), (0.5, 5), (-3, 3))
several("special.hyp2f1", sp.hyp2f1, (0.3, 3), (0.4, 3), (0.5, 5), (-3, 0.8))

orders = x(3, low=0, high=4, dtype="i32")
entry(
    "special.comb",
    lambda n, k, repetition=False: np.asarray(sp.comb(n, k, repetition=repetition)),
    [call(x(3, low=4, high=9), orders)],
    "f32",
)
entry(
    "special.zeta",
    lambda s, q=None: sp.zeta(s) if q is None else sp.zeta(s, q),
    [call(x(3, low=1.5, high=6)), call(x(3, low=1.5, high=6), x(3, low=0.3, high=5))],
    "f32 f64",
    undifferentiated="the derivative in the first argument is refused; tests/ops has the other",
)
for name, like in [("polygamma", sp.polygamma), ("expn", sp.expn)]:
    entry(f"special.{name}", like, [call(orders, x(3, low=0.3, high=4))], "f32")
entry(
    "special.multigammaln",
    lambda a, d: np.asarray(sp.multigammaln(a, d)),
    [call(x(3, low=2, high=6), 3), call(x(low=2, high=6), 1)],
    "f32 f64",
)
entry("special.bernoulli", sp.bernoulli, [call(9), call(1), call(0)], "f32 f64",
      unmapped="it takes no array", undifferentiated="it takes no array")  # fmt: skip
entry(
    "special.bessel_jn",
    lambda z, v: np.stack([sp.jv(k, z) for k in range(v + 1)]),
    [call(x(3, low=-9, high=40), v=2)],
    "f32",
)
entry(
    "special.sph_harm_y",
    # SciPy 1.14 has it as sph_harm, with the angles in another order and of another meaning.
    lambda n, m, theta, phi: (
        sp.sph_harm_y(n, m, theta, phi)
        if hasattr(sp, "sph_harm_y")
        else sp.sph_harm(m, n, phi, theta)
    ),
    [call(orders, x(3, low=-1, high=1, dtype="i32"), x(3, low=0.1, high=3), x(3, low=0, high=6))],
    "f32 f64",
)
entry("special.logsumexp", sp.logsumexp,
      [call(x(2, 3)), call(x(2, 3), axis=1, keepdims=True), call(x(3), b=x(3, low=0.5, high=2))],
      "f32 f64")  # fmt: skip
entry("special.softmax", sp.softmax, [call(x(2, 3), axis=1), call(x(4))], "f32 f64")
entry("special.log_softmax", sp.log_softmax, [call(x(2, 3), axis=1), call(x(4))], "f32 f64")

without_entry(
    "a function of special calls it, and has an entry",
    *[f"lax.{name}" for name in ("lgamma", "digamma", "igamma", "igammac", "betainc")],
    *[f"lax.{name}" for name in ("bessel_i0e", "bessel_i1e", "zeta", "polygamma")],
)
for name in ("igamma_grad_a", "random_gamma_grad"):
    several(
        f"lax.{name}",
        None,
        (0.3, 5),
        (0.3, 9),
        unlike="SciPy has none; tests/_engine/ops/special/test_incomplete_gamma.py has values",
        undifferentiated="the derivative in a is refused; tests/ops has the other",
    )
