"""Primitives: how classes are made and refused, interned, and printed."""

import concurrent.futures
import dataclasses
import gc
import threading
import weakref
from typing import ClassVar

import numpy as np
import pytest

from stretto import make_graph
from stretto._engine.core import caches, primitive
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.primitive import (
    PRIMITIVES,
    RULES,
    ZERO_DERIVATIVE,
    Primitive,
    Refused,
    leibniz,
)
from stretto._engine.core.sizes import size_variable
from stretto._engine.core.types import array_type
from stretto._engine.higher_order.family import Call
from stretto._engine.ops.arithmetic import Add
from stretto._engine.ops.broadcast import ReduceSum
from stretto._engine.ops.convert import ConvertElementType
from stretto._engine.ops.exponential import IntegerPow
from stretto._engine.ops.layout import Transpose
from stretto._engine.ops.rounding import FLOOR
from tests.interrupts import interrupted, sites


@pytest.fixture(autouse=True)
def registry():
    """What a test defines is forgotten."""
    known = list(PRIMITIVES)
    yield
    PRIMITIVES[:] = known


def a_rule(*_):
    return None


@pytest.mark.parametrize("missing", RULES)
def test_a_class_without_a_rule_cannot_be_made(missing):
    body = {rule: a_rule for rule in RULES if rule != missing}
    with pytest.raises(
        TypeError, match=f"primitive made_up: no rule for {missing}; write the meth"
    ):
        type(Primitive)("MadeUp", (Primitive,), body)


def test_all_missing_rules_are_named():
    with pytest.raises(
        TypeError, match="no rule for infer, reference, lower, jvp, transpose, vmap, padded;"
    ):
        type(Primitive)("MadeUp", (Primitive,), {})


def test_a_refused_rule_says_why():
    class MadeUp(Primitive):
        infer = reference = lower = jvp = vmap = padded = a_rule
        transpose = Refused("it cannot be turned round: use its mirror image")

    assert MadeUp in PRIMITIVES
    with pytest.raises(
        MissingRuleError,
        match="made_up has no transpose rule: it cannot be turned round: use its mirror image",
    ):
        MadeUp().transpose(None, None)
    assert isinstance(MadeUp.transpose, Refused)


def test_a_family_supplies_rules_and_is_no_primitive():
    class Family(Primitive, abstract=True):
        infer = reference = lower = jvp = transpose = vmap = padded = a_rule

    class Member(Family):
        name = "another_name"

    assert Family not in PRIMITIVES
    assert PRIMITIVES[-1] is Member
    assert Member().name == "another_name"


def test_parameters_are_fields():
    p = Transpose((1, 0))
    assert p.parameters() == [("permutation", (1, 0))]
    assert repr(p) == "transpose[permutation=(1, 0)]"
    assert repr(Add()) == "add"
    with pytest.raises(dataclasses.FrozenInstanceError):
        p.permutation = (0, 1)


def test_a_class_is_made_a_dataclass_when_first_called():
    class Family(Primitive, abstract=True):
        infer = reference = lower = jvp = transpose = vmap = padded = a_rule
        size: int
        power: int = 2
        sign: ClassVar[int] = 1

    class Member(Family):
        unit: str = "m"

    class Heir(Member):
        pass

    assert "__init__" not in vars(Family) and "__init__" not in vars(Member)
    made = Heir(3, unit="s")
    assert made.parameters() == [("size", 3), ("power", 2), ("unit", "s")]
    assert [f.name for f in dataclasses.fields(Member)] == ["size", "power", "unit"]
    assert dataclasses.replace(made, power=5).power == 5
    assert repr(made) == "heir[size=3, power=2, unit='s']"
    assert {Heir.__eq__, Family.__eq__} == {object.__eq__}, "they are looked up by identity"
    assert hash(made) == object.__hash__(made)
    assert "__init__" in vars(Family) and "__init__" in vars(Member)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'size'"):
        Family()


def test_a_class_whose_making_was_interrupted_is_made_once_more():
    files = (dataclasses.__file__, "core/primitive")

    def new():
        class MadeUp(Primitive):
            infer = reference = lower = jvp = transpose = vmap = padded = a_rule
            size: int
            power: int = 2

        return MadeUp

    at = sites(lambda: new()(3), files, "signal")
    assert len(at) > 50
    for site in at:
        made_up = new()
        interrupted(lambda: made_up(3), site, files, "signal")  # noqa: B023
        assert made_up(3).parameters() == [("size", 3), ("power", 2)], site
        assert made_up(3) is made_up(3, 2)
        with pytest.raises(dataclasses.FrozenInstanceError):
            made_up(3).size = 4


def test_a_class_is_first_called_by_several_threads_at_once():
    class MadeUp(Primitive):
        infer = reference = lower = jvp = transpose = vmap = padded = a_rule
        size: int

    begin = threading.Barrier(4)

    def make(size):
        begin.wait()
        return MadeUp(size).size

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(make, range(4))) == [0, 1, 2, 3]


def test_equal_primitives_are_one_object():
    f32 = np.dtype(np.float32)
    assert Transpose((1, 0)) is Transpose(permutation=(1, 0))
    assert Transpose((1, 0)) is not Transpose((0, 1))
    assert ConvertElementType(f32) is ConvertElementType(f32, False)
    assert ConvertElementType(f32) is ConvertElementType(dtype=f32, weak=False)
    assert ConvertElementType(f32, weak=True) is ConvertElementType(f32, True)
    assert ConvertElementType(f32, weak=True) is not ConvertElementType(f32)
    assert Add() is Add()
    assert ReduceSum((0,)) is not Transpose((0,))


def test_many_primitives_still_equal_themselves():
    made = [IntegerPow(n) for n in range(5000)]
    assert made[-1] is IntegerPow(4999)
    assert [p.exponent for p in made] == list(range(5000))


def test_types_are_inferred_once():
    f32 = array_type((2, 3), np.dtype(np.float32))
    p = Transpose((1, 0))
    assert p.out_types((f32,)) is p.out_types((f32,))
    assert p.out_types((f32,)) == (f32.with_shape((3, 2)),)


def test_zero_derivatives():
    x = as_value(1.5)
    out, tangent = FLOOR.jvp((x,), (x,))
    assert (float(out), tangent) == (1.0, None)
    assert type(FLOOR).jvp is ZERO_DERIVATIVE


def test_by_default_a_reference_computes_a_splat_s_element():
    assert Add().splat_reference(np.float32(1), np.float32(2)) == 3
    assert not Add().compiled((array_type((), np.dtype(np.float32)),))


def test_types_with_sizes_that_vary_are_inferred_anew():
    """What is asked of those sizes is to be noted in each trace."""
    transpose = Transpose((1, 0))
    transpose.inferred.clear()
    for shape, kept in [((size_variable("n"), 2), 0), ((3, 2), 1)]:
        t = array_type(shape, np.dtype(np.float32))
        assert transpose.out_types((t,)) == (t.with_shape(shape[::-1]),)
        assert len(transpose.inferred) == kept


def test_work_is_the_time_to_go_through_the_largest_array():
    of = lambda size: array_type((size,), np.dtype(np.float32))
    work = lambda types, outs: Primitive.work(Add(), types, outs)
    assert work([of(3), of(5)], [of(4)]) == 20 and work([of(3)], [of(7)]) == 28
    assert work([], []) == 0


def test_what_is_known_of_an_operation_that_says_nothing():
    """Nothing that would let others leave work out, or put it together."""

    class Silent(Primitive):
        infer = reference = lower = jvp = transpose = vmap = padded = a_rule

    silent, t = Silent(), array_type((2, 3), np.dtype(np.float32))
    assert silent.by_rows([t], [t]) is False is silent.sums_rows([t]) is silent.compiled((t,))
    assert silent.kept_axes(0, t, t) == (None, None) and silent.simpler(None, None) is None
    assert (silent.accumulates, silent.effects, silent.parameters()) == ((), frozenset(), [])
    with pytest.raises(NotImplementedError):
        silent.factored([], [])
    assert repr(silent) == "silent" == silent.name


def test_types_are_inferred_once_for_each_primitive():
    asked = []

    class Doubled(Add):
        name = "doubled"

        def infer(self, *types):
            asked.append(types)
            return super().infer(*types)

    doubled, t = Doubled(), array_type((2,), np.dtype(np.float32))
    assert doubled.out_types((t, t)) == (t,)
    assert doubled.out_types((t, t)) == (t,)
    assert asked == [(t, t)]
    with pytest.raises(TypeError, match="doubled: operands must have one shape"):
        doubled.out_types((t, array_type((), np.dtype(np.float32))))
    assert list(doubled.inferred) == [(t, t)]


def test_what_was_inferred_goes_with_a_primitive_that_holds_programs():
    call = Call(make_graph(lambda x: x + 1)(1.0))
    call.out_types(call.program.in_types)
    gone = weakref.ref(call)
    del call
    gc.collect()
    assert gone() is None


def test_so_many_types_and_no_more(monkeypatch):
    monkeypatch.setattr(primitive, "room", lambda table: caches.room(table, 3))
    transpose = Transpose((1, 0))
    transpose.inferred.clear()
    for n in range(1, 9):
        transpose.out_types((array_type((n, 2), np.dtype(np.float32)),))
    assert len(transpose.inferred) <= 3


# Traits


def test_what_would_be_kept_alive_is_not_interned():
    class Holds(Primitive, abstract=True):
        holds_programs = True

    class Calls(Primitive, abstract=True):
        calls_python = True

    class OfThose(Holds, abstract=True):
        pass

    assert not any([Holds.interned, Calls.interned, OfThose.interned, Call.interned])
    assert all([Primitive.interned, Add.interned, ReduceSum.interned])


def test_only_what_knows_something_simpler_is_asked():
    class Knows(Primitive, abstract=True):
        def simpler(self, x, maker):
            return x

    class Inherits(Knows, abstract=True):
        pass

    assert all([Knows.reducible, Inherits.reducible, Transpose.reducible])
    assert not any([Primitive.reducible, Add.reducible])


def test_leibniz_sums_over_pairs_of_orders():
    x, y = [2.0, 3.0, 5.0], [7.0, 11.0, 13.0]
    product = lambda a, b: a * b
    assert leibniz(product, 0, x.__getitem__, y.__getitem__) == 14
    # x y″ + 2 x′ y′ + x″ y
    assert leibniz(product, 2, x.__getitem__, y.__getitem__) == 2 * 13 + 2 * 3 * 11 + 5 * 7
    assert leibniz(product, 2, x.__getitem__, y.__getitem__, most=1) == 2 * 13 + 2 * 3 * 11


def test_leibniz_leaves_zeros_out():
    x = lambda k: 2.0 if k == 0 else None
    y = lambda k: None if k == 0 else 3.0
    assert leibniz(lambda a, b: a * b, 1, x, y) == 6
    assert leibniz(lambda a, b: a * b, 0, x, y) is None
