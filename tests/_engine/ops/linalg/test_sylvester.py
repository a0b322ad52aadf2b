"""Sylvester's equation for triangles: the laws, the parts, zero sums."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.ops.linalg.sylvester import TriangularSylvester
from stretto.laws import c64, f32, f64, law
from tests.any_size import holds

RNG = np.random.default_rng(0)


def rising(x, start):
    return x + snp.diag(snp.arange(x.shape[-1], dtype=x.dtype) * 3 + start)


def whole(r, s, f):
    return TriangularSylvester("all")(rising(r, 4), rising(s, 4), f)


def part(name):
    return lambda r, f: TriangularSylvester(name)(rising(r, 1), -rising(r, 1), f)


LAWS = [
    *(law(TriangularSylvester, whole, kind(3, 3), kind(2, 2), kind(3, 2)) for kind in (f32, c64)),
    law(TriangularSylvester, whole, f64(2, 3, 3), f64(2, 1, 1), f64(2, 3, 1)),
    # Differences of the diagonal divide: more than rounding remains of 32 bits.
    *(
        law(TriangularSylvester, part(p), c64(3, 3), c64(3, 3), factor=8)
        for p in ("lower", "upper")
    ),
]


@pytest.mark.parametrize("case", LAWS, ids=lambda case: f"{LAWS.index(case)}-{case}")
def test_laws(case):
    case.check()


def test_only_the_triangles_are_read_and_the_equation_holds():
    r, s, f = (RNG.normal(size=n) for n in ((3, 3), (4, 4), (3, 4)))
    r, s = r + 4 * np.eye(3), s + 4 * np.eye(4)
    with st.enable_x64(True):
        y = np.asarray(TriangularSylvester("all")(*map(snp.asarray, (r, s, f))))
        np.testing.assert_allclose(np.triu(r) @ y + y @ np.triu(s), f, atol=1e-12)
        assert (
            TriangularSylvester("all")(snp.zeros((0, 0)), snp.asarray(s), snp.zeros((0, 4))).size
            == 0
        )


@pytest.mark.parametrize("name", ["lower", "upper"])
def test_the_equations_of_a_part_hold_there(name):
    r, f = RNG.normal(size=(2, 4, 4)) + np.diag([1.0, 4, 7, 10])
    keep = np.tril if name == "lower" else np.triu
    offset = -1 if name == "lower" else 1
    with st.enable_x64(True):
        args = [snp.asarray(v) for v in (r, -r, f)]
        for g in (TriangularSylvester(name), st.jit(TriangularSylvester(name))):
            y = np.asarray(g(*args))
            np.testing.assert_array_equal(y, keep(y, offset))
            residual = np.triu(r) @ y - y @ np.triu(r) - f
            np.testing.assert_allclose(keep(residual, offset), 0, atol=1e-12)


def test_sums_that_are_zero_are_infinite_or_nan():
    one = snp.ones((1, 1))
    for f in (TriangularSylvester("all"), st.jit(TriangularSylvester("all"))):
        assert not np.isfinite(f(one, -one, one)).any()


def test_refusals():
    with pytest.raises(ValueError, match="sylvester: expected one dtype, equal leading axes"):
        TriangularSylvester("all")(snp.eye(2), snp.eye(3), snp.ones((3, 2)))


def test_equations_of_any_size():
    r, s, f = (RNG.normal(size=n).astype(np.float32) for n in ((4, 4), (2, 2), (4, 2)))
    holds(whole, [r, s, f], {(0, 0): 0, (0, 1): 0, (1, 0): 1, (1, 1): 1, (2, 0): 0, (2, 1): 1},
          tolerance=30)  # fmt: skip
    square = {(i, d): 0 for i in (0, 1) for d in (0, 1)}
    for name in ("lower", "upper"):
        holds(part(name), [r, r.T], square, tolerance=100)
