"""PyTorch's samples of operations: what is asked, what is compared, and what is let pass."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

import stretto as st  # noqa: E402
from benchmarks.torch_samples import looking  # noqa: E402
from benchmarks.torch_samples.asked import Asked  # noqa: E402
from benchmarks.torch_samples.calls import Call  # noqa: E402
from benchmarks.torch_samples.comparing import difference, is_as_exact  # noqa: E402
from benchmarks.torch_samples.essence import of_gradients, of_results  # noqa: E402
from benchmarks.torch_samples.exceptions import GRADIENTS, VALUES  # noqa: E402
from benchmarks.torch_samples.tallies import Tallies, Tally  # noqa: E402

ATEN = torch.ops.aten


@pytest.fixture(autouse=True)
def wide():
    with st.config(enable_x64=True):
        yield


def call_of(function, *args, **kwargs):
    return Call.of(Asked.of(str(function), function, args, kwargs))


def looked_at(name, floats, most, monkeypatch):
    monkeypatch.setattr(looking, "MOST", most)
    tallies = Tallies()
    with st.config(enable_x64=floats == "float64"):
        looking.look_at_dispatched(next(op for op in op_db if op.name == name), floats, tallies)
    return tallies


@pytest.mark.parametrize("name, least", [("linalg.pinv", 6), ("linalg.lstsq", 16)])
def test_pytorch_is_asked_outside_of_its_mode(name, least, monkeypatch):
    tallies = looked_at(name, "float64", 8, monkeypatch)  # complex ones are wrong inside of it
    assert tallies.problems() == tallies.notes() == []
    assert sum([tally.right for tally in tallies.gradients_of.values()]) >= least


@pytest.mark.parametrize("floats", ["float32", "float64"])
def test_samples_of_either_precision(floats, monkeypatch):
    tallies = looked_at("logcumsumexp", floats, 60, monkeypatch)
    assert tallies.problems() == []
    assert tallies.of["aten.logcumsumexp.default"].right == 12
    rounded = tallies.gradients_of["aten.logcumsumexp.default"].rounded
    assert (rounded > 0) == (floats == "float32")  # PyTorch's are 7e-4 off where numbers are large


def test_a_call_is_asked_in_float64_too():
    asked = Asked.of("", torch.full, ((2,), 1.5), {"dtype": torch.float32})
    assert asked.arrays()[0].dtype == np.float32
    assert asked.in_float64().arrays()[0].dtype == np.float64


def test_an_error_of_python_is_no_refusal():
    tally = Tally()
    tally.refuse(NotImplementedError("give it minlength"))
    tally.refuse(IndexError("tuple index out of range"))
    assert dict(tally.refused) == {"NotImplementedError: give it minlength": 1}
    assert tally.wrong == ["IndexError: tuple index out of range"]


def test_differences():
    one = np.ones(2, np.float64)
    assert difference([one], [one + 1e-8]) == ""
    assert difference([one], [one + 1e-6]).startswith("result 0 differs: ")
    assert difference([one[:1]], [one]) == "result 0 has shape (1,) and not (2,)"
    assert difference([one.astype(int)], [one]).startswith("result 0 has dtype int64 and not ")


@pytest.mark.parametrize("off, exact", [(0.9e-3, True), (1.1e-3, False), (np.nan, False)])
def test_float32_is_held_to_the_distance_of_pytorch_from_float64(off, exact):
    true = np.array([1.0, 2, np.inf])
    theirs = (true + [1e-3, 0, 0]).astype(np.float32)
    ours = (true + [0, off, 0]).astype(np.float32)
    assert difference([ours], [theirs])
    assert is_as_exact([ours], [theirs], [true]) is exact


def test_places_of_equal_values_may_be_others_and_must_have_the_value():
    call = call_of(ATEN.sort.default, torch.tensor([2.0, 1, 1]).double())
    values = np.array([1.0, 1, 2])

    def compared(places):
        found = of_results("aten.sort.default", call.node, call.arrays, [values, np.array(places)])
        return difference(
            found, of_results("aten.sort.default", call.node, call.arrays, call.expected)
        )

    assert compared([2, 1, 0]) == compared([1, 2, 0]) == ""
    assert compared([0, 1, 2]).startswith("result 1 differs")


def test_vectors_may_have_other_signs_and_must_be_orthonormal():
    call = call_of(ATEN._linalg_svd.default, torch.tensor([[3.0, 1], [1, 2]]).double())
    name = "aten._linalg_svd.default"
    u, s, vh = call.expected
    wanted = of_results(name, call.node, call.arrays, call.expected)
    turned = of_results(name, call.node, call.arrays, [-u, s, -vh])
    assert difference(turned, wanted) == ""
    bent = of_results(name, call.node, call.arrays, [2 * u, s, vh / 2])
    assert difference(bent, wanted)


def test_gradients_of_a_factor_are_those_of_the_triangle_that_is_read():
    one = np.ones((2, 2))
    for upper, kept in ((False, np.tril(one)), (True, np.triu(one))):
        call = call_of(ATEN.cholesky_inverse.default, torch.eye(2), upper)
        (found,) = of_gradients("aten.cholesky_inverse.default", call.node, [one])
        np.testing.assert_array_equal(found, kept)


def test_what_is_known_to_differ_is_told_from_what_is_wrong():
    tally = Tally()
    for least in (2, 9):
        counted = call_of(ATEN.bincount.default, torch.tensor([0, 3]), None, least)
        tally.count(VALUES["aten.bincount.default"], counted, "differs")
    assert sum(tally.known.values()) == len(tally.wrong) == 1
    unpools = GRADIENTS["nn.functional.max_unpool1d"].applies
    for places, twice in (([0, 2], False), ([2, 2], True)):
        places = torch.tensor([[places, [3, 1]]])
        assert (
            unpools(call_of(ATEN.max_unpool2d.default, torch.ones(1, 2, 2), places, [1, 4]))
            is twice
        )
    pinv = GRADIENTS["aten.linalg_pinv.atol_rtol_tensor"].applies
    for a, lopsided in ((torch.eye(2), False), (torch.ones(2, 2).tril(), True)):
        call = call_of(ATEN.linalg_pinv.atol_rtol_tensor, a, hermitian=True)
        assert pinv(call) is lopsided
