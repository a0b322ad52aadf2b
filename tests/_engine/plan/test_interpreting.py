"""Which programs are so small that they run in NumPy: each of the limits."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.plan.interpreting import (
    MOST_ELEMENTS,
    MOST_EQUATIONS,
    MOST_WORK,
    interpretable,
)


def small(f, *args):
    return interpretable(st.make_graph(f)(*args))


def chain(turns):
    return lambda x: [x := x + x for _ in range(turns)][-1]


def test_the_number_of_operations():
    x = snp.ones(3)
    assert small(lambda x: x, x)
    assert small(chain(MOST_EQUATIONS), x)
    assert not small(chain(MOST_EQUATIONS + 1), x)


def test_the_elements_of_inputs_and_of_what_is_made():
    most = snp.ones(MOST_ELEMENTS)
    assert small(chain(2), most)
    assert not small(chain(2), snp.ones(MOST_ELEMENTS + 1))
    assert not small(lambda x: x, snp.ones(MOST_ELEMENTS + 1))
    wide = lambda x: snp.sum(x[:, None] * x[None, :])
    assert small(wide, snp.ones(32))
    assert not small(wide, snp.ones(33))


def test_the_work_of_all_operations():
    x = snp.ones((32, 32))
    products = lambda n: lambda x: [x := x @ x for _ in range(n)][-1]
    fit = int(MOST_WORK / 32**3)
    assert fit < MOST_EQUATIONS
    assert small(products(fit), x)
    assert not small(products(fit + 1), x)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: st.lax.fori_loop(0, 3, lambda i, x: x + x, x),
        lambda x: st.lax.cond(True, lambda: x, lambda: x + x),
        snp.linalg.svd,
        lambda x: snp.stack(snp.linalg.eigh(x)[:1]),
    ],
    ids=["loop", "branch", "several results", "factorisation"],
)
def test_what_numpy_has_no_function_of_its_own_for(f):
    assert not small(f, snp.ones((3, 3)))


def test_it_depends_on_the_program_alone():
    program = st.make_graph(chain(2))(np.float32(1))
    assert interpretable(program) and interpretable(program)
    with st.config(disable_jit=True):
        assert interpretable(program)
