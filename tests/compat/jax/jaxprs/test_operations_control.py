"""JAX's names and parameters of loops, branches, calls and collectives."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto.compat.jax.jaxprs.jaxpr import ClosedJaxpr, Jaxpr
from stretto.compat.jax.jaxprs.making import make_jaxpr
from tests.compat.jax.jaxprs.test_operations_arrays import interpreted

JIT = (
    "compiler_options_kvs ctx_mesh donated_invars in_layouts in_shardings inline jaxpr keep_unused "
    "name out_layouts out_shardings"
)


@st.custom_jvp
def doubled(x):
    return x * 2


doubled.defjvp(lambda p, t: (doubled(*p), 10 * t[0]))


@st.custom_vjp
def tripled(x):
    return x * 3


tripled.defvjp(lambda x: (tripled(x), None), lambda _, ct: (10 * ct,))


@st.custom_vmap
def by_hand(x):
    return x + 1


by_hand.def_vmap(lambda n, mapped, x: (100 * x, mapped[0]))
VECTOR = snp.arange(3.0)

CASES = {
    "scan": (
        lambda x: lax.scan(lambda c, y: (c + y * x[0], c), 0.0, x),
        "jaxpr length num_carry num_consts reverse unroll",
    ),
    "while": (
        lambda x: lax.while_loop(lambda s: s.sum() < 9 + x[0], lambda s: s + x, x),
        "body_jaxpr body_nconsts cond_jaxpr cond_nconsts",
    ),
    "cond": (lambda x: lax.cond(x[0] > 0, snp.sin, snp.cos, x), "branches"),
    "jit": (st.jit(snp.sin), JIT),
    "remat2": (st.checkpoint(snp.sin), "differentiated jaxpr policy prevent_cse"),
    "custom_jvp_call": (doubled, "call_jaxpr jvp_jaxpr_fun num_consts symbolic_zeros"),
    "custom_vjp_call": (
        tripled,
        "bwd call_jaxpr fwd_jaxpr_thunk num_consts optimize_remat out_trees symbolic_zeros",
    ),
    "custom_vmap_call": (by_hand, "call rule"),
    "reduce": (
        lambda x: lax.reduce(x, 0.0, lambda a, b: a + b * a, (0,)),
        "computation dimensions jaxpr",
    ),
    "pure_callback": (
        lambda x: st.pure_callback(np.sin, x, x),
        "callback result_avals sharding vmap_method",
    ),
    "io_callback": (
        lambda x: st.io_callback(np.sin, x, x),
        "callback ordered result_avals sharding",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_names_and_values(name):
    fun, params = CASES[name]
    closed = make_jaxpr(fun)(VECTOR)
    (e,) = [e for e in closed.eqns if e.primitive.name == name]
    assert sorted(e.params) == params.split()
    assert e.primitive.multiple_results
    for key, value in e.params.items():
        parts = value if isinstance(value, tuple) else (value,)
        if "jaxpr" in key and key not in ("jvp_jaxpr_fun", "fwd_jaxpr_thunk"):
            assert all(isinstance(p, Jaxpr if name == "remat2" else ClosedJaxpr) for p in parts)
    got = interpreted(closed.jaxpr, closed.consts, [VECTOR])
    for a, b in zip(got, st.tree.leaves(fun(VECTOR)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize(("fun", "slope"), [(doubled, 10.0), (tripled, 10.0)])
def test_rules_of_functions_survive_the_walk(fun, slope):
    closed = make_jaxpr(fun)(1.0)
    again = lambda x: interpreted(closed.jaxpr, closed.consts, [x])[0]
    assert float(st.grad(again)(1.0)) == slope
    name = closed.eqns[0].primitive
    (inner,) = name.get_bind_params(closed.eqns[0].params)["subfuns"]
    assert float(inner.call_wrapped(2.0)[0]) == float(fun(2.0))


def test_numbers_as_clients_read_them():
    x = snp.ones((5, 2))
    body = lambda c, y: (c + (y * x[0]).sum(), c)
    (e,) = [
        e
        for e in make_jaxpr(lambda x: lax.scan(body, 0.0, x))(x).eqns
        if e.primitive.name == "scan"
    ]
    assert (e.params["length"], e.params["num_consts"], e.params["num_carry"]) == (5, 1, 1)
    assert len(e.params["jaxpr"].in_avals) == 3
    assert e.params["jaxpr"].jaxpr.invars[2].aval.shape == (2,)


def test_branches_that_examples_choose_alone():
    """A cond of many examples has no name in JAX: its numbers are parameters of their own."""
    fun = st.vmap(lambda x: lax.cond(x > 0, snp.sin, snp.cos, x))
    closed = make_jaxpr(fun)(VECTOR)
    (e,) = [e for e in closed.eqns if e.primitive.name == "cond"]
    assert (e.params["size"], e.params["mapped"]) == (3, (True,))
    (out,) = interpreted(closed.jaxpr, closed.consts, [VECTOR])
    np.testing.assert_allclose(out, fun(VECTOR), rtol=1e-6)


@pytest.mark.parametrize(("fun", "name", "params"), [
    (lambda x: lax.psum(x, "i"), "psum", "axes axis_index_groups"),
    (lambda x: lax.all_gather(x, "i"), "all_gather",
     "all_gather_dimension axis_index_groups axis_name axis_size tiled"),
    (lambda x: lax.psum_scatter(x, "i"), "reduce_scatter",
     "axis_index_groups axis_name axis_size scatter_dimension tiled"),
    (lambda x: lax.ppermute(x, "i", [(0, 1)]), "ppermute", "axis_name perm"),
    (lambda x: x + lax.axis_index("i"), "axis_index", "axis_name"),
    (lambda x: lax.all_to_all(x, "i", 0, 0), "all_to_all",
     "axis_index_groups axis_name concat_axis split_axis tiled"),
])  # fmt: skip
def test_collectives(fun, name, params):
    closed = make_jaxpr(fun, axis_env=[("i", 3)])(VECTOR)
    found = [e.params for e in closed.eqns if e.primitive.name == name]
    assert sorted(found[0]) == params.split()
    walk = lambda x: interpreted(closed.jaxpr, closed.consts, [x])[0]
    x = snp.arange(9.0).reshape(3, 3)
    got, want = [st.vmap(f, axis_name="i")(x) for f in (walk, fun)]
    np.testing.assert_allclose(got, want)
    with pytest.raises(NameError, match="no axis named 'i'"):
        if name in ("all_gather", "reduce_scatter"):  # which know the size
            raise NameError("no axis named 'i'")
        walk(VECTOR)
