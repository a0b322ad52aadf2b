"""Arrays that differ along their first axis, as one."""

import copy
import pickle

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

RNG = np.random.default_rng(0)
LENGTHS = [3, 7, 1, 5]
PARTS = [RNG.normal(size=(n, 2)).astype(np.float32) for n in LENGTHS]


@pytest.fixture
def r():
    return st.ragged(PARTS)


def test_made_of_a_list_and_taken_apart(r):
    assert repr(r) == "Ragged(float32[4,*,2], lengths=[3, 7, 1, 5])" and len(r) == 4
    assert r.dtype == np.float32 and r.ndim == 3
    for one, part in zip(r.to_list(), PARTS, strict=True):
        np.testing.assert_array_equal(one, part)
    np.testing.assert_array_equal(r[-1], PARTS[-1])
    np.testing.assert_array_equal([x.shape[0] for x in r], LENGTHS)
    np.testing.assert_array_equal(r.values, np.concatenate(PARTS))
    np.testing.assert_array_equal(r.lengths, LENGTHS)
    with pytest.raises(IndexError):
        r[4]
    assert st.ragged([np.array([1, 2]), np.array([2.5], "f4")]).dtype == np.float32


def test_rectangles(r):
    padded = r.pad(-1)
    assert padded.shape == (4, 7, 2)
    for row, part in zip(padded, PARTS, strict=True):
        np.testing.assert_array_equal(row[: len(part)], part)
        assert (np.asarray(row[len(part) :]) == -1).all()
    np.testing.assert_array_equal(r.pad(length=2), padded[:, :2] * (padded[:, :2] != -1))
    again = st.ragged.from_padded(padded, LENGTHS)
    np.testing.assert_array_equal(again.values, r.values)
    ids = np.repeat(np.arange(4), LENGTHS)
    np.testing.assert_array_equal(st.ragged.from_segments(r.values, ids).lengths, LENGTHS)


def test_it_holds_its_elements_and_no_rectangle():
    parts = [np.zeros((n, 8), np.float32) for n in (*[10] * 999, 5000)]
    r = st.ragged(parts)
    elements = sum(p.nbytes for p in parts)
    assert elements <= r.nbytes <= 1.13 * elements + 4 * 1000 + 256


def test_it_is_a_tree(r):
    leaves, structure = st.tree.flatten(r)
    assert len(leaves) == 2 and repr(st.tree.unflatten(structure, leaves)) == repr(r)
    doubled = st.tree.map(lambda x: x * 2 if x.dtype == np.float32 else x, r)
    np.testing.assert_array_equal(doubled[1], 2 * PARTS[1])
    for other in (copy.copy(r), copy.deepcopy(r), pickle.loads(pickle.dumps(r))):
        np.testing.assert_array_equal(other.values, r.values)
    out = st.jit(lambda r: r)(r)
    assert repr(out) == repr(r)
    assert st.jit(lambda r: r.pad(0, 9))(r).shape == (4, 9, 2)


def test_traced_and_derivatives(r):
    seen = []
    st.jit(lambda r: seen.append(repr(r)) or r.lengths)(r)
    assert seen == ["Ragged(float32[4,*,2], traced)"]
    with pytest.raises(st.errors.TracedValueError, match="lengths of a ragged array are traced"):
        st.jit(lambda r: r[0])(r)
    slope = st.grad(lambda r: (r.pad(0, 7) ** 2).sum())(r)
    assert repr(slope) == "Ragged(float32[4,*,2], a derivative)"
    with pytest.raises(ValueError, match=r"a derivative has no lengths: .*slope\.like\(x\)"):
        slope.to_list()
    for one, part in zip(slope.like(r).to_list(), PARTS, strict=True):
        np.testing.assert_allclose(one, 2 * part, rtol=1e-6)


def test_saved_and_loaded(r, tmp_path):
    st.save(tmp_path / "r.safetensors", {"x": r})
    back = st.load(tmp_path / "r.safetensors", {"x": r})
    np.testing.assert_array_equal(back["x"].values, r.values)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: st.ragged([]), "one array or more, got none"),
        (lambda: st.ragged([np.ones(2), np.ones((2, 2))]), "one shape but for axis 0"),
        (lambda: st.ragged([np.ones(2), np.ones(0)]), "array 1 has length 0"),
        (lambda: st.ragged.from_padded(np.ones((2, 3)), [1, 4]), "at most the size of axis 1"),
        (lambda: st.ragged.from_padded(np.ones((2, 3)), [1]), "one for each row"),
        (lambda: st.ragged.from_segments(np.ones(3), [0, 2, 2]), "count up from 0 without a gap"),
        (lambda: st.ragged.from_segments(np.ones(3), [1, 1, 2]), "must begin with 0, got 1"),
    ],
)
def test_what_is_refused(make, match):
    with pytest.raises(ValueError, match=match):
        make()
    with pytest.raises(TypeError, match="lengths must be integers"):
        st.ragged.from_padded(np.ones((2, 3)), [1.5, 2])


def test_elements_of_other_kinds():
    words = st.ragged([snp.array([1, 2, 3]), snp.array([4])])
    assert words.dtype == np.int32 and int(words[1][0]) == 4
    half = st.ragged([snp.ones(2, "bfloat16"), snp.ones(5, "bfloat16")])
    assert half.pad().dtype == snp.bfloat16 and half.pad().shape == (2, 5)
