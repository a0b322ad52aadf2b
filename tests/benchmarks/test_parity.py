"""The comparison with PyTorch, as far as it goes without PyTorch: its cases and its verdicts."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest

import stretto as st
from benchmarks.parity import ours
from benchmarks.parity.__main__ import main
from benchmarks.parity.case import (
    Case,
    Fixed,
    Layer,
    Step,
    called,
    described,
    filled,
    packed,
    unpacked,
)
from benchmarks.parity.compare import AGREE, BOTH_REFUSE, DIFFER, PEER_REFUSES, PEER_WRONG, compare
from benchmarks.parity.families import FAMILIES, cases_of
from benchmarks.parity.known import WITHOUT_CASE
from benchmarks.parity.report import Tried, counts_of, reasons_of
from stretto import nn
from stretto.nn import functional

PRECISIONS = ("float64", "float32")


def layers():
    found = {name: getattr(nn, name) for name in dir(nn)}
    return {n for n, cls in found.items() if inspect.isclass(cls) and issubclass(cls, nn.Module)}


def functions():
    return {name for name in dir(functional) if inspect.isfunction(getattr(functional, name))}


def test_every_layer_and_function_has_cases_or_a_reason_why_not():
    assert FAMILIES.keys() | WITHOUT_CASE.keys() == layers() | functions()
    assert not FAMILIES.keys() & WITHOUT_CASE.keys()


@pytest.mark.parametrize("name", FAMILIES)
def test_cases_are_what_their_family_says_and_survive_the_wire(name):
    first, second = cases_of(name, 2, seed=3)
    made = first.target.name if isinstance(first.target, Layer) else first.target
    assert made == name
    assert bool(first.because) == (first.slack != 1)
    assert packed(unpacked(packed(first))) == packed(first)
    assert packed(cases_of(name, 2, seed=3)[1]) == packed(second)


def test_a_case_is_told_in_a_line():
    case = Case(
        Layer("A", (Layer("B", ([Layer("C")],)),), {"n": (1, None)}),
        (Step((np.ones((2, 3)),), {"d": {"w": Fixed(np.ones(2))}}),),
    )
    assert described(case) == "A(B([C()]), n=(1, None))(float64[2, 3], d=dict(w=float64[2]))"


def as_peer(case):
    """What PyTorch would answer if it computed as Stretto does."""
    results = {}
    for dtype in PRECISIONS:
        if isinstance(case.target, str):
            results[dtype] = {"steps": ours.steps(case, dtype, compiled=False)}
            continue
        initial = ours.initial_state(ours.built(case.target, dtype))
        names = dict(ours.built(case.target, dtype).named_parameters())
        loaded = {
            name: filled(name, x.shape).astype(dtype) if name in names else x
            for name, x in initial.items()
        }
        steps = ours.steps(case, dtype, compiled=False, state=loaded)
        results[dtype] = {"initial": initial, "loaded": loaded, "steps": steps}
    return results


NORM = Case(
    Layer("BatchNorm1d", (2,)),
    tuple(Step((np.array([[1.0, 2], [3, 5], [4, -1]]) * k,), {}, k < 3) for k in (1, 2, 3)),
)


@pytest.mark.parametrize(
    "case",
    [
        called("linear", np.ones((2, 3)), np.ones((4, 3))),
        called("dropout", np.ones(3), p=1.0, training=True),
        called("max_pool1d", np.arange(6.0)[None], kernel_size=2, return_indices=True),
        NORM,
    ],
    ids=described,
)
def test_equal_results_agree(case):
    with st.enable_x64():
        assert compare(case, as_peer(case)).outcome == AGREE


def test_what_is_copied_are_the_peers_parameters():
    with st.enable_x64():
        peer = as_peer(NORM)
        assert peer["float64"]["steps"][0]["outputs"][0].dtype == np.float64
        peer["float64"]["loaded"]["weight"] = peer["float64"]["loaded"]["weight"] + 1
        assert compare(NORM, peer).why.startswith("float64, step 0: output 0: ")


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize(
    ("where", "said"),
    [
        (("outputs", 0), "output 0"),
        (("gradients", 0), "gradient 0"),
        (("parameters", "bias"), "gradient of bias"),
        (("buffers", "running_var"), "buffer running_var"),
    ],
)
def test_each_part_that_differs_is_found(dtype, where, said, monkeypatch):
    with st.enable_x64():
        peer = as_peer(NORM)
    steps, (part, key) = ours.steps, where

    def wrong(case, precision, compiled, state=None):
        found = steps(case, precision, compiled, state)
        if precision == dtype:
            off = 1e-9 if dtype == "float64" else 1e-3
            found[1][part][key] = (found[1][part][key] + off).astype(dtype)
        return found

    monkeypatch.setattr(ours, "steps", wrong)
    with st.enable_x64():
        verdict = compare(NORM, peer)
        assert verdict.outcome == DIFFER
        assert f"{dtype}, step 1: {said}: " in verdict.why
        relaxed = compare(replace(NORM, slack=1e3), peer)
    assert (relaxed.outcome == AGREE) == (dtype == "float64")


def test_near_the_peers_exact_numbers_is_near_enough():
    with st.enable_x64():
        peer = as_peer(NORM)
        outputs = peer["float32"]["steps"][1]["outputs"]
        outputs[0] = outputs[0] + np.float32(1e-3)
        assert compare(NORM, peer).outcome == AGREE


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda state: {"w": state["weight"], **state}, "names of the state"),
        (lambda state: {**state, "bias": state["bias"][:1]}, r"bias: shape \(2,\), PyTorch \(1,\)"),
        (lambda state: {**state, "weight": np.array([0.5, 0.5])}, "weight begins with"),
        (lambda state: {**state, "weight": np.array([0.5, 0.6])}, "begins with one number"),
        (lambda state: {**state, "weight": np.ones(2, np.float32)}, "float64, PyTorch float32"),
    ],
)
def test_states_must_be_alike(change, why):
    with st.enable_x64():
        peer = as_peer(NORM)
        peer["float64"]["initial"] = change(peer["float64"]["initial"])
        verdict = compare(NORM, peer)
    assert verdict.outcome == DIFFER
    with pytest.raises(AssertionError, match=why):
        raise AssertionError(verdict.why)


def refused(message="RuntimeError: no"):
    return {dtype: {"refused": message} for dtype in PRECISIONS}


def test_refusals():
    good = called("linear", np.ones((2, 3)), np.ones((4, 3)))
    bad = called("linear", np.ones((2, 3)), np.ones((4, 2)))
    with st.enable_x64():
        assert compare(good, refused()).outcome == PEER_REFUSES
        assert compare(bad, refused()).outcome == BOTH_REFUSE
        alone = compare(bad, as_peer(good))
    assert alone.outcome == DIFFER
    assert alone.why.startswith("Stretto raised ")


def test_a_gradient_that_is_no_transpose_is_the_peers_fault_but_its_output_counts():
    case = called("interpolate", np.arange(6.0).reshape(1, 1, 6), size=3, mode="nearest")
    with st.enable_x64():
        peer = as_peer(case)
        for dtype in PRECISIONS:
            (gradient,) = peer[dtype]["steps"][0]["gradients"]
            peer[dtype]["steps"][0]["gradients"] = [gradient * 2]
        assert compare(case, peer).outcome == PEER_WRONG
        tried = [Tried("interpolate", described(case), compare(case, peer))] * 2
        peer["float64"]["steps"][0]["outputs"][0] = np.zeros((1, 1, 3))
        assert compare(case, peer).outcome == DIFFER
    assert counts_of(tried) == {PEER_WRONG: 2}
    assert reasons_of(tried) == [
        "PyTorch is wrong: interpolate (2): resizing is linear, "
        "but the gradient is not its transpose"
    ]


def test_a_worker_that_does_not_start_is_an_error(capsys):
    assert main(["--peer-python", "/no/such/python", "--only", "linear"]) == 1
    assert "cannot start /no/such/python" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--only", "nonsense"], ["--cases", "0"]])
def test_unusable_options_end_with_2(options, capsys):
    with pytest.raises(SystemExit) as ending:
        main(options)
    assert ending.value.code == 2
    assert "error: argument" in capsys.readouterr().err
