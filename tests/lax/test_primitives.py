"""JAX's names of primitives tell the equations of programs apart."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.api.graph import make_graph
from stretto._engine.core.primitive import PRIMITIVES, Primitive
from stretto.lax import primitives


def of(function, *args):
    """The primitives of the program of a function."""
    return [e.primitive for e in make_graph(function)(*args).equations]


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("exp_p", lax.exp),
        ("neg_p", lax.neg),
        ("integer_pow_p", lambda x: lax.integer_pow(x, 3)),
        ("round_p", lax.round),
        ("round_p", lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)),
        ("cumsum_p", lambda x: lax.cumsum(x, 0)),
        ("stop_gradient_p", lax.stop_gradient),
        ("scan_p", lambda x: lax.scan(lambda c, x: (c + x, c), 0.0, x)),
        ("while_p", lambda x: lax.while_loop(lambda x: x[0] < 3, lambda x: x + 1, x)),
    ],
)
def test_names_are_the_primitives_of_equations(name, function):
    (primitive,) = of(function, snp.ones(3))
    assert isinstance(primitive, getattr(lax, name))
    others = [n for n in primitives.__all__ if isinstance(primitive, getattr(lax, n))]
    assert others == [name]


def test_those_without_parameters_are_the_very_objects():
    add, exp = of(lambda x: lax.exp(x + 1), 1.0)
    assert add is lax.add_p
    assert exp is lax.exp_p
    rules = {lax.exp_p: "exp", lax.add_p: "add"}
    assert [rules[add], rules[exp]] == ["add", "exp"]


def test_each_name_stands_for_a_primitive_of_that_name():
    exceptions = {"linear_solve_p": "custom_linear_solve", "round_p": "nearest"}
    for name in primitives.__all__:
        value = getattr(lax, name)
        own = type(value) if isinstance(value, Primitive) else value
        if name not in exceptions:
            assert own.name == name.removesuffix("_p")
            assert own in PRIMITIVES
        plain = not (own._parameters or own._unfinished)  # the latter: until it is first used
        assert isinstance(value, Primitive) == (plain and name not in exceptions)
    assert st.lax.exp_p in vars(st.lax).values()
