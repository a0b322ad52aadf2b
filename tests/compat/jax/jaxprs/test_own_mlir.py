"""How primitives of libraries are compiled."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax.jaxprs import own
from stretto.compat.jax.jaxprs.primitive import Primitive


def host_sine(**options):
    p = Primitive("host sine")
    p.multiple_results = True
    p.def_impl(lambda x: [snp.sin(x)])
    p.def_abstract_eval(lambda x: [x])

    def rule(ctx, x):
        assert ctx.avals_in == ctx.avals_out
        assert ctx.replace(avals_out=None).avals_out is None
        out, _, keep = own.emit_python_callback(
            ctx, lambda x: (10 * np.asarray(x),), None, [x], ctx.avals_in, ctx.avals_out, **options
        )
        ctx.module_context.add_keepalive(keep)
        return out

    own.register_lowering(p, rule)
    return p


def test_rules_that_call_python():
    p = host_sine(has_side_effect=False)
    assert p.bind(0.0)[0] == 0.0
    assert float(st.jit(p.bind)(2.0)[0]) == 20.0


def test_rules_that_write_are_refused():
    p = Primitive("written")
    p.def_impl(lambda x: x)
    own.register_lowering(p, lambda ctx, x: [own.ir.Value(x)])
    with pytest.raises(
        NotImplementedError, match=r"mlir\.ir\.Value is not in Stretto: .*lower_fun"
    ):
        st.jit(p.bind)(1.0)


def test_rules_of_other_platforms_are_left_aside():
    p = Primitive("elsewhere")
    p.def_impl(lambda x: x)
    own.register_lowering(p, lambda ctx, x: 1 / 0, platform="tpu")
    assert float(st.jit(p.bind)(1.0)) == 1.0


def test_functions_give_lists():
    assert own.lower_fun(lambda x: x, multiple_results=False)(None, 1) == [1]
    assert own.lower_fun(lambda x: (x, 2))(None, 1) == [1, 2]
