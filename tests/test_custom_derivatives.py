"""The home of custom derivatives: the names, and that they are those of the package."""

import stretto as st
from stretto import custom_derivatives


def test_the_names_are_one():
    for name in ("closure_convert", "custom_gradient", "custom_jvp", "custom_vjp"):
        assert getattr(custom_derivatives, name) is getattr(st, name)


def test_what_rules_are_told_has_a_home():
    """A rule tells symbols from arrays by type, with the names that users import."""
    f = st.custom_vjp(lambda x, y: x * y)

    def fwd(x, y):
        assert isinstance(x, custom_derivatives.CustomVJPPrimal)
        values = custom_derivatives.custom_vjp_primal_tree_values((x, y))
        return values[0] * values[1], (values, y.perturbed)

    def bwd(res, ct):
        (x, y), perturbed = res
        zero = custom_derivatives.zero_from_primal(y, symbolic_zeros=True)
        return ct * y, ct * x if perturbed else zero

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    assert float(st.grad(f)(2.0, 3.0)) == 3
    assert [float(g) for g in st.grad(f, (0, 1))(2.0, 3.0)] == [3, 2]
