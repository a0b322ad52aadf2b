"""What is measured of tensors: the same for blocks of any length, and for any number of passes."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.merge.measuring import Measuring, in_runs
from stretto.merge.streams import UNIT, Source
from tests.merge import models

FLOAT32 = np.dtype(np.float32)
SIZE = 3 * UNIT + 17


def measuring(tmp_path, *arrays, base=None, most=1 << 20, rows=False, seed=0, **settings):
    sources = []
    for i, x in enumerate([*arrays, *([] if base is None else [base])]):
        models.save_file({"x": x}, tmp_path / f"{i}.safetensors")
        sources.append(Source(st.merge.Checkpoint(tmp_path / f"{i}.safetensors"), "x"))
    base_source = None if base is None else sources.pop()
    return Measuring(
        sources, base_source, settings, rows=rows, most=most, dtype=FLOAT32, seed=seed, name="x"
    )


def draw(seed, shape=SIZE):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("has_base", [False, True])
def test_products(tmp_path, has_base):
    x, y, base = draw(0), draw(1), draw(2)
    m = measuring(tmp_path, x, y, base=base if has_base else None)
    xs = [z - base * has_base for z in (x, y)]
    expected = [[np.dot(a.astype(float), b) for b in xs] for a in xs]
    np.testing.assert_allclose(m.products(), expected, 1e-5)


def _total(p):
    return in_runs(snp.stack(p.models)).swapaxes(0, 1)


def test_sums_do_not_depend_on_blocks(tmp_path):
    x, y = draw(0), draw(1)
    found = [measuring(tmp_path, x, y, most=m).sums(_total) for m in (1, 1 << 20, 1 << 30)]
    np.testing.assert_allclose(found[0], [x.sum(dtype=float), y.sum(dtype=float)], 1e-4)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def _same(p):
    return p.models[0]


def test_results_outlive_the_buffers_that_are_read_into(tmp_path):
    x = draw(0, 9 * UNIT)
    results = [r for _, r in measuring(tmp_path, x, most=1).run(_same)]
    np.testing.assert_array_equal(np.concatenate(results), x)


def _own(p):
    return abs(p.models[0])


def test_the_largest_of_one_model(tmp_path):
    x, y = draw(0), draw(1)
    m = measuring(tmp_path, x, y)
    for i, z in enumerate((x, y)):
        assert m.largest(_own, [1, 40], i) == np.sort(abs(z))[[-1, -40]].tolist()


@pytest.mark.parametrize("rows", [False, True])
def test_the_largest_of_more_than_has_room(tmp_path, rows):
    x = draw(0, (40, UNIT))
    m = measuring(tmp_path, x, most=100_000, rows=rows)
    flat = np.sort(abs(x), axis=None)
    assert m.largest(_own, [9, 50_000], None) == flat[[-9, -50_000]].tolist()


def _noise(p):
    return snp.stack([p.noise(i) for i in range(len(p.models))])


@pytest.mark.parametrize("rows", [False, True])
def test_noise_goes_by_place_model_and_seed(tmp_path, rows):
    x = draw(0, (600, 40))

    def noise(most, seed=0, only=None):
        m = measuring(tmp_path, x, x, most=most, rows=rows, seed=seed)
        blocks = [r.reshape(len(r), -1)[:, : b.size] for b, r in m.run(_noise, only=only)]
        return np.concatenate(blocks, axis=1)

    first = noise(1)
    assert first.shape == (2, x.size)
    np.testing.assert_array_equal(first, noise(1 << 30))
    np.testing.assert_array_equal(first[1:], noise(1 << 30, only=1))
    assert abs(first.mean() - 0.5) < 0.01
    assert (first >= 0).all()
    assert (first < 1).all()
    assert len(np.unique(first)) > 0.99 * first.size  # no place repeats another
    assert abs(np.corrcoef(first)[0, 1]) < 0.03
    assert (first != noise(1, seed=1)).mean() > 0.99


def _arithmetic(p):
    x, y = p.models
    number = p.settings["number"]
    return snp.stack([p.times(x, number) + y, p.over(x, number)])


def test_products_and_quotients_are_rounded_on_their_own(tmp_path):
    x, y = draw(0), draw(1)
    number = np.float32(1.1)
    m = measuring(tmp_path, x, y, number=np.float64(1.1))
    with st.enable_x64():
        for block, (total, quotient) in m.run(_arithmetic):
            own = slice(block.start, block.start + block.size)
            np.testing.assert_array_equal(total[: block.size], x[own] * number + y[own])
            np.testing.assert_array_equal(quotient[: block.size], x[own] / number)
