"""Random programs under random chains of transformations agree with loops and with differences."""

import random

import numpy as np
import pytest

import stretto as st
from tests.property.chains import Failure, Step, draw_chain, run_chain
from tests.property.oracles import Discard, Mismatch, assert_same, assert_slope, slope
from tests.property.programs import Block, Statement, Var
from tests.property.shrinking import shrink
from tests.property.sweep import sweep
from tests.property.transformations import TRANSFORMATIONS
from tests.property.writer import draw_program


@pytest.mark.parametrize("first", range(0, 48, 4))
def test_every_link_agrees_with_its_oracle(first):
    with st.enable_x64():
        for at in range(first, first + 4):
            program, way = draw_program(at)
            steps = draw_chain(at, way)
            try:
                run_chain(program, way, steps, at)
            except Failure as failure:
                pytest.fail(shrink(failure, program, way, steps, at, 30).reproducer())


X = Var("x0", "float", (3,))
Y = Var("y", "float", (3,))


def block(*statements):
    return Block("g0", "x0", (X,), tuple(statements), (statements[-1].outs[0],))


SINE = block(Statement("sin", (Y,), "snp.sin({0})", (X,)))


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_each_transformation_applies(name):
    """Otherwise chains would pass by checking nothing."""
    with st.enable_x64():
        for seed in range(6):
            assert run_chain(SINE, "both", [Step(name, seed)]) == (1, "")


WRONG = """own = st.custom_jvp(snp.sin)"""
RULE = """own.defjvp(lambda p, t: (snp.sin(p[0]), 1.001 * snp.cos(p[0]) * t[0]))"""
WRONG_SINE = Statement("wrong", (Y,), "own({0})", (X,), setup=(WRONG, RULE))
DERIVATIVES = [name for name, t in TRANSFORMATIONS.items() if t.takes]


@pytest.mark.parametrize("name", DERIVATIVES)
def test_a_wrong_derivative_is_found(name):
    for seed in range(4):
        with st.enable_x64(), pytest.raises(Failure, match="differences"):
            run_chain(block(WRONG_SINE), "both", [Step(name, seed)])


def test_a_failure_is_made_small_and_runs_by_itself():
    z, u = Var("z", "float", (3,)), Var("u", "float", (3,))
    program = block(
        Statement("cos", (z,), "snp.cos({0})", (X,)),
        WRONG_SINE,
        Statement("add", (u,), "{0} + {1}", (Y, z)),
    )
    steps = [Step("jit", 1), Step("vmap", 2), Step("grad", 3)]
    with st.enable_x64():
        with pytest.raises(Failure) as caught:
            run_chain(program, "both", steps)
        small = shrink(caught.value, program, "both", steps, 0)
        assert "cos(x0)" not in small.source
        assert "st.jit" not in small.source and "st.vmap" not in small.source
        with st.config(enable_x64=True):
            exec(small.reproducer().replace("st.config.enable_x64 = True\n", ""), {})


def test_chains_use_every_transformation():
    drawn = {step.name for seed in range(200) for step in draw_chain(seed, "both")}
    assert drawn == set(TRANSFORMATIONS)


def test_the_derivative_of_a_kink_is_discarded():
    at = lambda x: [np.asarray(np.abs(x))]
    with pytest.raises(Discard, match="kink"):
        slope(at, [np.asarray(0.0)], {0: np.asarray(1.0)})
    with pytest.raises(Discard, match="steps disagree"):
        slope(at, [np.asarray(3e-5)], {0: np.asarray(1.0)})


def test_slopes_of_smooth_functions():
    rng = random.Random(0)
    for f, df in ((np.sin, np.cos), (np.exp, np.exp), (np.tanh, lambda x: 1 - np.tanh(x) ** 2)):
        x = np.asarray(rng.uniform(-1, 1))
        (got,) = slope(lambda x, f=f: [f(x)], [x], {0: np.asarray(1.0)})
        assert abs(got - df(x)) < 1e-9


def test_comparisons_refuse_what_differs():
    one = np.ones(2)
    with pytest.raises(Mismatch, match="expected"):
        assert_same([one], [one * (1 + 1e-8)], "these")
    with pytest.raises(Mismatch, match="expected float64"):
        assert_same([one.astype(np.float32)], [one], "these")
    with pytest.raises(Mismatch, match="1 results, expected 0"):
        assert_same([one], [], "these")
    with pytest.raises(Mismatch):
        assert_same([one * np.nan], [one], "these")
    with pytest.raises(Mismatch, match="differences"):
        assert_slope([one], [one * (1 + 1e-5)], "these")


def test_the_sweep_counts(capsys):
    with st.enable_x64():
        assert sweep(seed=500, minutes=1, programs=2, size=3, chains=1) == 0
    assert "2 programs, 2 chains" in capsys.readouterr().out
