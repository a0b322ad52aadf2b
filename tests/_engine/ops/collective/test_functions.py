"""Functions across examples: NumPy's answers, axes and tiles, tuples of names, groups, refusals."""

import numpy as np
import pytest

import stretto as st
from stretto import lax
from stretto._engine.core.interpreter import as_value
from stretto._engine.ops.collective.functions import _split_rows

RNG = np.random.default_rng(1)
X = RNG.normal(size=(4, 4, 8)).astype(np.float32)
PERM = [(0, 2), (2, 0), (3, 1)]


def permuted(x):
    out = np.zeros_like(x)
    for source, destination in PERM:
        out[destination] = x[source]
    return out


def same(x):
    """The same for each of four examples."""
    return np.stack([x] * 4)


# The function of one example, and what it gives for all.
CASES = {
    "psum": (lambda x: lax.psum(x, "i"), lambda x: same(x.sum(0))),
    "pmean": (lambda x: lax.pmean(x, "i"), lambda x: same(x.mean(0))),
    "pmax": (lambda x: lax.pmax(x, "i"), lambda x: same(x.max(0))),
    "pmin": (lambda x: lax.pmin(x, "i"), lambda x: same(x.min(0))),
    "ppermute": (lambda x: lax.ppermute(x, "i", PERM), permuted),
    "pshuffle": (lambda x: lax.pshuffle(x, "i", [3, 0, 2, 1]), lambda x: x[[3, 0, 2, 1]]),
    "all_gather": (lambda x: lax.all_gather(x, "i"), same),
    "all_gather at -1": (
        lambda x: lax.all_gather(x, "i", axis=-1),
        lambda x: same(np.moveaxis(x, 0, -1)),
    ),
    "all_gather tiled": (
        lambda x: lax.all_gather(x, "i", axis=-1, tiled=True),
        lambda x: same(np.concatenate(x, -1)),
    ),
    "all_to_all": (
        lambda x: lax.all_to_all(x, "i", 0, -1),
        lambda x: np.moveaxis(x.swapaxes(0, 1), 1, 2),
    ),
    "all_to_all tiled": (
        lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True),
        lambda x: np.stack([np.concatenate(x[:, :, 2 * i : 2 * i + 2]) for i in range(4)]),
    ),
    "pswapaxes": (lambda x: lax.pswapaxes(x, "i", 0), lambda x: x.swapaxes(0, 1)),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "i"), lambda x: x.sum(0)),
    "psum_scatter tiled": (
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=-1, tiled=True),
        lambda x: np.stack(np.split(x.sum(0), 4, -1)),
    ),
    "axis_index": (
        lambda x: x[0, 0] * 0 + lax.axis_index("i"),
        lambda x: np.arange(4, dtype=np.float32),
    ),
    "axis_size": (lambda x: x * lax.axis_size("i"), lambda x: x * 4),
}


@pytest.mark.parametrize("case", CASES)
def test_values(case):
    """Eagerly, compiled, compiled within, and mapped along another axis."""
    f, reference = CASES[case]
    want = reference(X)
    for run in (
        st.vmap(f, axis_name="i"),
        st.jit(st.vmap(f, axis_name="i")),
        st.vmap(st.jit(f), axis_name="i"),
    ):
        np.testing.assert_allclose(run(X), want, rtol=1e-5, atol=1e-6)
    other = st.vmap(f, 2, 0, axis_name="i")(np.moveaxis(X, 0, 2))
    np.testing.assert_allclose(other, want, rtol=1e-5, atol=1e-6)


# Several names

Y = RNG.normal(size=(2, 3, 6, 12)).astype(np.float32)
FLAT = Y.reshape(6, 6, 12)
TUPLES = {
    "psum": lax.psum,
    "pmean": lax.pmean,
    "pmax": lax.pmax,
    "pmin": lax.pmin,
    "ppermute": lambda x, i: lax.ppermute(x, i, [(0, 5), (5, 1), (2, 2)]),
    "pshuffle": lambda x, i: lax.pshuffle(x, i, [3, 0, 2, 1, 5, 4]),
    "all_gather": lambda x, i: lax.all_gather(x, i, axis=1, tiled=True),
    "all_to_all": lambda x, i: lax.all_to_all(x, i, 1, 0, tiled=True),
    "psum_scatter": lax.psum_scatter,
    "axis_index": lambda x, i: x + lax.axis_index(i),
    "axis_size": lambda x, i: x * lax.axis_size(i),
}


@pytest.mark.parametrize("case", TUPLES)
def test_several_names_are_one_axis(case):
    """The examples of ("i", "j") are those of one axis, the last counting fastest."""
    f = TUPLES[case]
    want = st.vmap(lambda x: f(x, "ij"), axis_name="ij")(FLAT)
    both = lambda names: st.vmap(st.vmap(lambda x: f(x, names), axis_name="j"), axis_name="i")
    for names in (("i", "j"), ["i", "j"]):
        got = st.jit(both(names))(Y)
        np.testing.assert_allclose(np.reshape(got, want.shape), want, rtol=1e-5, atol=1e-6)
    turned = both(("j", "i"))(Y)
    want = st.vmap(lambda x: f(x, "ij"), axis_name="ij")(np.swapaxes(Y, 0, 1).reshape(FLAT.shape))
    got = np.swapaxes(turned, 0, 1).reshape(want.shape)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_no_name_at_all():
    assert lax.psum(3, ()) == 3 and lax.axis_size(()) == 1
    np.testing.assert_array_equal(lax.psum(X, ()), X)
    np.testing.assert_array_equal(lax.pmax(X, ()), X)
    assert int(lax.axis_index(())) == 0


# Groups

GROUPS = [[0, 3], [2, 1]]
UNEQUAL = [[0, 3, 2], [1]]


def by_group(f, groups):
    """What ``f`` of a group's examples gives for each of them."""

    def of_all(x):
        out = {}
        for group in groups:
            out.update(zip(group, f(x[group]), strict=True))
        return np.stack([out[i] for i in range(len(x))])

    return of_all


each = lambda f: lambda x: [f(x)] * len(x)
GROUPED = {
    "psum": (lax.psum, each(lambda x: x.sum(0))),
    "pmean": (lax.pmean, each(lambda x: x.mean(0))),
    "pmax": (lax.pmax, each(lambda x: x.max(0))),
    "pmin": (lax.pmin, each(lambda x: x.min(0))),
    "all_gather": (lax.all_gather, each(lambda x: x)),
    "all_to_all": (
        lambda x, i, **k: lax.all_to_all(x, i, 1, 0, tiled=True, **k),
        lambda x: [np.concatenate(part) for part in np.split(x, len(x), 2)],
    ),
    "pswapaxes": (
        lambda x, i, **k: lax.pswapaxes(x[:2], i, 0, **k),
        lambda x: x[:, :2].swapaxes(0, 1),
    ),
    "psum_scatter": (
        lambda x, i, **k: lax.psum_scatter(x, i, scatter_dimension=1, tiled=True, **k),
        lambda x: np.split(x.sum(0), len(x), 1),
    ),
}


@pytest.mark.parametrize("case", GROUPED)
def test_groups(case):
    f, reference = GROUPED[case]
    one = lambda x: f(x, "i", axis_index_groups=GROUPS)
    want = by_group(reference, GROUPS)(X)
    for run in (st.vmap(one, axis_name="i"), st.jit(st.vmap(one, axis_name="i"))):
        np.testing.assert_allclose(run(X), want, rtol=1e-5, atol=1e-6)
    slope = st.vmap(st.grad(lambda x: (one(x) ** 2).sum()), axis_name="i")(X)
    outside = st.grad(lambda x: (st.vmap(one, axis_name="i")(x) ** 2).sum())(X)
    np.testing.assert_allclose(slope, outside, rtol=1e-5, atol=1e-5)


# Refusals


def along(f, x=X):
    return lambda: st.vmap(f, axis_name="i")(x)


MISTAKES = [
    (lambda: lax.psum(X, "i"), NameError, r"psum: unbound axis name 'i'; bound here are: none\."),
    (
        along(lambda x: lax.all_gather(x, ("i", "j"))),
        st.errors.UnboundAxisError,
        r"all_gather: unbound axis name 'j'; bound here are: 'i'\..*vmap\(fun, axis_name='j'\)",
    ),
    (along(lambda x: lax.axis_index("j")), NameError, "axis_index: unbound axis name 'j'"),
    (along(lambda x: lax.axis_size([["i"]])), NameError, "unbound axis name"),
    (along(lambda x: lax.psum(x, ("i", "i"))), ValueError, "psum: .* names an axis twice"),
    (along(lambda x: lax.psum("a", "i")), TypeError, "psum: a leaf of x must be an array"),
    (along(lambda x: lax.pmean("a", "i")), TypeError, "pmean: a leaf of x must be an array"),
    (
        along(lambda x: lax.pmax(x * 1j, "i")),
        TypeError,
        r"pmax: expected bool or float or int or uint, got complex64\[4,8\]",
    ),
    (
        along(lambda x: lax.psum_scatter(x > 0, "i")),
        TypeError,
        r"psum_scatter: expected .*, got bool\[4,8\]",
    ),
    (
        along(lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2, 2]])),
        ValueError,
        r"psum: axis_index_groups must have each of the 4 indices once, got \[\[0, 1\], \[2, 2\]\]",
    ),
    (
        along(lambda x: lax.all_gather(x, "i", axis_index_groups=UNEQUAL)),
        ValueError,
        r"all_gather: groups .* must have one size, got sizes \[3, 1\]",
    ),
    (
        along(lambda x: lax.ppermute(x, "i", [(0, 1), (2, 1)])),
        ValueError,
        "ppermute: perm must have each of the 4 indices at most once",
    ),
    (along(lambda x: lax.ppermute(x, "i", [(0, 4)])), ValueError, "each of the 4 indices"),
    (
        along(lambda x: lax.pshuffle(x, "i", [0, 1])),
        ValueError,
        r"pshuffle: perm must have each of the 4 indices once, got \[0, 1\]",
    ),
    (
        along(lambda x: lax.all_to_all(x, "i", 1, 0)),
        ValueError,
        r"all_to_all: split_axis 1 of float32\[4,8\] has size 8; expected 4, an entry for each",
    ),
    (
        along(lambda x: lax.all_to_all(x[:3], "i", 0, 0, tiled=True)),
        ValueError,
        r"split_axis 0 of float32\[3,8\] has size 3; expected a multiple of 4",
    ),
    (
        along(lambda x: lax.psum_scatter(x, "i", scatter_dimension=2)),
        ValueError,
        "psum_scatter: axis 2 is out of bounds",
    ),
    (
        along(lambda x: lax.all_gather(x, "i", axis=3)),
        ValueError,
        "all_gather: axis 3 is out of bounds",
    ),
    (
        along(lambda x: lax.all_gather(x, "i", axis=2, tiled=True)),
        ValueError,
        "all_gather: axis 2 is out of bounds",
    ),
]


@pytest.mark.parametrize("call, error, message", MISTAKES, ids=range(len(MISTAKES)))
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=f"(?s){message}"):
        call()


def test_no_examples():
    over = lambda f, x: st.vmap(f, axis_name="i")(x).shape
    empty = np.zeros((0, 3), np.float32)
    assert over(lambda x: lax.psum(x, "i"), empty) == (0, 3)
    assert over(lambda x: lax.all_gather(x, "i"), empty) == (0, 0, 3)
    assert over(lambda x: lax.ppermute(x, "i", []), empty) == (0, 3)
    assert over(lambda x: lax.all_to_all(x, "i", 0, 1), np.zeros((0, 0, 3))) == (0, 3, 0)
    total = st.vmap(lambda x: lax.psum(x, "i"), out_axes=None, axis_name="i")(empty)
    np.testing.assert_array_equal(total, np.zeros(3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: lax.ppermute(x, "i", 3), "ppermute: perm must be a sequence of .source"),
        (lambda x: lax.ppermute(x, "i", [0, 1]), "ppermute: perm must be a sequence of integers"),
        (lambda x: lax.pshuffle(x, "i", 3), "pshuffle: perm must be a sequence of integers, got 3"),
        (lambda x: lax.all_gather(x, "i", axis_index_groups=3), "all_gather: axis_index_groups"),
    ],
)
def test_arguments_of_the_wrong_kind_are_named(call, message):
    with pytest.raises(TypeError, match=message):
        st.vmap(call, axis_name="i")(np.arange(3))


def test_pairs_of_more_than_two_are_refused():
    with pytest.raises(ValueError, match=r"ppermute: perm must be a sequence of \(source, dest"):
        st.vmap(lambda x: lax.ppermute(x, "i", [(0, 1, 2)]), axis_name="i")(np.arange(3))


def test_pswapaxes_is_named_by_its_errors():
    x = np.ones((2, 3))
    with pytest.raises(ValueError, match=r"^pswapaxes: axis 0 of .* has size 3; expected 2"):
        st.vmap(lambda x: lax.pswapaxes(x, "i", 0), axis_name="i")(x)
    with pytest.raises(ValueError, match=r"^pswapaxes: axis 7 is out of bounds"):
        st.vmap(lambda x: lax.pswapaxes(x, "i", 7), axis_name="i")(x)
    with pytest.raises(NameError, match=r"^pswapaxes: unbound axis name 'i'"):
        lax.pswapaxes(x, "i", 0)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_entries_for_each_example_along_any_axis(axis):
    x = np.arange(4 * 6 * 8, dtype=np.float32).reshape(4, 6, 8)
    rows = _split_rows(as_value(x), axis, 2, True, "all_to_all", "split_axis")
    np.testing.assert_array_equal(rows, np.stack(np.split(x, 2, axis)))
