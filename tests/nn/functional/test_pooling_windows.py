"""Where windows lie, and the greatest element of each."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import stretto.numpy as snp
from stretto import grad, jit
from stretto.nn.functional.pooling import greatest_and_indices, table_of, window_of


@pytest.mark.parametrize(
    "n, k, stride, padding, dilation, ceil, starts",
    [
        (5, 2, 2, 0, 1, False, [0, 2]),
        (5, 2, 2, 0, 1, True, [0, 2, 4]),
        (5, 1, 3, 0, 1, True, [0, 3]),  # a third window would begin after the end
        (4, 2, 2, 1, 1, True, [-1, 1, 3]),
        (6, 2, 2, 0, 3, False, [0, 2]),
        (3, 4, 1, 0, 1, False, []),
    ],
)
def test_windows(n, k, stride, padding, dilation, ceil, starts):
    window = window_of(n, k, stride, padding, dilation, ceil)
    assert window.count(n) == len(starts)
    index, inside = table_of(n, window)
    true = np.array(starts).reshape(-1, 1) + np.arange(k) * dilation
    np.testing.assert_array_equal(inside, (true >= 0) & (true < n))
    np.testing.assert_array_equal(index[inside], true[inside])
    assert index.dtype == np.int32 and index.min(initial=0) >= 0 and index.max(initial=0) < n


def test_places_of_windows_of_padding_alone():
    index, inside = np.array([[0, 0], [1, 2]], np.int32), np.array([[False, True], [True, True]])
    values, places = greatest_and_indices(snp.array([[[-np.inf, 1.0, 3.0]]]), [(index, inside)])
    assert values.tolist() == [[[-np.inf, 3.0]]]
    assert places.tolist() == [[[0, 2]]]


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    settings=st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(0, 2), st.integers(1, 3)),
    values=st.sampled_from(["ties", "nan", "padding", "integers"]),
    seed=st.integers(0, 99),
)
def test_greatest_is_the_first_in_each_window(sizes, settings, values, seed):
    k, stride, padding, dilation = settings
    windows = [window_of(n, k, stride, padding, dilation, False) for n in sizes]
    tables = [table_of(n, w) for n, w in zip(sizes, windows, strict=True)]
    assume(all(len(index) and inside.any(1).all() for index, inside in tables))
    x = np.random.default_rng(seed).integers(0, 3, (2, 1, *sizes))
    if values != "integers":
        x = np.where(x == 2, {"ties": 2, "nan": np.nan, "padding": -np.inf}[values], x)
        x = np.where((values == "padding") & (seed % 2), -np.inf, x).astype(np.float32)
    x = x.astype(np.float32 if values != "integers" else np.int32)
    places = np.arange(np.prod(sizes)).reshape(sizes)
    counts = [len(index) for index, _ in tables]
    want, where = np.empty((2, 1, *counts), x.dtype), np.empty((2, 1, *counts), np.int32)
    for at in np.ndindex(*counts):
        inner = np.ix_(*[index[o][inside[o]] for o, (index, inside) in zip(at, tables)])
        lines = x[(..., *inner)].reshape(2, 1, -1)
        first = lines.argmax(-1)
        want[(..., *at)] = np.take_along_axis(lines, first[..., None], -1)[..., 0]
        where[(..., *at)] = places[inner].ravel()[first]
    for run in (lambda f: f, jit):
        found, found_at = run(lambda x: greatest_and_indices(x, tables))(snp.asarray(x))
        np.testing.assert_array_equal(found, want)
        np.testing.assert_array_equal(found_at, where)


@pytest.mark.parametrize("n, m", [(7, 3), (7, 5), (112, 3)])
def test_derivative_goes_to_the_first_of_equals(n, m):
    starts, ends = np.arange(m) * n // m, -(-(np.arange(m) + 1) * n // m)
    index = starts[:, None] + np.arange((ends - starts).max())
    table = np.minimum(index, ends[:, None] - 1), index < ends[:, None]
    ct = snp.arange(1.0, m + 1)
    found = grad(lambda x: (greatest_and_indices(x, [table])[0] * ct).sum())(snp.ones((1, 1, n)))
    want = np.zeros(n)
    np.add.at(want, starts, ct)
    np.testing.assert_array_equal(found[0, 0], want)
