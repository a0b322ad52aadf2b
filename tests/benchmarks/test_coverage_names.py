"""The names that libraries use: how parameters are compared, and the share that exists here."""

import inspect

import pytest

from benchmarks import coverage_names
from benchmarks.coverage_names import Name, check, differences, parameters


def of(function):
    return list(inspect.signature(function).parameters.values())


def test_parameters_are_read_as_python_writes_them():
    def function(a, b=1, /, c=2, *, d, e=3, **rest):
        pass

    spelt = ["a", "b=", "/", "c=", "*", "d", "e=", "**rest"]
    wanted = of(function)
    for p, q in zip(parameters(spelt), wanted, strict=True):
        assert (p.name, p.kind, p.default is p.empty) == (q.name, q.kind, q.default is q.empty)
    assert parameters(["*args", "x="])[1].kind is inspect.Parameter.KEYWORD_ONLY
    assert differences(parameters(spelt), wanted) == []


@pytest.mark.parametrize(
    ("wanted", "given", "wrong"),
    [
        (["x", "/"], lambda a: a, []),
        (["x"], lambda a: a, ["x is called a"]),
        (["x"], lambda x, y=1, *, z=2: x, []),
        (["x"], lambda x, y: x, ["y is needed here"]),
        (["x", "y="], lambda x, y: x, ["y has no default"]),
        (["x", "y"], lambda y, x: x, ["x is called y", "y is called x"]),
        (["x", "axis="], lambda x, *, axis=0: x, ["axis is by name only"]),
        (["x", "axis="], lambda x: x, ["axis is missing"]),
        (["x", "*", "axis="], lambda x, axis=0: x, []),
        (["x", "*", "axis="], lambda x, **rest: x, []),
        (["*xs", "**rest"], lambda *xs, **rest: xs, []),
        (["*xs", "**rest"], lambda x=0: x, ["*xs is missing", "**rest is missing"]),
        (["x", "min="], lambda x, low=0, *, min=0: x, []),
    ],
)
def test_differences(wanted, given, wrong):
    assert differences(parameters(wanted), of(given)) == wrong


def test_a_name_is_found_or_not():
    assert check(Name("jax.numpy.linalg.norm", 1, ("x", "ord=", "axis=", "keepdims="))) == ""
    assert check(Name("jax.lax.exp_p", 1, None)) == ""
    assert "there is no stretto.numpy.nothing" in check(Name("jax.numpy.nothing", 1, None))
    assert check(Name("jax.numpy.sin", 1, ("angle",))) == "angle is called x"


def test_the_table(capsys, monkeypatch):
    several = [Name("jax.lax.exp", 3, ("x", "*", "accuracy=")), Name("jax.lax.nothing", 2, None)]
    monkeypatch.setattr(coverage_names, "names", lambda: several)
    monkeypatch.setitem(coverage_names.REASONS, "jax.lax.nothing", "nobody has it")
    assert coverage_names.main(["--least", "50"]) == 0
    assert coverage_names.main(["--least", "51"]) == 1
    out = capsys.readouterr().out
    assert "3 of 5" in out
    assert "(left out: nobody has it)" in out


def test_reasons_are_for_names_of_the_file():
    assert set(coverage_names.REASONS) <= {name.name for name in coverage_names.names()}


def test_almost_every_name_that_libraries_use_exists():
    found = coverage_names.coverage(coverage_names.names())
    assert found["all"].share >= 0.98, found["all"].wrong
