"""Calls by position and name, what fits, and what is refused in words."""

import numpy as np
import pytest

from stretto.torch.graph import Input, TensorType
from stretto.torch.signature import Argument, Signature
from stretto.torch.structure import LEAF, Structure

PAIR = Structure("tuple", children=(LEAF, LEAF))
SIGNATURE = Signature(
    ("x", "flag", "more"),
    "",
    (("mask", None), ("flag", True)),
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
        ((X, True, (np.ones(3), None)), {}, ValueError, "axis 0 of more_0 has size 3, and axis 0"),
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
