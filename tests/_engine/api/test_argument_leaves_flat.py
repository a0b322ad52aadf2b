"""Functions of trees as functions of values: structures, aux, chosen arguments, what is refused."""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto._engine.api.argument_leaves import Flat, chosen, is_active, pull_back
from stretto._engine.autodiff.linearize import linearize_flat
from stretto._engine.core import tree
from stretto._engine.core.interpreter import as_value


def flat(fun, *args, has_aux=False):
    leaves, structure = tree.flatten(args)
    return Flat(fun, structure, has_aux, "grad"), [as_value(x) for x in leaves]


def test_the_result_is_rebuilt_from_its_leaves():
    f, leaves = flat(lambda p, x: {"sum": p["a"] + x, "both": (x, None)}, {"a": 1.0}, 2.0)
    outs = f(*leaves)
    assert sorted(map(float, outs)) == [2.0, 3.0]
    out, aux = f.rebuild([10.0, 20.0])
    assert aux is None and out["both"][1] is None
    assert tree.leaves(out) == [10.0, 20.0]


def test_a_result_that_is_one_array():
    f, leaves = flat(lambda x: 2 * x, 3.0)
    (out,) = f(*leaves)
    assert float(out) == 6 and f.rebuild([out]) == (out, None)


def test_of_aux_the_arrays_come_last_and_the_rest_stays_as_it_is():
    note = object()
    f, leaves = flat(lambda x: ((x, -x), {"y": 2 * x, "note": note, "n": 3}), 1.0, has_aux=True)
    outs = f(*leaves)
    assert [float(v) for v in outs] == [1.0, -1.0, 2.0] and f.count == 2
    out, aux = f.rebuild([5.0, 6.0, 7.0])
    assert out == (5.0, 6.0) and aux == {"y": 7.0, "note": note, "n": 3}


@pytest.mark.parametrize("result", [3.0, (1.0,), (1.0, 2.0, 3.0), {"a": 1.0, "b": 2.0}])
def test_with_aux_the_result_is_a_pair(result):
    f, leaves = flat(lambda x: result, 1.0, has_aux=True)
    with pytest.raises(TypeError, match=r"grad: with has_aux=True the function must return a pair"):
        f(*leaves)


def test_a_result_that_is_no_array_is_named():
    f, leaves = flat(lambda x: {"a": "text"}, 1.0)
    with pytest.raises(TypeError, match=r"the result\['a'\]"):
        f(*leaves)


def test_what_derivatives_can_be_taken_by():
    active = [is_active(as_value(x)) for x in (1.0, 1j, np.float16(1), 1, True, np.uint8(1))]
    assert active == [True, True, True, False, False, False]


def test_chosen_arguments_are_replaced_and_the_others_stay():
    def f(a, b, c, scale=1.0):
        return (a - b) * c["x"] * scale

    found = chosen(f, (5.0, 3.0, {"x": 2.0}), {"scale": 10.0}, (0, -1), "grad")
    assert [float(v) for v in found.values] == [5.0, 2.0]
    assert found.paths() == ["a", "c['x']"]
    assert found(4.0, {"x": 1.0}) == 10.0
    assert found.args == (5.0, 3.0, {"x": 2.0})  # as they were


@pytest.mark.parametrize(
    "value, options, caller, message",
    [
        (1, {}, "grad", r"grad: x must be of a floating dtype, got int32\[\]; convert it with"),
        (True, {}, "grad", "grad: x must be of a floating dtype"),
        (1.0, {"holomorphic": True}, "grad", "must be complex with holomorphic=True"),
        (1, {"holomorphic": True, "allow_int": True}, "grad", "must be complex"),
        (1j, {}, "jacfwd", r"jacfwd: x is complex \(complex64\[\]\); pass holomorphic=True"),
    ],
)
def test_dtypes_that_have_no_such_derivative(value, options, caller, message):
    found = chosen(lambda x: x, (value,), {}, 0, caller)
    with pytest.raises(TypeError, match=message):
        found.check(**{"holomorphic": False, "allow_int": False, **options})


@pytest.mark.parametrize(
    "value, options, caller",
    [
        (1.0, {}, "grad"),
        (1j, {}, "grad"),
        (1j, {"holomorphic": True}, "jacfwd"),
        (1, {"allow_int": True}, "grad"),
    ],
)
def test_dtypes_that_have(value, options, caller):
    found = chosen(lambda x: x, (value,), {}, 0, caller)
    assert found.check(**{"holomorphic": False, "allow_int": False, **options}) is None


def test_cotangents_go_back_to_all_inputs():
    """Those of inputs without a derivative are None, and so are those of what nobody reads."""

    def f(x, n, y):
        return [x * x * n, snp.floor(n)]

    args = [as_value(3.0), as_value(np.int32(4)), as_value(5.0)]
    outs, linear = linearize_flat(f, args, [True, False, True])
    assert [float(v) for v in outs] == [36.0, 4.0]
    back = pull_back(linear, [as_value(1.0), as_value(1.0)])
    assert float(back[0]) == 24.0
    assert back[1] is None and (back[2] is None or float(back[2]) == 0)


def test_integers_that_their_node_leaves_out_are_no_error():
    class Counted:
        def __init__(self, count, value):
            self.count, self.value = count, value

        def _undifferentiated(self):
            return [self.count]

    tree.register_attributes(
        Counted,
        lambda x: ([x.count, x.value], None, ("count", "value")),
        lambda _, children: Counted(*children),
    )
    args = (1.0, {"a": Counted(1, 2.0), "b": 3.0}, 4)
    chosen(lambda *args: args[0], args, {}, (0, 1), "grad").check(False, False)
    for wrong in (args, (1.0, Counted(1, 2), 0.0)):
        of_chosen = chosen(lambda *args: args[0], wrong, {}, (0, 1, 2), "grad")
        with pytest.raises(TypeError, match=r"grad: args\[[12]\]\S* must be of a floating dtype"):
            of_chosen.check(False, False)
        of_chosen.check(False, True)
