"""Parameters as JSON and back: every kind, and what else is refused."""

import json
import math
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

import stretto as st
from stretto._engine.core.errors import ExportError
from stretto._engine.core.sizes import Size, SizeVariable, greater, size_variable
from stretto._engine.core.types import ArrayType, array_type
from stretto._engine.ops.convolution.geometry import ConvDimensionNumbers
from stretto._engine.ops.fft import FftType
from stretto._engine.ops.index.geometry import GatherDimensionNumbers, ScatterDimensionNumbers
from stretto._engine.ops.random_bits import RandomAlgorithm
from stretto._engine.ops.reducing.window import AxisWindow
from stretto._engine.passes.formulations.forms import Plan
from stretto.export.parameters import from_data, to_data
from stretto.export.rules import RefusedRule
from stretto.export.written_programs import Reader, Writer
from stretto.files.names import Damaged

N, M = size_variable("n", 2), size_variable("m", 1, 8)
F32 = array_type((2, 3), np.dtype(np.float32))


def back(value, hint):
    """A parameter, written and read."""
    w = Writer("save")
    data = to_data(value, hint, w)
    record = json.loads(json.dumps({"data": data, **w.tables(), "sizes": []}))
    return from_data(record["data"], hint, Reader(record, w.arrays))


def read(data, hint):
    return from_data(data, hint, Reader({**Writer("save").tables(), "sizes": []}, []))


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (3, int),
        (-(2**63), int),
        (2**64 - 1, int),
        (True, bool),
        ("clip", str),
        (None, str | None),
        ("high", str | tuple[str, str] | None),
        (("high", "default"), str | tuple[str, str] | None),
        (b"\0\xff", bytes),
        (np.dtype(np.float32), np.dtype),
        (np.dtype(ml_dtypes.bfloat16), np.dtype | None),
        (np.dtype(ml_dtypes.float8_e4m3fn), np.dtype),
        ((), tuple[int, ...]),
        ((1, 2, 3), tuple[int, ...]),
        (((1, 2), (3,)), tuple[tuple[int, ...], tuple[int, ...]]),
        (((0, 1, 2),), tuple[tuple[int, int, int], ...]),
        (FftType.RFFT, FftType),
        (RandomAlgorithm.RNG_PHILOX, RandomAlgorithm),
        (Plan.IN_TURN, Plan),
        (AxisWindow(3, 2, 1, 0, 1, 2), AxisWindow),
        (ConvDimensionNumbers((0, 1), (1, 0), (0, 1)), ConvDimensionNumbers),
        (GatherDimensionNumbers((1,), (0,), (0,)), GatherDimensionNumbers),
        (ScatterDimensionNumbers((1,), (0,), (0,)), ScatterDimensionNumbers),
        ((F32, array_type((N, 2), F32.dtype)), tuple[ArrayType, ...]),
        (N, Size),
        (SizeVariable("n", 1, math.inf), SizeVariable),
        ((N, 5), tuple[int, ...]),
    ],
    ids=str,
)
def test_every_kind_comes_back(value, hint):
    made = back(value, hint)
    assert made == value
    assert type(made) is type(value)


@pytest.mark.parametrize(
    "size",
    [
        N + 1, 2 * N - 1, N * M + N, N * N * 3 + M, N // 2, (N + 1) // 3 * 2, (N // 2 + M) // 5,
        greater(N - 3, 0), greater(N - 3, M), N - N // 2, greater(N // 2 - M, 0) * 2 + 1,
    ],
    ids=str,
)  # fmt: skip
def test_sizes_come_back_in_their_form(size):
    assert back(size, Size).terms == size.terms


POLICIES = st.checkpoint_policies


@pytest.mark.parametrize(
    "policy",
    [
        None,
        POLICIES.everything_saveable,
        POLICIES.nothing_saveable,
        POLICIES.dots_saveable,
        POLICIES.dots_with_no_batch_dims_saveable,
        POLICIES.save_only_these_names("a", "b"),
        POLICIES.save_any_names_but_these("a"),
        POLICIES.save_anything_except_these_names(),
        POLICIES.save_from_both_policies(
            POLICIES.dots_saveable, POLICIES.save_only_these_names("a")
        ),
    ],
    ids=lambda p: getattr(p, "__name__", "none"),
)
def test_policies_come_back(policy):
    made = back(policy, Callable[..., bool] | None)
    assert getattr(made, "__name__", None) == getattr(policy, "__name__", None)
    assert getattr(made, "made_by", None) is not None or made is policy


def test_a_policy_of_ones_own_is_refused():
    with pytest.raises(ExportError, match="save: a checkpoint has the policy own, which is a Py"):
        back(own, Callable[..., bool] | None)


def test_text_that_cannot_be_printed_is_refused():
    with pytest.raises(ExportError, match=r"save: '\\x1b\[2J' has characters that cannot be pri"):
        back("\x1b[2J", str)


def own(primitive, *types):
    return True


def test_a_refused_rule_comes_back():
    made = back(RefusedRule("not in the file"), Callable[..., object])
    with pytest.raises(st.errors.MissingRuleError, match="not in the file"):
        made((), ())


@pytest.mark.parametrize(
    ("data", "hint", "words"),
    [
        (True, int, "expected a size, got True"),
        (2**64, int, "expected an integer"),
        (1, bool, "expected true or false, got 1"),
        (7, str, "expected text"),
        ("a" * 5000, str, "at most 4096 characters"),
        ("\x1b[2J", str, "characters that can be printed, got '\\x1b[2J'"),
        ("0g", bytes, "hexadecimal"),
        ("object", np.dtype, "there is no dtype 'object'"),
        (None, int, "expected a size, got None"),
        ([1, 2], tuple[int, int, int], "a list of 3, got one of 2"),
        ("NONE", FftType, "there is no FftType 'NONE'"),
        (["__class__"], FftType, "there is no FftType a list"),
        ([1, 2], AxisWindow, "a list of 6, got one of 2"),
        (["policy", "offload_dot_with_no_batch_dims"], Callable[..., bool], "no rule or policy"),
        (["print", ["x"]], Callable[..., bool], "no rule or policy"),
        ([[1, [[0, 1]]]], int, "expected an integer from 0 to -1, got 0"),
        ([[1, [[{"floor": [4, 0]}, 1]]]], int, "from 1 to"),
        ([[1, [[{"root": 4}, 1]]]], int, "expected a factor of a size"),
        ({"a": 1}, object, "no file has a parameter of this kind"),
    ],
)
def test_damaged_parameters(data, hint, words):
    with pytest.raises(Damaged) as caught:
        read(data, hint)
    assert words in str(caught.value)


def test_sizes_are_bounded():
    """A product of many sums has more terms than a size may have."""
    variables = [[f"n{k}", 1, None] for k in range(60)]
    total = [[1, [[k, 1]]] for k in range(60)]
    product = [[1, [[{"positive": total}, 1], [{"floor": [total, 1]}, 2]]]]
    r = Reader({**Writer("save").tables(), "variables": variables, "sizes": []}, [])
    with pytest.raises(Damaged, match="more than 64 terms"):
        from_data(product, int, r)
    nested = 1
    for _ in range(20):
        nested = [[1, [[{"positive": nested}, 1]]]]
    with pytest.raises(Damaged, match="expected a size"):
        from_data(nested, int, r)
