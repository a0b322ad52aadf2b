"""The names of all primitives."""

import pytest

import stretto.numpy as snp
from stretto._engine.core.primitive import PRIMITIVES
from stretto.compat.jax.jaxprs.jaxpr import SPELLINGS
from stretto.compat.jax.jaxprs.making import make_jaxpr
from stretto.compat.jax.jaxprs.operations import NAMES, primitive_of


def test_every_name_is_a_primitive():
    assert len(NAMES) == len(set(NAMES))
    for name in NAMES:
        assert primitive_of(name) is primitive_of(name)


@pytest.mark.parametrize(("name", "called"), [
    ("sin", "sin"), ("scatter_add", "scatter-add"), ("remat", "remat2"), ("add_jaxvals", "add_any"),
    ("linear_solve", "custom_linear_solve"),
])  # fmt: skip
def test_what_they_are_called(name, called):
    assert str(primitive_of(name)) == called


def test_they_are_those_of_equations():
    (e,) = make_jaxpr(snp.sin)(1.0).eqns
    assert e.primitive is primitive_of("sin")


def test_no_operation_that_there_is_counts_as_absent():
    others = {p.name for p in PRIMITIVES if p not in SPELLINGS}
    spelled = {spelling.primitive for spelling in SPELLINGS.values()}
    absent = [name for name in NAMES if primitive_of(name) not in spelled]
    assert not sorted(others.intersection(absent))


def test_those_without_a_counterpart():
    assert primitive_of("call").call_primitive
    assert not primitive_of("jit").call_primitive
    with pytest.raises(NotImplementedError, match="get: Stretto has no such operation"):
        primitive_of("get").bind(1.0)
    with pytest.raises(AttributeError, match="no primitive is called nonsense_p"):
        primitive_of("nonsense")


def test_they_can_be_applied_to_numbers():
    assert float(primitive_of("mul").bind(snp.ones(2), 3.0)[1]) == 3.0
    assert float(primitive_of("erf_inv").bind(0.0)) == 0.0
    assert float(primitive_of("add_jaxvals").bind(1.0, 2.0)) == 3.0
