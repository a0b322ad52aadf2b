"""The table of eager calls: what is entered, found, and let go of."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.eager import table
from stretto._engine.eager.table import OPERATORS, TABLE, eager_call, forget, keep
from stretto._engine.native import native
from stretto._engine.ops.trigonometric import SIN

needs_native = pytest.mark.skipif(native is None, reason="the extension was not built")


def len_of(*args):
    return len(args)


@pytest.fixture(autouse=True)
def emptied():
    forget()
    yield
    forget()


@needs_native
def test_a_function_enters_what_its_operator_finds():
    x = snp.ones(3)
    snp.add(x, x), 2.0 + x, snp.add(x, 1)
    rows = TABLE[OPERATORS["add"]]
    assert set(rows) == {x.type, float} and set(rows[x.type]) == {x.type, int}
    record = rows[float][x.type]
    assert (record.function, record.type, record.dtype) == (np.add, x.type, None)
    np.testing.assert_array_equal(2.0 + x, 3)
    np.testing.assert_array_equal(x + 1, 2)


@needs_native
def test_a_primitive_has_its_rule_and_the_dtype_of_the_result():
    x = snp.ones(3)
    snp.sin(x)
    record = TABLE[SIN][x.type]
    assert record.function is SIN.reference
    assert record.type is x.type and record.dtype is x.dtype


@needs_native
def test_reflected_operands_stand_in_the_order_of_the_operation():
    x, y = snp.array([5.0, 1.0]), snp.array([2.0, 2.0])
    for _ in range(2):
        np.testing.assert_array_equal(x.__rsub__(y), [-3, 1])
        np.testing.assert_array_equal(2 - x, [-3, 1])
        np.testing.assert_array_equal(x - 2, [3, -1])


@needs_native
def test_integers_are_found_within_the_dtype_alone():
    x = snp.ones(2, snp.int8)
    for _ in range(2):
        x + 1
        with pytest.raises(OverflowError, match="300 does not fit in int8"):
            x + 300
        with pytest.raises(OverflowError):
            snp.add(-(1 << 80), x)
    record = TABLE[OPERATORS["add"]][x.type][int]
    assert (record.least, record.most) == (-128, 127)


def test_forgotten_rows_are_entered_again():
    x = snp.ones(3)
    for _ in range(3):
        np.testing.assert_array_equal(x + x, 2)
        np.testing.assert_array_equal(snp.sin(x - 1), 0)
        forget()
        assert not any(TABLE.values())


def test_a_full_table_is_emptied(monkeypatch):
    monkeypatch.setattr(table, "CAPACITY", len(TABLE) + 2)
    x, lengths = snp.ones(3), []
    for f in (snp.sin, snp.cos, snp.exp, snp.tanh, snp.log) * 2:
        np.testing.assert_allclose(f(x), getattr(np, f.__name__)(np.ones(3)), rtol=1e-6)
        lengths.append(len(TABLE))
    assert max(lengths) == (table.CAPACITY if native else 0)


@needs_native
def test_different_ranks_are_forgotten_where_settings_ask_for_it():
    x, y = snp.ones((2, 3)), snp.ones(3)
    x + y
    assert y.type in TABLE[OPERATORS["add"]][x.type]
    with st.config(numpy_rank_promotion="raise"), pytest.raises(ValueError):
        x + y
    np.testing.assert_array_equal(x + y, 2)


@needs_native
def test_one_number_of_operands_is_kept_for_a_function():
    x = snp.ones(3).type
    keep("f", (x, x), np.add, x)
    keep("f", (x,), np.negative, x)
    assert set(TABLE["f"][x]) == {x}
    forget()
    keep("f", (x,), np.negative, x)
    keep("f", (x, x), np.add, x)
    assert TABLE["f"][x].function is np.negative


@needs_native
def test_calls_take_any_arguments_in_general():
    call = eager_call(len_of, "nothing is entered for it")
    x = snp.ones(2)
    assert [call(), call(x), call(x, x), call(1, 2), call(x, x, x)] == [0, 1, 2, 2, 3]
    with pytest.raises(TypeError):
        call(x, x, name=1)
    assert call.__name__ == "len_of" and call.__wrapped__ is len_of


@needs_native
@pytest.mark.parametrize(("size", "is_kept"), [(16_383, True), (16_384, False)])
def test_products_of_many_integers_are_left_to_the_general_way(size, is_kept):
    """It computes them in floats where these are exact, which then takes less time."""
    for dtype, kept in [("int32", is_kept), ("float32", True)]:
        forget()
        x = snp.ones((1, size), dtype)
        for y in (x.T, x[0]):
            assert float((x @ y).sum()) == size
        assert (x.type in TABLE.get(OPERATORS["matmul"], {})) is kept
        forget()
        assert float((x[:, :2].T @ x).sum()) == 2 * size
        assert bool(TABLE.get(OPERATORS["matmul"])) is kept


@needs_native
def test_calls_that_hold_their_row_follow_what_is_forgotten_and_entered_again():
    def general(x, y):
        return "general"

    def key():
        pass

    f, x = eager_call(general, key), snp.ones(3)
    for _ in range(2):
        assert f(x, x) == "general"
        keep(key, (x.type, x.type), np.add, x.type)
        np.testing.assert_array_equal(f(x, x), [2, 2, 2])
        forget()
    assert f(x, x) == "general"


@pytest.mark.parametrize(
    ("dtype", "least", "greatest"),
    [
        ("int8", -128, 127),
        ("uint8", 0, 255),
        ("int64", -(2**63), 2**63 - 1),
        ("uint64", 0, 2**63 - 1),
        ("float32", -(2**63), 2**63 - 1),
    ],
)
def test_integers_of_64_bits_that_a_dtype_takes(dtype, least, greatest):
    assert table._integers(np.dtype(dtype)) == (least, greatest)
