"""Rules for ``vmap``: the three tables, mapped axes, shorthand."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax.jaxprs import own
from stretto.compat.jax.jaxprs.primitive import Primitive
from tests.compat.jax.running import prints

ROWS = snp.arange(6.0).reshape(2, 3)


def summed():
    p = Primitive("summed")
    p.def_impl(lambda x: snp.sum(x, -1))
    return p


def test_axes_are_as_rules_say():
    p = Primitive("turned")
    p.multiple_results = True
    p.def_impl(lambda x: [x, x.sum(), snp.zeros(())])
    own.primitive_batchers[p] = lambda args, axes: (
        [args[0].T, args[0].sum(1), snp.zeros(())], [1, axes[0], own.not_mapped]
    )  # fmt: skip
    first, second, third = st.vmap(p.bind)(ROWS)
    assert first.tolist() == ROWS.tolist()
    assert second.tolist() == [3.0, 12.0]
    assert third.tolist() == [0.0, 0.0]


def test_rules_that_get_size_and_name():
    seen = []
    p, q = summed(), summed()
    own.axis_primitive_batchers[p] = lambda size, name, kind, args, axes: (
        seen.append((size, name)) or snp.sum(args[0], 1), 0
    )  # fmt: skip
    own.fancy_primitive_batchers[q] = lambda axis, args, axes: (
        seen.append((axis.size, axis.name)) or snp.sum(args[0], 1), 0
    )  # fmt: skip
    assert st.vmap(p.bind, axis_name="i")(ROWS).tolist() == [3.0, 12.0]
    assert st.vmap(q.bind)(ROWS).tolist() == [3.0, 12.0]
    assert seen == [(2, "i"), (2, None)]


def test_what_ignores_the_axis():
    p = Primitive("any")
    p.def_impl(snp.any)
    own.primitive_batchers[p] = lambda args, axes: (p.bind(args[0]), None)
    got = st.jit(st.vmap(p.bind))(snp.array([True, False]))
    assert got.tolist() == [True, True]


def test_shorthand():
    p, q = Primitive("doubled"), Primitive("added")
    p.def_impl(lambda x: 2 * x)
    q.def_impl(snp.add)
    own.defvectorized(p)
    own.defbroadcasting(q)
    assert st.vmap(p.bind)(ROWS).tolist() == (2 * ROWS).tolist()
    assert st.vmap(q.bind, (0, None))(ROWS, ROWS[0]).tolist() == (ROWS + ROWS[0]).tolist()
    np.testing.assert_array_equal(own.broadcast(snp.ones(2), 3, 1), np.ones((2, 3)))
    assert own.bdim_at_front(ROWS, 1, 3).shape == (3, 2)
    assert own.bdim_at_front(1.0, None, 3).shape == (3,)


def test_none():
    with pytest.raises(NotImplementedError, match="summed has no rule for vmap"):
        st.vmap(summed().bind)(ROWS)


def test_rules_of_operations_that_there_are():
    assert prints(
        """
        from jax import lax
        from jax.interpreters import batching

        own, calls = batching.primitive_batchers[lax.sub_p], []

        def rule(args, axes, **params):
            calls.append(axes)
            out, axis = own(args, axes, **params)
            return 10 * out, axis

        f = lambda x, y: x - y
        x, y = jnp.arange(6.0).reshape(2, 3), jnp.ones((3, 2))
        before = jax.vmap(f, (0, 1))(x, y)
        batching.primitive_batchers[lax.sub_p] = rule
        for way in (lambda g: g, jax.jit):
            after = way(jax.vmap(lambda x, y: f(x, y), (0, 1)))(x, y)
            print(len(calls), bool((after == 10 * before).all()))
            calls.clear()
        print(f(3.0, 1.0), lax.sub_p in batching.primitive_batchers)
        own_p = jax.extend.core.Primitive("own")
        print(own_p in batching.primitive_batchers, batching.primitive_batchers.get(own_p))
        products = batching.primitive_batchers[lax.dot_general_p]
        params = jax.make_jaxpr(jnp.dot)(jnp.ones(3), jnp.ones(3)).eqns[0].params
        out, axis = products((x, jnp.ones(3)), (0, None), **params)
        print(out, axis)
        """
    ) == ["1 True", "1 True", "2.0 True", "False None", "[ 3. 12.] 0"]
