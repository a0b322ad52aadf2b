"""Which programs are so small that they run in NumPy: each of the limits."""

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto._engine.passes.interpret_small import (
    MOST_ELEMENTS,
    MOST_EQUATIONS,
    MOST_WORK,
    interpretable,
)


def repeated(n):
    def f(x):
        for _ in range(n):
            x = x * x
        return x

    return f


def program_of(f, *args):
    return st.jit(f).trace(*args).program


def test_the_rule():
    x, large = snp.ones(4), snp.ones(MOST_ELEMENTS + 1)
    assert interpretable(program_of(repeated(MOST_EQUATIONS), x))
    assert not interpretable(program_of(repeated(MOST_EQUATIONS + 1), x))
    assert interpretable(program_of(repeated(2), large[1:]))
    assert not interpretable(program_of(repeated(2), large))
    assert not interpretable(program_of(lambda x: snp.outer(x, x), snp.ones(33)))  # its result
    assert not interpretable(program_of(snp.sort, x))
    assert not interpretable(program_of(snp.fft.fft, x))
    assert not interpretable(program_of(snp.linalg.inv, snp.eye(2)))
    assert not interpretable(program_of(lambda x: st.lax.fori_loop(0, 3, lambda i, c: c, x), x))
    assert not interpretable(program_of(lambda x: st.lax.cond(x[0] > 0, snp.sin, snp.cos, x), x))
    a, b = snp.ones((32, 32)), snp.ones((32, 32))
    assert interpretable(program_of(lambda a, b: a @ b, a, b))
    assert not interpretable(program_of(lambda a, b: a @ b @ a @ b @ a @ b @ a @ b, a, b))


def small(f, *args):
    return interpretable(st.make_graph(f)(*args))


def chain(turns):
    return lambda x: [x := x + x for _ in range(turns)][-1]


def test_the_number_of_operations():
    x = snp.ones(3)
    assert small(lambda x: x, x)
    assert small(chain(MOST_EQUATIONS), x)
    assert not small(chain(MOST_EQUATIONS + 1), x)
    assert not small(snp.linalg.svd, snp.ones((3, 3)))  # several results


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


def test_it_depends_on_the_program_alone():
    program = st.make_graph(chain(2))(np.float32(1))
    assert interpretable(program) and interpretable(program)
    with st.config(disable_jit=True):
        assert interpretable(program)
