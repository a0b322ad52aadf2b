"""Formulations of a mapped product: all give the same, and the estimates of what they cost."""

from types import SimpleNamespace

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.cost import CPU
from stretto._engine.core.interpreter import as_value
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.passes.formulations import forms as products
from stretto._engine.passes.formulations.forms import (
    Parts,
    Shared,
    Whole,
    _chunk,
    of_product,
)

pytestmark = pytest.mark.usefixtures("without_kernels")

SIZE = 6
# Name: the operation, and the shapes of one member's operands.
PRODUCTS = {
    "matrices": (DotGeneral(((1,), (0,)), ((), ())), (3, 4), (4, 5)),
    "transposed": (DotGeneral(((0,), (1,)), ((), ())), (4, 3), (5, 4)),
    "vectors": (DotGeneral(((0,), (0,)), ((), ())), (4,), (4,)),
    "batched": (DotGeneral(((2,), (1,)), ((0,), (0,))), (2, 3, 4), (2, 4, 5)),
    "two axes": (DotGeneral(((1, 2), (0, 1)), ((), ())), (3, 4, 2), (4, 2, 5)),
    "axes out of order": (DotGeneral(((2, 1), (0, 1)), ((), ())), (3, 4, 2), (2, 4, 5)),
    "three free axes": (DotGeneral(((3,), (0,)), ((), ())), (3, 1, 2, 4), (4, 5, 2)),
    "outer": (DotGeneral(((), ()), ((), ())), (3,), (5,)),
}


def numbers(seed, *shape):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


def forms(values):
    """The operand of all members in each form: what it is, by name."""
    yield "shared", Shared(as_value(values[0])), [values[0]] * SIZE
    for axis in {0, values.ndim - 1}:
        yield f"whole {axis}", Whole(as_value(np.moveaxis(values, 0, axis)), axis), list(values)
    yield "parts", Parts([as_value(v) for v in values]), list(values)


def result(value):
    return np.stack([np.asarray(value.member(i)) for i in range(SIZE)])


@pytest.mark.parametrize("name", PRODUCTS)
def test_every_formulation_gives_the_product_of_each_member(name):
    op, shape_x, shape_y = PRODUCTS[name]
    # Each reads the operand of its own: what one has moved or cut, another finds moved.
    left, right = numbers(0, SIZE, *shape_x), numbers(1, SIZE, *shape_y)
    for kind_x, _, xs in forms(left):
        for kind_y, _, ys in forms(right):
            if kind_x == kind_y == "shared":
                continue
            fresh = lambda values, kind: next(f for k, f, _ in forms(values) if k == kind)
            want = np.stack(
                [np.asarray(op(as_value(a), as_value(b))) for a, b in zip(xs, ys, strict=True)]
            )
            x, y = fresh(left, kind_x), fresh(right, kind_y)
            choices = of_product(op, x, y, SIZE, CPU)
            assert len({c.form.value for c in choices}) == len(choices) >= 2
            for choice in choices:
                np.testing.assert_array_equal(result(choice.run()), want, err_msg=choice.form.value)
                assert 0 < choice.microseconds < np.inf


def shared(mapped, other, axis=0, machine=CPU, op=PRODUCTS["matrices"][0]):
    x, y = Whole(snp.zeros(mapped), axis), Shared(snp.zeros(other))
    size = mapped[axis]
    return {c.form.value: c.microseconds for c in of_product(op, x, y, size, machine)}


def test_chunks_are_offered_where_several_members_a_turn_stay_in_the_cache():
    assert "chunks of members" not in shared((100, 4, 1000), (1000, 600))
    assert "chunks of members" in shared((100, 4, 1000), (1000, 100))
    # One chunk of all members is the batched product.
    assert "chunks of members" not in shared((4, 4, 10), (10, 10))
    # No number of members but one divides a prime.
    assert "chunks of members" not in shared((101, 4, 1000), (1000, 100))


def test_chunks_of_members_give_the_same(monkeypatch):
    monkeypatch.setattr("stretto._engine.passes.formulations.forms._CHUNK_BYTES", 200)
    op, *shapes = PRODUCTS["matrices"]
    x, y = numbers(0, SIZE, *shapes[0]), numbers(1, *shapes[1])
    for values in ((x, y), (y, x)):
        dot = op if values[0] is x else DotGeneral(((0,), (1,)), ((), ()))
        pair = [Whole(as_value(v), 0) if v is x else Shared(as_value(v)) for v in values]
        (chunks,) = [c for c in of_product(dot, *pair, SIZE, CPU) if "chunks" in c.form.value]
        want = [np.tensordot(*((row, y) if values[0] is x else (y, row)), axes=dot.summed)
                for row in x]  # fmt: skip
        np.testing.assert_array_equal(result(chunks.run()), want)


def test_members_first_needs_the_summed_axes_last_and_the_members_in_front():
    wide = "one wide product, members first"
    assert wide in shared((10, 4, 8), (8, 5))
    assert wide not in shared((4, 10, 8), (8, 5), axis=1)
    assert wide not in shared((10, 8, 4), (8, 5), op=DotGeneral(((0,), (0,)), ((), ())))


def test_estimates_grow_with_the_members_and_fall_with_the_speed_of_the_machine():
    few, many = shared((10, 64, 64), (64, 64)), shared((1000, 64, 64), (64, 64))
    assert all(few[name] < many[name] for name in few)
    fast = CPU._replace(products=4 * CPU.products)
    quicker = shared((10, 64, 64), (64, 64), machine=fast)
    assert all(quicker[name] < few[name] for name in few)


def test_members_to_be_cut_and_stacked_count():
    op = PRODUCTS["matrices"][0]
    x = numbers(0, SIZE, 300, 400), numbers(1, SIZE, 400, 500)

    def times(*kinds):
        operands = [kind(v) for kind, v in zip(kinds, x, strict=True)]
        return {c.form.value: c.microseconds for c in of_product(op, *operands, SIZE, CPU)}

    whole = lambda v: Whole(as_value(v), 0)
    apart = lambda v: Parts([as_value(m) for m in v])
    stacked, cut = times(whole, whole), times(apart, apart)
    assert stacked["one batched product"] < cut["one batched product"]
    assert stacked["members written out"] > cut["members written out"]


def test_an_operand_whose_rows_lie_apart_is_copied_for_a_batch():
    batched = "one batched product"
    together = shared((3, 4, 8, 50, 25), (25, 50), op=DotGeneral(((3,), (0,)), ((), ())))[batched]
    apart = shared((3, 4, 8, 25, 50), (25, 50), op=DotGeneral(((2,), (0,)), ((), ())))[batched]
    assert apart > together


@pytest.mark.parametrize(("item", "chunk"), [(1 << 20, 2), ((1 << 20) + 1, 1), (1 << 19, 4)])
def test_chunks_of_two_mebibytes_stay_in_the_cache(item, chunk):
    assert _chunk(8, item) == chunk


# What each formulation is charged, by kind of work

KINDS = ("copied", "moved", "products", "items", "turns", "kernels", "near")
UNITS = dict(zip(KINDS, np.eye(len(KINDS)), strict=True))


def counting(best=0.5, wide=0.25):
    """Return a machine whose times are how much of each kind of work there is.

    Small products of 160 multiply-adds reach ``best`` of the rate, and a wide one ``wide``.
    """
    return SimpleNamespace(
        copying=lambda size: size * UNITS["copied"],
        moving=lambda size: size * UNITS["moved"],
        product=lambda products, fraction: products / fraction * UNITS["products"],
        fraction=lambda products: {160: best}[products],
        wide=wide,
        item=UNITS["items"],
        turn=UNITS["turns"],
        kernel=UNITS["kernels"],
        near=np.where(UNITS["near"], 1, np.inf),
    )


def charged(choices):
    return {
        c.form.value: {k: n for k, n in zip(KINDS, c.microseconds, strict=True) if n}
        for c in choices
    }


def operand(kind, *shape):
    if kind == "shared":
        return Shared(snp.zeros(shape))
    if kind == "parts":
        return Parts([snp.zeros(shape)] * 10)
    return Whole(snp.zeros((*shape[:kind], 10, *shape[kind:])), kind)


MEMBERS_FIRST, WIDE = "one wide product, members first", "one wide product"
BATCHED, CHUNKS, WRITTEN = "one batched product", "chunks of members", "members written out"
ALL = {"products": 3200, "items": 10}  # 10 times 160 multiply-adds, at half of the best rate
TURNS = {**ALL, "turns": 8}  # two, of five members, which are four operations each
EACH = {**ALL, "kernels": 40}
LEFT, RIGHT, OUT = 1280, 1600, 800  # bytes of all members' operands and results


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (0, "shared", {
            MEMBERS_FIRST: {"products": 6400},
            WIDE: {"products": 6400},
            BATCHED: {**ALL, "copied": RIGHT / 2},
            CHUNKS: {**TURNS, "moved": LEFT + OUT, "near": RIGHT},
            WRITTEN: {**EACH, "copied": LEFT + OUT},
        }),
        (1, "shared", {
            WIDE: {"products": 6400, "copied": LEFT + OUT},
            BATCHED: {**ALL, "copied": RIGHT / 2},
            CHUNKS: {**TURNS, "moved": LEFT + OUT, "near": RIGHT},
            WRITTEN: {**EACH, "copied": LEFT + OUT},
        }),
        ("parts", "shared", {
            MEMBERS_FIRST: {"products": 6400, "copied": LEFT},
            WIDE: {"products": 6400, "copied": LEFT},
            BATCHED: {**ALL, "copied": LEFT + RIGHT / 2},
            CHUNKS: {**TURNS, "copied": LEFT, "moved": LEFT + OUT, "near": RIGHT},
            WRITTEN: {**EACH, "copied": OUT},
        }),
        ("shared", 0, {
            WIDE: {"products": 6400, "copied": RIGHT + OUT},
            BATCHED: {**ALL, "copied": LEFT / 2},
            CHUNKS: {**TURNS, "moved": RIGHT + OUT, "near": LEFT},
            WRITTEN: {**EACH, "copied": RIGHT + OUT},
        }),
        ("shared", "parts", {
            WIDE: {"products": 6400, "copied": 2 * RIGHT + OUT},
            BATCHED: {**ALL, "copied": RIGHT + LEFT / 2},
            CHUNKS: {**TURNS, "copied": RIGHT, "moved": RIGHT + OUT, "near": LEFT},
            WRITTEN: {**EACH, "copied": OUT},
        }),
        (0, 0, {BATCHED: ALL, WRITTEN: {**EACH, "copied": LEFT + RIGHT + OUT}}),
        ("parts", "parts", {
            BATCHED: {**ALL, "copied": LEFT + RIGHT},
            WRITTEN: {**EACH, "copied": OUT},
        }),
        (0, "parts", {
            BATCHED: {**ALL, "copied": RIGHT},
            WRITTEN: {**EACH, "copied": LEFT + OUT},
        }),
    ],
)  # fmt: skip
def test_what_each_formulation_is_charged(x, y, expected):
    op = PRODUCTS["matrices"][0]
    choices = of_product(op, operand(x, 4, 8), operand(y, 8, 5), 10, counting())
    assert charged(choices) == expected


def test_members_of_the_right_operand_in_front_are_half_a_copy():
    op = DotGeneral(((1,), (1,)), ((), ()))
    found = charged(of_product(op, operand("shared", 4, 8), operand(0, 5, 8), 10, counting()))
    assert found[MEMBERS_FIRST] == {"products": 6400, "copied": OUT / 2}
    assert found[WIDE] == {"products": 6400, "copied": OUT}


def test_shared_axes_of_one_member_are_no_wide_product_of_members_first():
    op = DotGeneral(((2,), (1,)), ((0,), (0,)))
    found = charged(of_product(op, operand(0, 1, 4, 8), operand("shared", 1, 8, 5), 10, counting()))
    assert MEMBERS_FIRST not in found
    assert found[WIDE] == {"products": 6400, "copied": LEFT + OUT}


def test_an_operand_whose_free_axes_lie_apart_is_copied():
    op = DotGeneral(((1,), (0,)), ((), ()))
    found = charged(of_product(op, operand(0, 2, 8, 2), operand("shared", 8, 5), 10, counting()))
    assert found[BATCHED] == {**ALL, "copied": LEFT + RIGHT / 2}


@pytest.mark.parametrize(
    ("size", "item", "chunk"),
    [(12, 1 << 18, 6), (12, 1 << 20, 2), (12, 1 << 30, 1), (7, 1, 1), (1, 1, 1), (12, 0, 6),
     (100, 1, 20), (49, 1, 7), (97, 1, 1)],
)  # fmt: skip
def test_a_chunk_divides_the_members(size, item, chunk):
    assert _chunk(size, item) == chunk


@pytest.mark.parametrize(
    ("changes", "dtype", "there", "on", "taken"),
    [
        ({}, np.float32, True, True, True),
        ({}, np.float64, True, True, True),
        ({}, np.int32, True, True, True),
        ({}, np.int64, True, True, False),
        ({}, np.float32, False, True, False),
        ({}, np.float32, True, False, False),
        ({"precision": "highest"}, np.float32, True, True, False),
        ({"preferred": np.dtype(np.float64)}, np.float32, True, True, False),
    ],
)
def test_what_a_kernel_computes(monkeypatch, changes, dtype, there, on, taken):
    """Numbers with the usual precision, where there are kernels and nobody turned them off."""
    op = SimpleNamespace(**{"precision": None, "preferred": None, **changes})
    monkeypatch.setattr(products, "kernels", object() if there else None)
    with st.config(kernels=on):
        assert products._in_kernel(op, np.dtype(dtype)) is taken
