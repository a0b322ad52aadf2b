"""JAX's names and parameters of operations on arrays, and that ``bind`` with them does the same."""

import importlib
import pkgutil

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto.compat.jax.jaxprs.jaxpr import SPELLINGS, ClosedJaxpr, Jaxpr, Literal
from stretto.compat.jax.jaxprs.making import make_jaxpr
from stretto.compat.jax.jaxprs.operations import NAMES, primitive_of
from tests.functions import checks, entries, table

for _, _name, _ in pkgutil.iter_modules(entries.__path__):
    importlib.import_module(f"tests.functions.entries.{_name}")

SCATTERS = "scatter scatter-add scatter-max scatter-min scatter-mul scatter-sub"
SCATTER = "dimension_numbers indices_are_sorted mode unique_indices update_consts update_jaxpr"
WINDOW = "base_dilation padding window_dilation window_dimensions window_strides"
ACCURATE = "cbrt cos exp exp2 expm1 log log1p logistic rsqrt sin sqrt tan tanh"
PLAIN = (
    "abs acos acosh add and asin asinh atan atan2 atanh bessel_i0e bessel_i1e ceil cholesky clamp "
    "clz complex cosh digamma div dynamic_update_slice eq erf erf_inv erfc floor ge gt hessenberg "
    "householder_product igamma igamma_grad_a igammac imag is_finite le lgamma lt max min ne neg "
    "nextafter not optimization_barrier or polygamma population_count pow real "
    "regularized_incomplete_beta rem select_n shift_left shift_right_arithmetic "
    "shift_right_logical sign sinh square stop_gradient sub threefry2x32 xor zeta"
)
PARAMETERS = {
    **dict.fromkeys(PLAIN.split(), ""),
    **dict.fromkeys(ACCURATE.split(), "accuracy"),
    **dict.fromkeys(["cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum"], "axis reverse"),
    **dict.fromkeys(
        ["reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod", "reduce_xor"], "axes"
    ),
    **dict.fromkeys(
        ["scatter", "scatter-add", "scatter-max", "scatter-min", "scatter-mul", "scatter-sub"],
        SCATTER,
    ),
    **dict.fromkeys(["reduce_window_max", "reduce_window_min", "reduce_window_sum"], WINDOW),
    "argmax": "axes index_dtype",
    "argmin": "axes index_dtype",
    "bitcast_convert_type": "new_dtype",
    "broadcast_in_dim": "broadcast_dimensions shape sharding",
    "concatenate": "dimension",
    "conj": "input_dtype",
    "conv_general_dilated": "batch_group_count dimension_numbers feature_group_count lhs_dilation "
    "out_sharding padding precision preferred_element_type rhs_dilation window_strides",
    "convert_element_type": "new_dtype sharding weak_type",
    "dot_general": "dimension_numbers out_sharding precision preferred_element_type",
    "dynamic_slice": "slice_sizes",
    "fft": "fft_lengths fft_type",
    "gather": "dimension_numbers fill_value indices_are_sorted mode slice_sizes unique_indices",
    "integer_pow": "y",
    "eig": "compute_left_eigenvectors compute_right_eigenvectors enable_eigvec_derivs "
    "implementation",
    "svd": "algorithm compute_uv full_matrices subset_by_index",
    "tridiagonal_solve": "perturb_singular",
    "reduce_window": f"base_dilation consts jaxpr {WINDOW.removeprefix('base_dilation ')}",
    "iota": "dimension dtype shape sharding",
    "mul": "out_dtype",
    "name": "name",
    "pad": "padding_config",
    "qr": "full_matrices pivoting use_magma",
    "reduce_precision": "exponent_bits mantissa_bits",
    "reduce_sum": "axes out_sharding",
    "reshape": "dimensions new_sizes sharding",
    "rev": "dimensions",
    "rng_bit_generator": "algorithm dtype out_sharding shape",
    "round": "rounding_method",
    "slice": "limit_indices start_indices strides",
    "sort": "dimension is_stable num_keys",
    "top_k": "axis k",
    "transpose": "permutation",
    "triangular_solve": "conjugate_a left_side lower transpose_a unit_diagonal",
}
"""The parameters that JAX 0.10 gives to each."""

MORE = {
    "eigh": "algorithm lower sort_eigenvalues subset_by_index vectors",
    "schur": "compute_schur_vectors differentiable select_callable sort_eig_vals",
    "random_bits": "bit_width layout shape",
}
"""Those with JAX's parameters, and one of Stretto's."""

OWN = {
    "lu",  # without the permutation, which is computed from the exchanges where it is needed
    "select_and_gather_add",  # along one axis, and with places rather than values to choose by
    "select_and_scatter_add",
    "custom_linear_solve",  # whose programs share what they captured
    "sharding_constraint",
}
"""Those of JAX's names with Stretto's own parameters."""

CONTROL = {"cond", "jit", "scan", "while", "reduce", "custom_jvp_call", "custom_vjp_call", "remat2"}
CONTROL |= {"pure_callback", "io_callback", "custom_vmap_call"}
"""Those of ``test_control``."""


def interpreted(jaxpr, consts, args):
    """The outputs, by a walk over the equations such as clients write."""
    known = dict(zip([*jaxpr.invars, *jaxpr.constvars], [*args, *consts], strict=True))

    def read(atom):
        return atom.val if isinstance(atom, Literal) else known[atom]

    for e in jaxpr.eqns:
        out = e.primitive.bind(*map(read, e.invars), **e.primitive.get_bind_params(e.params))
        known.update(zip(e.outvars, out if e.primitive.multiple_results else [out], strict=True))
    return [read(a) for a in jaxpr.outvars]


def equations(jaxpr):
    """All equations, those inside of others too."""
    for e in jaxpr.eqns:
        yield e
        for value in e.params.values():
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, (Jaxpr, ClosedJaxpr)):
                    yield from equations(part.jaxpr)


CALLABLE = [
    name
    for name, e in sorted(table.ENTRIES.items())
    if not e.uncompiled and name.startswith(("lax.", "numpy.", "scipy.special."))
]


@pytest.mark.parametrize("name", CALLABLE)
def test_names_and_values(name):
    """For every function of the table: JAX's parameters, and the values of the walk."""
    entry = table.ENTRIES[name]
    dtype = entry.dtypes[0]
    with checks.bits(dtype):
        _, _, ours, _, arrays, *_ = next(iter(checks.instances(entry, (dtype,))))
        given = [snp.asarray(a) for a in arrays]
        closed = make_jaxpr(lambda *xs: checks.leaves(ours(*xs)))(*given)
        for e in equations(closed.jaxpr):
            called = e.primitive.name
            if called in PARAMETERS or called in MORE:
                assert sorted(e.params) == (PARAMETERS | MORE)[called].split(), called
        got = interpreted(closed.jaxpr, closed.consts, given)
        for a, b in zip(got, checks.leaves(ours(*given)), strict=True):
            checks.close(a, b, entry.tolerance, name)


def test_every_name_of_jaxs_that_there_is_has_its_parameters_here():
    collective = {"psum", "all_gather", "reduce_scatter", "axis_index", "ppermute", "all_to_all"}
    known = PARAMETERS.keys() | MORE.keys() | OWN | CONTROL | collective
    there_are = {s.primitive for s in SPELLINGS.values()}
    named = {p.name for name in NAMES if (p := primitive_of(name)) in there_are}
    assert not sorted(named - known)


@pytest.mark.parametrize(("fun", "name", "params"), [
    (lambda x: x.sum(0), "reduce_sum", {"axes": (0,)}),
    (lambda x: snp.argmax(x, 1), "argmax", {"axes": (1,)}),
    (lambda x: x.reshape(6), "reshape", {"new_sizes": (6,), "dimensions": None}),
    (lambda x: x.T, "transpose", {"permutation": (1, 0)}),
    (lambda x: x @ x.T, "dot_general", {"dimension_numbers": (((1,), (0,)), ((), ()))}),
    (lambda x: x[:, 1:3], "slice",
     {"start_indices": (0, 1), "limit_indices": (2, 3), "strides": None}),
    (lambda x: x[::2], "slice", {"strides": (2, 1)}),
    (lambda x: x**5, "integer_pow", {"y": 5}),
    (lambda x: x.astype(int), "convert_element_type", {"new_dtype": np.int32, "weak_type": False}),
    (lambda x: lax.top_k(x, 2), "top_k", {"k": 2, "axis": 1}),
    (snp.round, "round", {"rounding_method": lax.RoundingMethod.TO_NEAREST_EVEN}),
    (lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 1), (1, 1), "SAME"), "reduce_window_sum",
     {"window_dimensions": (2, 1), "padding": ((0, 1), (0, 0))}),
    (lambda x: x.at[snp.array([0, 5])].get(mode="fill", fill_value=7.0), "gather",
     {"mode": lax.GatherScatterMode.FILL_OR_DROP, "fill_value": 7.0}),
])  # fmt: skip
def test_parameters_as_clients_read_them(fun, name, params):
    eqns = make_jaxpr(fun)(snp.ones((2, 3))).eqns
    (found,) = [e.params for e in eqns if e.primitive.name == name]
    assert {key: found[key] for key in params} == params


def test_the_choices_of_select_n_are_in_jaxs_order():
    closed = make_jaxpr(snp.where)(True, snp.ones(2), snp.zeros(2))
    (e,) = [e for e in closed.eqns if e.primitive.name == "select_n"]
    assert e.invars[1:] == [closed.jaxpr.invars[2], closed.jaxpr.invars[1]]
    (out,) = interpreted(closed.jaxpr, closed.consts, [snp.array(True), snp.ones(2), snp.zeros(2)])
    assert out.tolist() == [1.0, 1.0]


def test_what_the_operation_cannot_do_is_refused():
    from_table = SPELLINGS[lax.top_k_p].primitive
    with pytest.raises(NotImplementedError, match="axis must be the last, 1, got 0"):
        from_table.bind(snp.ones((2, 3)), k=1, axis=0)


def test_a_derivative_can_be_walked():
    grad = st.grad(lambda x: (snp.sin(x) @ snp.cos(x)) * x[0])
    closed = make_jaxpr(grad)(snp.arange(3.0))
    (out,) = interpreted(closed.jaxpr, closed.consts, [snp.arange(3.0)])
    np.testing.assert_allclose(out, grad(snp.arange(3.0)), rtol=1e-6)


def test_results_are_in_jaxs_order():
    x = snp.array([[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    factors = lambda x: lax.linalg.svd(x, full_matrices=False)
    closed = make_jaxpr(factors)(x)
    (e,) = closed.eqns
    assert [v.aval.shape for v in e.outvars] == [(2,), (3, 2), (2, 2)]
    values, u, vh = e.primitive.bind(x, **e.params)
    assert values.tolist() == [3, 2]
    for a, b in zip(factors(x), (u, values, vh), strict=True):
        np.testing.assert_array_equal(a, b)
    avals, _ = e.primitive.abstract_eval(*[v.aval for v in e.invars], **e.params)
    assert [a.shape for a in avals] == [(2,), (3, 2), (2, 2)]
    values = make_jaxpr(lambda x: lax.linalg.svd(x, compute_uv=False))(x)
    assert [v.aval.shape for v in values.eqns[0].outvars] == [(2,)]
