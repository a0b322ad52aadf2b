"""Arrays that differ along their first axis, as one."""

import copy
import datetime as dt
import pickle

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.varying_sizes.ragged import as_column, group_rows, room_for
from tests.frames import Frame, Series, Unknown

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


def test_made_of_lists_and_series():
    r = st.ragged([[1.0, 2.0], (3,), Series([4, 5]), np.array([6], object)])
    assert repr(r) == "Ragged(float32[4,*], lengths=[2, 1, 2, 1])"
    np.testing.assert_array_equal(r.values, np.arange(1.0, 7))
    nested = st.ragged([[[1, 2], [3, 4]], [[5, 6]]])
    assert repr(nested) == "Ragged(int32[2,*,2], lengths=[2, 1])"
    assert repr(st.ragged(r)) == repr(r), "its arrays are a list of arrays"
    assert st.ragged([[True], [False, True]]).dtype == bool
    with st.enable_x64():
        assert st.ragged([[1.0], np.ones(2)]).dtype == np.float64


def test_several_places(r):
    for index, wanted in [
        (slice(1, 3), [1, 2]),
        (slice(None, None, -2), [3, 1]),
        ([2, 0, 2, -1], [2, 0, 2, 3]),
        (np.array([3], np.uint8), [3]),
        (snp.array([1, 0]), [1, 0]),
        ([True, False, False, True], [0, 3]),
    ]:
        part = r[index]
        assert isinstance(part, st.Ragged) and len(part) == len(wanted)
        for one, i in zip(part.to_list(), wanted, strict=True):
            np.testing.assert_array_equal(one, PARTS[i])
    again = st.ragged(r.to_list())
    np.testing.assert_array_equal(again.values, r.values)
    np.testing.assert_array_equal(again.lengths, r.lengths)
    slope = st.grad(lambda r: (r[[1, 1, 3]].pad(0) ** 2).sum())(r).like(r)
    for i, times in enumerate([0, 4, 0, 2]):
        np.testing.assert_allclose(slope[i], times * PARTS[i], rtol=1e-6)


@pytest.mark.parametrize(
    ("index", "kind", "match"),
    [
        (4, IndexError, "of 4 arrays has none there: index 4 is out of bounds"),
        ([0, -5], IndexError, "index -5 is out of bounds"),
        (1.5, IndexError, "must be of integer"),
        ((0, 1), IndexError, r"one index, and then there is an array: r\[i\]\[j\]"),
        ([], ValueError, "one array or more"),
        (slice(2, 2), ValueError, "one array or more"),
        ([[0, 1]], ValueError, r"along one axis, got shape \(1, 2\)"),
    ],
)
def test_places_that_are_refused(r, index, kind, match):
    with pytest.raises(kind, match=match):
        r[index]


def test_groups_of_a_table():
    table = {
        "who": ["bo", "al", "bo", "cy", "al"],
        "x": np.array([1.0, 2.0, 3.0, 4.0, 5.0]),
        "n": Series([1, 2, 3, 4, 5]),
        "at": RNG.normal(size=(5, 2)),
    }
    for source in (table, Frame(table)):
        r = st.ragged.from_table(source, by="who", columns="x")
        assert [x.tolist() for x in r] == [[2.0, 5.0], [1.0, 3.0], [4.0]]
        both = st.ragged.from_table(source, "who", ["n", "x"])
        assert repr(both) == "Ragged(float32[3,*,2], lengths=[2, 2, 1])"
        np.testing.assert_array_equal(both[0], [[2, 2], [5, 5]])
    places = st.ragged.from_table(table, "n", "at")
    assert places.pad().shape == (5, 1, 2)
    assert st.ragged.from_table(table, "n", "n").dtype == np.int32


@pytest.mark.parametrize(
    ("make", "kind", "match"),
    [
        (lambda: st.ragged(5), TypeError, "expected a list of arrays, got int"),
        (lambda: st.ragged([1.0, 2.0]), ValueError, "array 0 is float32.* has no axis"),
        (lambda: st.ragged([]), ValueError, "expected one array or more, got none"),
        (lambda: st.ragged([st.ragged([[1]])]), TypeError, "array 0 is ragged itself"),
    ],
)
def test_lists_that_are_refused(make, kind, match):
    with pytest.raises(kind, match=match):
        make()


@pytest.mark.parametrize(("lengths", "least"), [([2, 1, 3], 1), ([2, 0, 3], 0)])
def test_the_least_length_is_looked_up(lengths, least):
    r = st.ragged([snp.ones(n) for n in lengths])
    made = st.jit(st.vmap(snp.sin))(r)
    assert made._at_least() == made._at_least() == least


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
    lengths = [*[10] * 999, 5000]
    r = st.ragged([np.zeros((n, 8), np.float32) for n in lengths])
    elements, counts = 4 * 8 * sum(lengths), 4 * len(lengths)
    assert elements + counts <= r.nbytes <= 1.125 * elements + counts

    same = st.vmap(lambda x: x + 1)
    for other in (r[:], same(r), st.jit(same)(r), st.lax.map(lambda x: -x, r[-20:])):
        held = 4 * 8 * int(other.lengths.sum())
        assert held <= other.nbytes <= 1.125 * held + 4 * len(other)
    half = st.vmap(lambda x: x[::2])(r)
    assert half.nbytes <= 1.125 * 4 * 8 * int(half.lengths.sum()) + counts
    slope = st.grad(lambda r: (r.pad(0, 4) ** 2).sum())(r).like(r)
    assert slope.nbytes == r.nbytes


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


def test_lengths_of_another(r):
    ones = st.ragged([np.ones(n, np.float32) for n in LENGTHS])
    product = lambda r, ones: st.vmap(lambda x, y: y @ x)(r, ones.like(r))
    wanted = [x.sum(0) for x in PARTS]
    for run in (product, st.jit(product)):
        np.testing.assert_allclose(run(r, ones), wanted, rtol=1e-5)
    assert ones.like(r).lengths is r.lengths
    with pytest.raises(ValueError, match=r"lengths of Ragged.*\[1, 3\]\) are not those of Ragged"):
        st.ragged([[1], [1, 2, 3]]).like(st.ragged([[1, 2, 3], [1]]))


def test_saved_and_loaded(r, tmp_path):
    path = tmp_path / "r.safetensors"
    data = {"x": r, "more": [st.ragged([[1, 2], [3]]), (np.ones(2), 7)]}
    st.save(path, data)
    assert set(st.files.load_header(path).arrays) == {
        "x.values", "x.lengths", "more.0.values", "more.0.lengths", "more.1.0", "more.1.1"
    }  # fmt: skip
    for back in (st.load(path), st.load(path, data)):
        assert repr(back["x"]) == repr(r) and repr(back["more"][0]) == repr(data["more"][0])
        np.testing.assert_array_equal(back["x"].values, r.values)
        assert back["more"][1][1] == 7
        np.testing.assert_allclose(
            st.vmap(lambda x: x.sum(0))(back["x"]), [x.sum(0) for x in PARTS], rtol=1e-5
        )
    st.save(path, r)
    np.testing.assert_array_equal(st.load(path).values, r.values)


def test_loaded_like_another_of_the_same_room(tmp_path):
    path = tmp_path / "r.safetensors"
    long, even = (st.ragged([np.ones(n, np.float32), np.ones(40 - n)]) for n in (39, 20))
    assert long._most > even._most and long._values.shape == even._values.shape
    st.save(path, long)
    np.testing.assert_array_equal(st.vmap(snp.sum)(st.load(path, even)), [39, 1])
    with pytest.raises(ValueError, match=r"values: expected float32\[8\], got float32\[40\]"):
        st.load(path, st.ragged([[1.0], [2.0]]))


def test_a_file_whose_lengths_are_not_those_of_its_elements(tmp_path):
    path = tmp_path / "r.safetensors"
    for lengths, match in ([30, 30], "add up to 60, and there are 40"), ([-1, 1], "has length -1"):
        r = st.ragged([np.ones(20), np.ones(20)])
        r._lengths = snp.array(lengths)
        st.save(path, {"x": r})
        with pytest.raises(ValueError, match=f"load: .*{match}"):
            st.load(path)


def test_shown_in_short(r):
    many = st.ragged([np.ones(1 + i % 3) for i in range(10_000)])
    assert repr(many) == "Ragged(float32[10000,*], lengths=[1, 2, 3, 1, 2, 3, …])"
    assert repr([r[:1]]) == "[Ragged(float32[1,*,2], lengths=[3])]"
    text = str(st.make_graph(st.vmap(lambda x: x * 2))(r))
    assert "sized_call" in text and "f32[n,2]" in text


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: st.ragged([]), "one array or more, got none"),
        (lambda: st.ragged([np.ones(2), np.ones((2, 2))]), "one shape but for axis 0"),
        (lambda: st.ragged.from_padded(np.ones((2, 3)), [1, -1]), "array 1 has length -1"),
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


def test_at_most_makes_one_program_for_batches_of_all_lengths():
    traced = []

    def f(r):
        traced.append(1)
        return st.vmap(lambda x: x[::2].sum())(r)

    g = st.jit(f)
    for lengths in ([3, 1], [20, 2], [40, 1]):
        parts = [snp.arange(float(n)) for n in lengths]
        r = st.ragged([*parts, snp.ones(41 - sum(lengths))] if sum(lengths) < 40 else parts)
        r = st.ragged(parts).at_most(40)
        np.testing.assert_allclose(g(r), [x[::2].sum() for x in parts])
        np.testing.assert_array_equal(r.values, np.concatenate(parts))
    assert len(traced) < 3 + 1
    wide = st.vmap(lambda x: x[::2])(st.ragged([snp.arange(5.0), snp.ones(2)]))
    assert [x.tolist() for x in wide.at_most(9).to_list()] == [[0.0, 2.0, 4.0], [1.0]]
    traced_wide = st.jit(lambda r: st.vmap(lambda x: x[1:])(r).at_most(30))
    got = traced_wide(st.ragged([snp.arange(5.0), snp.ones(2)]))
    assert [x.tolist() for x in got.to_list()] == [[1.0, 2.0, 3.0, 4.0], [1.0]]


def test_at_most_refuses_less_than_the_longest():
    r = st.ragged([snp.ones(5), snp.ones(2)])
    assert r.at_most(5).at_most(7).lengths.tolist() == [5, 2]
    for n in (4, 0, -1):
        with pytest.raises(ValueError, match="longest must be 5 or more"):
            r.at_most(n)
    with pytest.raises(ValueError, match="longest must be 8 or more"):
        st.jit(lambda r: r.at_most(6))(r)
    with pytest.raises(TypeError, match="longest"):
        r.at_most(7.5)


def test_tables_of_positions_for_traced_lengths():
    table = snp.arange(20.0).reshape(10, 2)
    f = lambda x: ((x + table[: x.shape[0]]) ** 2).sum()
    parts = [snp.ones((n, 2)) for n in (9, 10, 1)]
    with pytest.raises(st.errors.SizeError, match="at_most"):
        st.jit(st.vmap(f))(st.ragged(parts))
    slopes = st.jit(st.grad(lambda r: st.vmap(f)(r).sum()))(st.ragged(parts).at_most(10))
    for got, x in zip(slopes.like(st.ragged(parts)).to_list(), parts, strict=True):
        np.testing.assert_allclose(got, st.grad(f)(x), rtol=1e-6)


def test_arrays_without_elements(tmp_path):
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    r = st.ragged([x, x[:0], x[:2]])
    assert repr(r) == "Ragged(float32[3,*,2], lengths=[3, 0, 2])"
    assert [len(part) for part in r] == [3, 0, 2] and r[1].shape == (0, 2)
    np.testing.assert_array_equal(r.values, [*x, *x[:2]])
    padded = np.stack([x, x * 0 - 1, np.stack([*x[:2], -np.ones(2)])])
    np.testing.assert_array_equal(r.pad(-1.0), padded)
    np.testing.assert_array_equal(r[[2, 1]].lengths, [2, 0])
    st.save(tmp_path / "r.safetensors", {"x": r, "none": r[1:2]})
    read = st.load(tmp_path / "r.safetensors")
    np.testing.assert_array_equal(read["x"].pad(-1.0), padded)
    assert read["none"].lengths.tolist() == [0] and read["none"].pad().shape == (1, 0, 2)
    assert read["none"].values.shape == (0, 2)
    copied = st.tree.map(lambda x: x, r)
    np.testing.assert_array_equal(copied.pad(-1.0), padded)
    np.testing.assert_array_equal(st.ragged.from_padded(padded, [3, 0, 2]).values, r.values)
    slope = st.grad(lambda r: st.vmap(lambda x: (x**2).sum())(r).sum())(r).like(r)
    np.testing.assert_array_equal(slope.values, 2 * np.asarray(r.values))
    total, sums = st.lax.scan(lambda c, x: (c + x.sum(), snp.cumsum(x, 0)), 0.0, r)
    assert float(total) == 21 and sums.lengths.tolist() == [3, 0, 2]
    np.testing.assert_array_equal(st.lax.map(lambda x: x.sum(), r), [15, 0, 6])
    np.testing.assert_array_equal(st.vmap(lambda x, w: x.sum() * w)(r, np.arange(3)), [0, 0, 12])


def test_what_has_elements_compiles_as_before():
    """Whether some array has none is one thing more that programs are compiled for."""
    count = []

    @st.jit
    def f(r):
        count.append(1)
        return st.vmap(snp.sum)(r)

    full, other = st.ragged([[1.0, 2.0], [3.0]]), st.ragged([[1.0], [3.0, 4.0, 5.0]])
    some = st.ragged([[1.0, 2.0], []])
    assert [f(r).tolist() for r in (full, other, some)] == [[3, 3], [1, 12], [3, 0]]
    assert len(count) == 2
    f(st.ragged([[], [2.0]])), f(st.vmap(lambda x: -x)(some)), f(some[:1])
    assert len(count) == 3  # of one array


ELEMENTS = {"one behind the other": lambda r: r, "in a rectangle": lambda r: r._spread()}


@pytest.mark.parametrize("lie", ELEMENTS.values(), ids=ELEMENTS)
def test_wherever_the_elements_lie(r, lie):
    """Members of an ensemble have theirs in a rectangle; for all else it is the same array."""
    x = lie(r)
    assert repr(x) == "Ragged(float32[4,*,2], lengths=[3, 7, 1, 5])" and x.ndim == 3
    assert x._spread()._values.shape == (4, 8, 2), "as long as the bucket of the longest"
    assert x.nbytes == 4 * (x._values.size + 4)
    for length in (1, 2, 6, 7, 8, 9, 20, None):
        rows = x.pad(-1, length)
        assert rows.shape == (4, length or 7, 2)
        for row, part in zip(rows, PARTS, strict=True):
            np.testing.assert_array_equal(row[: len(part)], part[:length])
            assert (np.asarray(row[len(part) :]) == -1).all()
    np.testing.assert_array_equal(x.values, np.concatenate(PARTS))
    np.testing.assert_array_equal(x.like(r).values, np.concatenate(PARTS))
    for one, part in zip(x, PARTS, strict=True):
        np.testing.assert_array_equal(one, part)
    for index in ([2, 0, 2, -1], slice(1, 3), [1]):
        some = x[index]
        wanted = [PARTS[i] for i in np.arange(4)[index]]
        np.testing.assert_array_equal(some.lengths, [len(part) for part in wanted])
        np.testing.assert_array_equal(some.values, np.concatenate(wanted))
    longer = x.at_most(30)
    assert longer._most == 30 and longer._spread()._values.shape == (4, 30, 2)
    np.testing.assert_array_equal(longer.values, np.concatenate(PARTS))
    again = pickle.loads(pickle.dumps(x))
    assert again._wide == x._wide and again._most == x._most
    np.testing.assert_array_equal(again.pad(0, 5), x.pad(0, 5))
    np.testing.assert_allclose(
        st.vmap(lambda x: x.sum(0))(x), [part.sum(0) for part in PARTS], rtol=1e-5
    )


@pytest.mark.parametrize("lie", ELEMENTS.values(), ids=ELEMENTS)
def test_arrays_that_are_chosen_for_members(r, lie):
    index = np.array([[3, 0], [1, 1], [2, 0]], np.int32)
    chosen = lie(r)._at(snp.array(index))
    np.testing.assert_array_equal(chosen._lengths, np.array(LENGTHS)[index])
    assert chosen._values.shape == (3, 2, 8, 2) and chosen._most == 8 and chosen._wide
    for at, i in np.ndenumerate(index):
        np.testing.assert_array_equal(chosen._values[at][: LENGTHS[i]], PARTS[i])
    row = lie(r)._at(snp.array(index[0]))
    np.testing.assert_array_equal(row.values, np.concatenate([PARTS[3], PARTS[0]]))
    assert row._room == 16 and row._packed(8)._room == 8


def test_a_derivative_of_a_shorter_rectangle(r):
    """What is cut off has the derivative 0, wherever the elements lie."""
    for lie in ELEMENTS.values():
        slope = st.grad(lambda r: (lie(r).pad(0, 3) ** 2).sum())(r).like(r)  # noqa: B023
        for one, part in zip(slope, PARTS, strict=True):
            wanted = np.where(np.arange(len(part))[:, None] < 3, 2 * part, 0)
            np.testing.assert_allclose(one, wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("total", "room"),
    [(0, 8), (1, 8), (8, 8), (9, 16), (127, 128), (128, 128), (129, 144), (255, 256), (257, 288)],
)
def test_room_for_elements(total, room):
    assert room_for(total) == room
    assert len({room_for(n) for n in range(total + 1)}) <= 16 + 8 * max(0, total.bit_length() - 7)


# Lists, series and columns of tables


column = lambda x: as_column(x, "f", "x")
groups = lambda table, by="id", columns="x": group_rows(table, by, columns, "f")


@pytest.mark.parametrize(
    ("x", "dtype", "shape"),
    [
        ([1, 2], np.int32, (2,)),
        ([1, 2.5], np.float32, (2,)),
        (((1.0, 2.0), (3.0, 4.0)), np.float32, (2, 2)),
        ([True], np.bool_, (1,)),
        ([1j], np.complex64, (1,)),
        ([snp.ones(2), snp.ones(2)], np.float32, (2, 2)),
        (Series([1, 2], np.int64), np.int32, (2,)),
        (Series([1, 2.0], object), np.float32, (2,)),
        (Series([], object), np.float32, (0,)),
        (np.ones(3, ml_dtypes.bfloat16), ml_dtypes.bfloat16, (3,)),
        (snp.ones(3), np.float32, (3,)),
    ],
)
def test_numbers(x, dtype, shape):
    value = column(x)
    assert value.dtype == dtype and value.shape == shape


@pytest.mark.parametrize(
    ("x", "kind", "match"),
    [
        (["a", "b"], TypeError, r"f: x must hold numbers, got 'a' .* number the strings first"),
        (Series([1, "a"], object), TypeError, "got 'a' in dtype object: number the strings"),
        ([1.0, None], TypeError, "got None in dtype object: leave missing values out"),
        (Series([1, Unknown()], object), TypeError, "leave missing values out"),
        (Series([dt.date(2020, 1, 2)], "M8[D]"), TypeError, r"date\(2020.* convert times"),
        (Series([{}], object), TypeError, "got {} in dtype object: convert it"),
        ([2**80], TypeError, "convert it to a dtype of numbers"),
        (
            [2**40, 1],
            OverflowError,
            r"integers from 1 to 1099511627776, int64\[2\], which do not fit in int32",
        ),
        ([[1], [2, 3]], ValueError, "list of lists that differ in shape.* pad them"),
        (Series([1, 2])._elements.view(np.ma.MaskedArray), TypeError, "mask"),
        ("ab", TypeError, "must be an array or a number; got builtins.str"),
    ],
)
def test_columns_that_are_refused(x, kind, match):
    with pytest.raises(kind, match=match):
        column(x)


def test_lists_of_different_lengths_in_a_series():
    x = np.empty(2, object)
    x[:] = [[1], [2, 3]]
    with pytest.raises(TypeError, match="flatten or pad what is in it"):
        column(x)


def test_large_integers_with_64_bits():
    with st.enable_x64():
        assert column([2**40]).dtype == np.int64


@pytest.mark.parametrize(
    "ids",
    [
        [7, 3, 7, 5],
        ["c", "a", "c", "b"],
        np.array(["c", "a", "c", "b"], object),
        np.array(["2020-03", "2020-01", "2020-03", "2020-02"], "M8[M]"),
        snp.array([2.5, 0.5, 2.5, 1.5]),
        Series([b"c", b"a", b"c", b"b"]),
        [(1, 2)[i] for i in (0, 0, 0, 0)],
    ],
)
def test_rows_of_one_id_are_together_and_in_their_order(ids):
    rows, counts, weak = groups({"id": ids, "x": [10, 11, 12, 13]})
    if len(counts) == 1:
        assert rows.tolist() == [10, 11, 12, 13] and counts.tolist() == [4]
    else:
        assert rows.tolist() == [11, 13, 10, 12] and counts.tolist() == [1, 1, 2]
    assert rows.dtype == np.int32 and not weak


def test_several_columns_are_the_last_axis():
    table = {"id": [1, 0], "x": [1, 2], "y": [True, False], "z": np.array([0.5, 1.5])}
    rows, _, _ = groups(table, columns=["x", "y", "z"])
    np.testing.assert_array_equal(rows, [[2, 0, 1.5], [1, 1, 0.5]])
    assert rows.dtype == np.float32
    assert groups(table, columns=["x"])[0].shape == (2, 1)
    assert groups(table, columns=("x", "x"))[0].shape == (2, 2)
    wide = {"id": [1, 0], "x": np.ones((2, 3)), "y": np.ones((2, 3))}
    assert groups(wide)[0].shape == (2, 3) and groups(wide, columns=["x", "y"])[0].shape == (
        2,
        3,
        2,
    )


@pytest.mark.parametrize(
    ("call", "kind", "match"),
    [
        (
            lambda: groups({"i": [1], "x": [2]}),
            ValueError,
            "by is 'id', and the table has 'i', 'x'",
        ),
        (lambda: groups(Frame({"id": [1]})), ValueError, "columns is 'x', and the table has 'id'"),
        (lambda: groups({"id": [1], "x": [2]}, columns=["x", 3]), ValueError, "columns is 3, and"),
        (lambda: groups({"id": [1]}, columns=[]), ValueError, "a list of names, got none"),
        (lambda: groups([1, 2]), TypeError, "a DataFrame or a dictionary of columns; got list"),
        (lambda: groups({"id": [], "x": []}), ValueError, r"one row or more; got shape \(0,\)"),
        (lambda: groups({"id": [[1]], "x": [1]}), ValueError, r"one row or more; got shape \(1, 1"),
        (
            lambda: groups({"id": ["a", None], "x": [1, 2]}),
            ValueError,
            r"no id in row 1 \(1 in all",
        ),
        (lambda: groups({"id": [np.nan, 1], "x": [1, 2]}), ValueError, "no id in row 0"),
        (
            lambda: groups({"id": Series([1, Unknown()], object), "x": [1, 2]}),
            ValueError,
            "no id in row 1",
        ),
        (
            lambda: groups({"id": np.array(["NaT", "2020"], "M8[ns]"), "x": [1, 2]}),
            ValueError,
            "no id in row 0",
        ),
        (
            lambda: groups({"id": np.array([1, "a"], object), "x": [1, 2]}),
            TypeError,
            "cannot be sorted",
        ),
        (
            lambda: groups({"id": [1, 2], "x": ["a", "b"]}),
            TypeError,
            "column 'x' must hold numbers",
        ),
        (lambda: groups({"id": [1, 2], "x": [1]}), ValueError, r"2 ids in 'id', and column 'x' is"),
        (
            lambda: groups({"id": [1, 2], "x": [1, 2], "y": np.ones((2, 2))}, columns=["x", "y"]),
            ValueError,
            r"column 'y' is float32\[2,2\]",
        ),
    ],
)
def test_tables_that_are_refused(call, kind, match):
    with pytest.raises(kind, match=match):
        call()


def test_there_is_a_length():
    with pytest.raises(ValueError, match="expected one length or more, got none"):
        st.ragged.from_padded(np.ones((0, 2)), np.array([], int))
