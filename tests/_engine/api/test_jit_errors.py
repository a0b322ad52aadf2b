"""What jit refuses: traced values used as Python numbers, escaped ones, no arrays."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


@pytest.mark.parametrize(
    "f, message",
    [
        (lambda x, n: x if x > 0 else -x, r"bool\(\).*the argument x.*cond"),
        (lambda x, n: [x for _ in range(n)], "the argument n.*static_argnums"),
        (lambda x, n: [1, 2, 3][n], "index.*the argument n.*static_argnums"),
        (lambda x, n: float(x), r"float\(\).*the argument x.*astype"),
        (lambda x, n: int(n) + 1, r"int\(\).*the argument n"),
        (lambda x, n: complex(x), r"complex\(\).*the argument x"),
        (lambda x, n: np.asarray(x), "the argument x.*stretto.numpy"),
        (lambda x, n: np.sin(x), "the argument x.*stretto.numpy"),
        (lambda x, n: x.item(), "the argument x"),
        (
            lambda x, n: (x + n).tolist(),
            r"computed by add at .*test_jit_errors.py.*from the argument x, the argument n",
        ),
        (lambda x, n: bool(snp.any(x * 2 > 1)), "computed by .* from the argument x"),
        (lambda x, n: snp.zeros((n, 2)), "the argument n.*static_argnums"),
    ],
)
def test_a_traced_value_used_in_python_is_named(f, message):
    with pytest.raises(st.errors.TracedValueError, match=f"(?s){message}"):
        st.jit(f)(1.0, 2)


@pytest.mark.parametrize(
    "settings",
    [
        {"static_argnums": 1, "donate_argnums": (0, 1)},
        {"static_argnames": "n", "donate_argnames": "n"},
        {"static_argnames": "n", "donate_argnums": 1},
    ],
)
def test_no_argument_is_static_and_donated(settings):
    with pytest.raises(ValueError, match="is both static and donated"):
        st.jit(lambda x, n: x, **settings)


def test_loop_condition_is_named():
    def f(params):
        while params["w"][0] < 3:
            params["w"][0] += 1
        return params

    with pytest.raises(
        st.errors.TracedValueError, match=r"from the argument params\['w'\]\[0\].*while_loop"
    ):
        st.jit(f)({"w": [1.0]})


def test_escaped_tracers():
    kept = []
    f = st.jit(lambda x: kept.append(x * 2) or x)
    f(1.0)
    for use in (
        lambda v: v + 1,
        float,
        bool,
        lambda v: st.jit(lambda y: y + v)(1.0),
        st.jit(lambda y: y),
    ):
        with pytest.raises(
            st.errors.EscapedTracerError, match=r"outlived.*computed by mul.*the argument x"
        ):
            use(kept[0])


@pytest.mark.parametrize(
    "args, message",
    [
        ((1.0, "text"), "f: y must be an array or a number; got builtins.str"),
        (
            (1.0, {"a": [1, object()]}),
            r"f: y\['a'\]\[1\] must be an array or a number; got builtins.object",
        ),
        ((np.array(["a"]), 1.0), "dtype <U1"),
    ],
)
def test_arguments_that_are_no_arrays_are_named(args, message):
    def f(x, y):
        return x

    with pytest.raises(TypeError, match=message):
        st.jit(f)(*args)


def test_results_that_are_no_arrays_are_named():
    def f(x):
        return {"x": x, "name": "text"}

    with pytest.raises(TypeError, match=r"f: the result\['name'\] must be an array .*builtins.str"):
        st.jit(f)(1.0)


@pytest.mark.parametrize(
    "result, path",
    [
        ("text", "the result must be"),
        ((1.0, "text"), r"the result\[1\] must be"),
        ({"a": [1.0, object()]}, r"the result\['a'\]\[1\] must be"),
        (np.array(["text"]), "dtype <U4"),
        (lambda x: x, "the result must be .* got builtins.function"),
    ],
)
def test_what_a_function_may_not_return(result, path):
    with pytest.raises(TypeError, match=path):
        st.jit(lambda x: result)(1.0)


def test_errors_of_the_function_leave_no_trace():
    fail = [True]

    def f(x):
        if fail[0]:
            raise KeyError("later")
        return x + 1

    g = st.jit(f)
    with pytest.raises(KeyError, match="later"):
        g(1.0)
    fail[0] = False
    assert float(g(1.0)) == 2
    assert float(snp.float32(1) + 1) == 2  # the interpreter at rest is in place again
