"""Classes for annotations and isinstance: what they hold."""

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto import typing
from stretto._engine.higher_order.custom_function import (
    custom_vjp_primal_tree_values,
    zero_from_primal,
)
from stretto.typing import ArrayLike, DTypeLike


def test_what_is_like_an_array():
    for x in (snp.ones(2), np.ones(2), np.float32(1), True, 1, 1.5, 1j):
        assert isinstance(x, ArrayLike)
    assert not isinstance([1.0], ArrayLike) and not isinstance("a", ArrayLike)
    assert str in DTypeLike.__args__ and np.dtype in DTypeLike.__args__


def test_every_class_is_there():
    for name in typing.__all__:
        assert getattr(typing, name) is not None


def test_what_rules_are_told_has_a_home():
    """A rule tells symbols from arrays by type, with the names that users import."""
    f = st.custom_vjp(lambda x, y: x * y)

    def fwd(x, y):
        assert isinstance(x, typing.CustomVJPPrimal)
        values = custom_vjp_primal_tree_values((x, y))
        return values[0] * values[1], (values, y.perturbed)

    def bwd(res, ct):
        (x, y), perturbed = res
        zero = zero_from_primal(y, symbolic_zeros=True)
        return ct * y, ct * x if perturbed else zero

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    assert float(st.grad(f)(2.0, 3.0)) == 3
    assert [float(g) for g in st.grad(f, (0, 1))(2.0, 3.0)] == [3, 2]
