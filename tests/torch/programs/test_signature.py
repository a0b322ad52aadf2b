"""Calls by position and name, what fits, and what is refused in words."""

import numpy as np
import pytest

import stretto as st
from stretto.torch.programs.signature import LEAF, Argument, Signature, Structure
from stretto.torch.programs.torch_graph import Condition, Input, TensorType

PAIR = Structure("tuple", children=(LEAF, LEAF))
SIGNATURE = Signature(
    ("x", "flag", "more"),
    "",
    (Argument("mask", LEAF, ((None,),)), Argument("flag", LEAF, ((True,),))),
    (
        Argument("x", LEAF, ((),)),
        Argument("flag", LEAF, ((True,),)),
        Argument("more", PAIR, ((), (None,))),
    ),
    LEAF,
)
INPUTS = (
    Input("argument", "x", TensorType("float32", ("s0", 3))),
    Input("argument", "more_0", TensorType("float32", ("s0",))),
)
X, V = np.ones((2, 3), np.float32), np.ones(2, np.float32)


def leaves(*args, **kwargs):
    return SIGNATURE.leaves("Net", INPUTS, args, kwargs)


def test_by_position_and_by_name():
    for found in (
        leaves(X, True, (V, None)),
        leaves(X, more=(V, None)),
        leaves(flag=True, more=(V, None), x=X),
        leaves(X, True, [V, None], mask=None),
    ):
        assert [np.shape(a) for a in found] == [(2, 3), (2,)]


@pytest.mark.parametrize(
    ("args", "kwargs", "kind", "message"),
    [
        ((), {}, TypeError, "Net: the argument x is missing"),
        ((X, False, (V, None)), {}, ValueError, "Net: flag is part of the program: it was True"),
        ((X, 1, (V, None)), {}, ValueError, "it was True .* and is 1 now"),
        ((X, V, (V, None)), {}, ValueError, "flag is part of the program"),
        ((X, True, (V, V)), {}, ValueError, r"more\[1\] is part of the program: it was None"),
        ((X, True, (V, None), 4), {}, TypeError, "at most 3 arguments by position"),
        ((X, True), {"flag": True}, TypeError, "flag is given by position and by name"),
        ((X, True, (V, None)), {"mask": X}, TypeError, "exported without the argument mask"),
        ((X, True, (V, None)), {"what": 1}, TypeError, "exported without the argument what"),
        (
            (X[:, :2], True, (V, None)),
            {},
            ValueError,
            r"expected the shape \(any, 3\), got \(2, 2\)",
        ),
        ((V, True, (V, None)), {}, ValueError, r"expected the shape \(any, 3\)"),
        (
            (X, True, (np.ones(3), None)),
            {},
            ValueError,
            r"axis 0 of more\[0\] has size 3, and x.shape\[0\] is 2",
        ),
        (("x", True, (V, None)), {}, TypeError, "Net: x: expected an array, got 'x'"),
        ((None, True, (V, None)), {}, TypeError, "Net: x: expected an array, got None"),
        ((X, True, V), {}, TypeError, "Net: more: expected a tuple of 2"),
    ],
)
def test_what_does_not_fit(args, kwargs, kind, message):
    with pytest.raises(kind, match=message):
        leaves(*args, **kwargs)


KINDS = ["bool", "int32", "float32", "complex64"]


def test_dtypes_that_hold_less_than_what_is_given_are_refused():
    def given(expected, dtype):
        inputs = (Input("argument", "x", TensorType(expected, (2,))),)
        one = Signature(("x",), "", (), (Argument("x", LEAF, ((),)),), LEAF)
        (found,) = one.leaves("Net", inputs, (np.ones(2, dtype),), {})
        return found

    for k, expected in enumerate(KINDS):
        for dtype in KINDS[: k + 1]:
            assert given(expected, dtype).dtype == expected
        for dtype in KINDS[k + 1 :]:
            with pytest.raises(TypeError, match=rf"Net: x: expected {expected}, .* got {dtype}"):
                given(expected, dtype)
    assert given("float32", "float16").dtype == "float32"


OPTIONS = Structure("dict", keys=("a", "b"), children=(LEAF, LEAF))
OPTIONAL = Signature(
    ("x", "scale", "nan"),
    "",
    (
        Argument("scale", LEAF, ((1.0,),)),
        Argument("nan", LEAF, ((float("nan"),),)),
        Argument("options", OPTIONS, ((1,), (None,))),
        Argument("mode", LEAF, (("sum",),)),
    ),
    (
        Argument("x", LEAF, ((),)),
        Argument("scale", LEAF, ((2.0,),)),
        Argument("nan", LEAF, ((float("nan"),),)),
        Argument("options", OPTIONS, ((1,), (None,))),
        Argument("unknown", LEAF, ((True,),)),
    ),
    LEAF,
)


def test_what_is_left_out_means_its_default():
    def call(*args, **kwargs):
        return OPTIONAL.leaves("Net", INPUTS[:1], args, kwargs)

    for given in (
        {"scale": 2.0},
        {"scale": np.float64(2), "nan": float("nan")},
        {"scale": 2.0, "options": {"b": None, "a": 1}, "mode": "sum"},
    ):
        assert len(call(X, unknown=True, **given)) == 1
    with pytest.raises(ValueError, match=r"scale .* was 2.0 .* left out now, .* means 1.0; give"):
        call(X, unknown=True)
    with pytest.raises(TypeError, match="the argument unknown is missing"):
        call(X, scale=2.0)
    for wrong in ({"scale": 2}, {"scale": X}, {"options": {"a": True, "b": None}}):
        with pytest.raises(ValueError, match="is part of the program"):
            call(X, unknown=True, **{"scale": 2.0, **wrong})
    with pytest.raises(TypeError, match="exported without the argument mode"):
        call(X, scale=2.0, unknown=True, mode="mean")


def test_a_number_that_is_traced():
    call = st.jit(lambda x, scale: OPTIONAL.leaves("Net", INPUTS[:1], (x, scale), {})[0])
    with pytest.raises(ValueError, match="give it as a number of Python, outside of what"):
        call(X, 2.0)


def test_which_arguments_have_settings():
    places = (0, 1, "x", "scale", "options", "mode", "unknown", "what")
    expected = [False, True, False, True, True, True, True, False]
    assert [OPTIONAL.is_setting(place) for place in places] == expected


def test_sizes_that_are_computed():
    written = ("2*s0 + 1",), ("s0",), ("3*k",)
    inputs = [Input("argument", "", TensorType("float32", shape)) for shape in written]
    arguments = tuple([Argument(name, LEAF, ((),)) for name in "abc"])
    conditions = Condition("s0 % 2 == 0"), Condition("k <= 3", "net.py, line 3, in forward")
    signature = Signature(("a", "b", "c"), "", (), arguments, LEAF, conditions)

    def call(*sizes):
        return signature.leaves("Net", inputs, [np.ones(n) for n in sizes], {})

    assert [len(x) for x in call(5, 2, 9)] == [5, 2, 9]
    for sizes, message in (
        ((4, 2, 9), r"axis 0 of a has size 4, and must have 2\*b.shape\[0\] \+ 1"),
        ((5, 2, 8), r"axis 0 of c has size 8, and must have 3\*n"),
        ((3, 1, 9), r"holds for b.shape\[0\] % 2 == 0, and b.shape\[0\] is 1: import .* anew"),
        ((5, 2, 12), r"holds for n <= 3 \(net.py, line 3, in forward\)"),
        ((1, 0, 9), "axis 0 of b has size 0, and the program holds for one or more"),
    ):
        with pytest.raises(ValueError, match=message):
            call(*sizes)
    assert Signature.from_json(signature.to_json()) == signature
    assert not any(place for _, place in signature.to_json(places=False)["conditions"])


def test_any_number_of_arguments():
    argument = Argument("xs[0]", LEAF, ((),)), Argument("xs[1]", LEAF, ((),))
    many = Signature((), "xs", (), argument, LEAF)
    numbers = tuple([Input("argument", f"xs_{k}", None) for k in range(2)])
    assert many.leaves("Net", numbers, (1, 2), {}) == [1, 2]
    with pytest.raises(TypeError, match=r"xs\[1\] is missing"):
        many.leaves("Net", numbers, (1,), {})


def test_json_and_back():
    assert Signature.from_json(SIGNATURE.to_json()) == SIGNATURE
    for change in (lambda d: d.pop("results"), lambda d: d["arguments"][0][2].append([])):
        data = SIGNATURE.to_json()
        change(data)
        with pytest.raises(ValueError):
            Signature.from_json(data)
