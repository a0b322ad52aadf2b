"""Chains agree with their oracles with every optimization on, and with each one off."""

import pytest

import stretto as st
from stretto._engine.core import config
from stretto._engine.core.rewriting import drop_dead
from stretto._engine.eager.interpreted import interpretable
from stretto._engine.passes.prepare import prepare
from tests.property.chains import (
    COMPILED_WHOLE,
    ROLLED,
    Failure,
    Step,
    draw_chain,
    run_chain,
    turned,
)
from tests.property.programs import Block, Statement, Var, namespace
from tests.property.settings import ALL_ON, OPTIMISATIONS, PLANS, SETTINGS, draw_settings, lines_of
from tests.property.shrinking import shrink
from tests.property.writer import ABOUT, draw_program

NAMES = list(SETTINGS)
SWITCHED = [name for name in NAMES if not name.startswith("plan")]


def check_chain(program, way, steps, at, settings):
    with st.enable_x64():
        try:
            run_chain(program, way, steps, at, settings)
        except Failure as failure:
            small = shrink(failure, program, way, steps, at, settings, 30)
            pytest.fail(small.reproducer())


@pytest.mark.parametrize("name", NAMES)
def test_chains(name):
    first = 100 * NAMES.index(name)
    for at in range(first, first + 5):
        program, way = draw_program(at, 5)
        check_chain(program, way, draw_chain(at, way, 2), at, SETTINGS[name])


DERIVED = {"both": "vjp", "forward": "jvp", "reverse": "vjp"}


@pytest.mark.parametrize("name", SWITCHED)
def test_long_loops_and_their_derivatives(name):
    """The same programs with all settings."""
    for at in (2, 5, 12):
        program, way = draw_program(at, about="long loops")
        check_chain(program, way, [COMPILED_WHOLE], at, SETTINGS[name])
        steps = [Step(DERIVED[way], at), COMPILED_WHOLE]
        check_chain(program, way, steps, at, SETTINGS[name])


@pytest.mark.parametrize("name", SWITCHED)
def test_few_operations(name):
    for at in range(6):
        program, way = draw_program(at, about="few operations")
        check_chain(program, way, draw_chain(at, way, 1), at, SETTINGS[name])


@pytest.mark.parametrize("name", ["all on", "eager_compiled off", "all off"])
def test_large_arrays(name):
    for at in range(3):
        program, way = draw_program(at, about="large arrays")
        check_chain(program, way, [Step("grad", at), COMPILED_WHOLE], at, SETTINGS[name])


def test_settings_name_every_optimization():
    switches = {name for name, setting in config.SETTINGS.items() if setting.default is True}
    assert switches == {*OPTIMISATIONS, "huge_pages"}  # that is of the whole process
    assert {"auto", "measure", *PLANS} == set(config.SETTINGS["plan"].choices)
    assert all(SETTINGS[f"{name} off"] == {**ALL_ON, name: False} for name in OPTIMISATIONS)


def graphs(about, seeds):
    for at in seeds:
        program, _ = draw_program(at, about=about)
        names = namespace(program.source())
        args = [eval(v.drawn(at), names) for v in program.params]
        yield st.make_graph(names["g0"])(*args)


def test_programs_have_what_optimizations_look_for():
    """Otherwise chains would pass by optimizing nothing."""
    with st.enable_x64():
        long = list(graphs("long loops", range(12)))
        rolled = simpler = 0
        for graph in long:
            with st.config(simplify=True, roll_loops=False):
                plain = prepare(graph)
            with st.config(simplify=True, roll_loops=True), turned(ROLLED):
                rolled += len(prepare(graph).equations) < len(plain.equations)
            simpler += len(plain.equations) < len(drop_dead(graph).equations)
        assert rolled >= 9 and simpler >= 4
        few = list(graphs("few operations", range(12)))
        assert sum(map(interpretable, few)) >= 9


def test_settings_are_in_force_and_in_what_a_failure_prints(monkeypatch):
    x = Var("x0", "float", (3,))
    seen = []
    monkeypatch.setattr(st, "probe", lambda x: seen.append(st.config.simplify) or x, raising=False)
    program = Block("g0", "x0", (x,), (Statement("probe", (x,), "st.probe({0})", (x,)),), (x,))
    settings = {**ALL_ON, "simplify": False, "plan": "wide"}
    with st.enable_x64():
        run_chain(program, "both", [], 0, settings)
        assert set(seen) == {False}
        monkeypatch.setattr(st, "probe", lambda x: 1 / 0)
        with pytest.raises(Failure) as caught:
            run_chain(program, "both", [], 1, settings)
    text = caught.value.reproducer()
    assert "st.config.simplify = False\nst.config.plan = 'wide'\n" in text
    assert "roll_loops" not in text


def test_draws_are_of_all_kinds_and_the_same_each_time():
    drawn = [draw_settings(seed) for seed in range(200)]
    assert drawn == [draw_settings(seed) for seed in range(200)]
    assert ALL_ON in drawn
    off = [{name for name in OPTIMISATIONS if not s[name]} for s in drawn]
    assert {name for names in off for name in names if len(names) == 1} == set(OPTIMISATIONS)
    assert any(len(names) > 2 for names in off)
    assert {s["plan"] for s in drawn} == {"auto", *PLANS}
    assert lines_of(ALL_ON) == ""
    assert set(ABOUT) == {"few operations", "long loops", "large arrays"}
