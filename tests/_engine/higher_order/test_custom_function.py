"""Functions with rules of the user's own: arguments by name, static, traced; mistakes."""

import functools

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


def with_rules(fun, fwd, bwd, **options):
    made = st.custom_vjp(fun, **options)
    made.defvjp(fwd, bwd)
    return made


def total(f):
    return lambda *args: f(*args).sum()


def plain(x, y):
    return x * y


# Arguments


def test_names_and_defaults():
    def scale(x, by=2.0, *more):
        return x * by * sum(more, 1.0)

    f = with_rules(
        scale,
        lambda x, by, *more: (scale(x, by, *more), (by, more)),
        lambda res, ct: (ct * res[0], None, *[ct * 0 + 9] * len(res[1])),
    )
    assert f.__name__ == "scale" and repr(f) == "<custom_vjp scale>"
    assert float(f(3.0)) == 6 and float(f(by=4.0, x=3.0)) == 12
    assert float(st.grad(f)(3.0)) == 2
    assert float(st.grad(lambda x: f(by=5.0, x=x))(3.0)) == 5
    assert [float(g) for g in st.grad(f, (2, 3))(1.0, 1.0, 1.0, 1.0)] == [9, 9]
    with pytest.raises(TypeError, match="custom_vjp: scale: missing a required argument: 'x'"):
        f()
    by_name = with_rules(lambda x, *, n: x, None, None)
    with pytest.raises(TypeError, match="takes n by name only"):
        by_name(1.0, n=2)
    with pytest.raises(TypeError, match=r"^custom_vjp: function: too many positional arguments"):
        by_name(1.0, 2)  # as many as there are in all


def test_methods():
    class Layer:
        def __init__(self, scale):
            self.scale = scale

        @functools.partial(st.custom_vjp, nondiff_argnums=(0,))
        def __call__(self, x):
            return x * self.scale

        def fwd(self, x):
            return self(x), None

        def bwd(self, _, ct):
            return (ct * self.scale * 10.0,)

        __call__.defvjp(fwd, bwd)

    layer = Layer(2.0)
    assert float(layer(3.0)) == 6
    for g in (st.grad(layer), st.jit(st.grad(layer)), st.grad(st.jit(layer))):
        assert float(g(3.0)) == 20


@pytest.mark.parametrize("named", [{"nondiff_argnums": (0, 2)}, {"nondiff_argnames": ("f", "n")}])
def test_arguments_that_are_not_differentiated(named):
    def apply(f, x, n=2):
        return f(x) * n

    def fwd(f, x, n):
        return f(x) * n, x

    def bwd(f, n, x, ct):
        assert callable(f) and type(n) is int
        return (ct * 100.0 * n,)

    made = with_rules(apply, fwd, bwd, **named)
    np.testing.assert_allclose(made(snp.sin, 1.0), 2 * np.sin(1), rtol=1e-6)
    assert float(st.grad(lambda x: made(snp.sin, x, n=3))(1.0)) == 300
    assert float(st.jit(st.grad(lambda x: made(snp.sin, x)))(1.0)) == 200


@functools.partial(st.custom_vjp, nondiff_argnums=(0, 1))
def clip_gradient(low, high, x):
    return x


clip_gradient.defvjp(
    lambda low, high, x: (x, None), lambda low, high, _, ct: (snp.clip(ct, low, high),)
)


def test_traced_arguments_that_are_not_differentiated():
    """They mean what they are when the rule runs, which may be under another transformation."""
    f = lambda low, x: 5.0 * clip_gradient({"low": low}["low"], low + 2, x)
    low, x = snp.arange(3.0), snp.ones(3)
    loss = lambda low, x: (f(low, x) * snp.arange(3.0)).sum()
    np.testing.assert_array_equal(st.vmap(st.grad(f, 1))(low, x), [2, 3, 4])
    np.testing.assert_array_equal(st.grad(total(st.vmap(f)), 1)(low, x), [2, 3, 4])
    np.testing.assert_array_equal(st.grad(st.jit(loss), 1)(low, x), [0, 3, 4])
    with pytest.raises(
        st.errors.PerturbationError,
        match="clip_gradient is differentiated by low, which is in nondiff",
    ):
        st.grad(loss)(low, x)
    with pytest.raises(
        TypeError, match="clip_gradient is differentiated by low, which is in nondiff"
    ):
        st.grad(st.jit(loss), (0, 1))(low, x)
    stopped = lambda low, x: loss(st.lax.stop_gradient(low), x)
    np.testing.assert_array_equal(st.grad(stopped)(low, x), np.zeros(3))


# Mistakes


KINDS = {"custom_jvp": st.custom_jvp, "custom_vjp": st.custom_vjp}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda k: k(3), TypeError, "expected a function, got int"),
        (
            lambda k: k(plain, nondiff_argnums=(-1,)),
            ValueError,
            "nondiff_argnums of plain must be positions from 0 on, got",
        ),
        (
            lambda k: k(plain, nondiff_argnames="z"),
            ValueError,
            "nondiff_argnames names 'z', but plain takes x, y",
        ),
    ],
    ids=["no function", "a negative position", "an unknown name"],
)
def test_mistakes_in_making_are_named(kind, make, error, message):
    with pytest.raises(error, match=f"{kind}: {message}"):
        make(KINDS[kind])


CALLS = {
    "a position not there": (
        {"nondiff_argnums": 2},
        lambda f: f(1.0, 2.0),
        "nondiff_argnums names argument 2, but plain was called with 2",
    ),
    "an argument missing": ({}, lambda f: f(1.0), "plain: missing a required argument: 'y'"),
    "a function": (
        {},
        lambda f: f(len, 1.0),
        "plain: x must be an array or a number; got .*in nondiff_argnums",
    ),
    "a leaf": ({}, lambda f: f({"a": [1.0, "b"]}, 1.0), r"plain: x\['a'\]\[1\] must be an array"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mistake", CALLS)
def test_mistakes_in_calls_are_named(kind, mistake):
    options, call, message = CALLS[mistake]
    f = given_rules(KINDS[kind](plain, **options))
    with pytest.raises(TypeError, match=f"{kind}: {message}"):
        call(f)


def given_rules(f):
    if isinstance(f, st.custom_vjp):
        f.defvjp(lambda *args: None, lambda *args: None)
    else:
        f.defjvp(lambda *args: None)
    return f


@pytest.mark.parametrize("kind", KINDS)
def test_results_that_are_no_arrays_are_refused(kind):
    f = given_rules(KINDS[kind](lambda: {"x": "a"}))
    for call in (f, st.jit(f)):
        with pytest.raises(TypeError, match=f"{kind}: function: the result must be an array"):
            call()


@pytest.mark.parametrize("kind", KINDS)
def test_functions_without_a_signature(kind):
    class Opaque:
        __signature__ = "none"

        def __call__(self, x, y):
            return x * y

    f = given_rules(KINDS[kind](Opaque()))
    assert float(f(2.0, 3.0)) == 6
    with pytest.raises(
        TypeError, match=f"{kind}: Python does not know .* Opaque; pass y by position"
    ):
        f(2.0, y=3.0)


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
def test_a_function_without_rules_is_not_called(kind):
    called = []
    with pytest.raises(AttributeError, match=f"{kind}: append has no rule"):
        getattr(st, kind)(called.append)(1.0)
    assert not called
