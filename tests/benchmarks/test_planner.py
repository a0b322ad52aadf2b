"""The judge of the planner: its cases, what it compiles of each, and what it says."""

import json
import math

import numpy as np
import pytest

from benchmarks import planner
from benchmarks.planner import compiled, drawn, formulations, judged, main
from stretto._engine.core.config import config
from stretto._engine.xla.array import Array


def test_a_case_is_the_same_each_time_whichever_others_are_drawn():
    names = [drawn(0, number).name for number in range(40)]
    assert drawn(0, 17).name == names[17]
    assert len(set(names)) == 40
    assert drawn(1, 17).name != names[17]


def test_cases_are_within_bounds():
    for number in range(40):
        case = drawn(0, number)
        assert 2 <= case.size <= 100 and any(case.own)
        assert planner._WORK[0] <= case.work <= planner._WORK[1]
        arrays = [math.prod(shape) for shape in case.shapes]
        assert 4 * sum(arrays) <= planner._BYTES


@pytest.mark.parametrize("number", [2, 5, 38])
def test_all_formulations_of_a_case_give_the_same(number):
    call = drawn(0, number).call()
    programs, taken, decisions = formulations(call)
    assert taken in programs and len(programs) > 1 and decisions
    types = programs[taken].in_types
    random = np.random.default_rng(0)
    buffers = [Array(random.integers(-3, 4, t.shape).astype(t.dtype), t).to_buffer() for t in types]
    results = [
        np.asarray(Array(None, program.out_types[0], compiled(call, program)(buffers)[0]))
        for program in programs.values()
    ]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_known_times_are_not_measured_again(monkeypatch):
    case = drawn(0, 2)
    with config(enable_x64=True):
        programs, taken, _ = formulations(case.call())
        known = {name: 10.0 + i for i, name in enumerate(programs)} | {taken: 26.0}
        monkeypatch.setattr(planner, "compiled", lambda *of: pytest.fail("it was compiled"))
        found = judged(case, known, 1.0)
    assert found["ratio"] == 26 / min(known.values())
    assert list(found["times"].values()) == sorted(known.values())


def test_the_command_says_how_many_are_near_the_best(tmp_path, monkeypatch, capsys):
    file = tmp_path / "times.json"
    monkeypatch.setattr(planner, "times_of", lambda runs, *_: dict.fromkeys(runs, 5.0))
    arguments = ["--cases", "1", "--from", "2", "--seconds", "0", "--keep", str(file)]
    assert main(arguments) == 0
    assert "1 of 1 choices within 1.3 of the best" in capsys.readouterr().out
    ((name, times),) = json.loads(file.read_text()).items()
    assert name == drawn(0, 2).name and set(times.values()) == {5.0}
    with config(enable_x64=True):
        taken = formulations(drawn(0, 2).call())[1]
    file.write_text(json.dumps({name: times | {taken: 7.0}}))
    assert main(arguments) == 1
    said = capsys.readouterr().out
    assert "0 of 1" in said and "1.40  convolution" in said
