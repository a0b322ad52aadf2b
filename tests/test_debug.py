"""Looking at values: printed and handed over, eagerly and compiled, under every transformation."""

import threading

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

X, XS = snp.array(2.0), snp.array([1.0, 2.0, 3.0])
WAYS = {"eager": lambda f: f, "jit": st.jit}


@pytest.fixture(params=list(WAYS))
def way(request):
    return WAYS[request.param]


class Seen(list):
    """What the functions below saw since the last look."""

    def show(self, x):
        st.debug.callback(lambda x: self.append(x.tolist()), x)
        return snp.sin(x) * x

    def take(self):
        seen = list(self)
        self.clear()
        return seen


@pytest.fixture
def seen():
    return Seen()


def test_values_and_results(way, seen):
    np.testing.assert_allclose(way(seen.show)(X), 2 * np.sin(2.0), rtol=1e-6)
    assert seen.take() == [2.0]


@pytest.mark.parametrize(
    "transform",
    [
        st.grad,
        st.value_and_grad,
        st.hessian,
        st.jacfwd,
        lambda f: st.grad(st.grad(f)),
        lambda f: lambda x: st.jvp(f, (x,), (x,)),
        lambda f: lambda x: st.vjp(f, x)[1](1.0),
        lambda f: lambda x: st.linearize(f, x)[1](1.0),
        lambda f: st.grad(st.checkpoint(f)),
        lambda f: st.grad(st.jit(f)),
        lambda f: st.grad(lambda x: st.lax.cond(x > 0, f, lambda x: x, x)),
    ],
    ids=[
        *("grad", "value_and_grad", "hessian", "jacfwd", "second", "jvp", "vjp", "linearize"),
        *("checkpoint", "jit", "cond"),
    ],
)
def test_derivatives_see_primals_once(transform, way, seen):
    way(transform(seen.show))(X)
    assert seen.take() == [2.0]


def test_examples_are_seen_one_by_one(way, seen):
    way(st.vmap(seen.show))(XS)
    assert seen.take() == [1, 2, 3]
    way(st.vmap(st.grad(seen.show)))(XS)
    assert seen.take() == [1, 2, 3]
    way(st.grad(lambda x: st.vmap(seen.show)(x).sum()))(XS)
    assert seen.take() == [1, 2, 3]
    way(st.vmap(st.vmap(seen.show)))(snp.ones((2, 3)))
    assert seen.take() == [1] * 6


def test_what_no_example_changes_is_seen_once(way, seen):
    way(st.vmap(lambda x: x + seen.show(X)))(XS)
    assert seen.take() == [2.0]


def test_mixed_arguments_of_examples(way):
    pairs = []

    def f(x, y):
        st.debug.callback(lambda x, y: pairs.append((float(x), float(y))), x, y)
        return x

    way(st.vmap(f, in_axes=(0, None)))(XS, X)
    assert pairs == [(1, 2), (2, 2), (3, 2)]


def test_ordered_examples(way):
    got = []
    f = lambda x: st.debug.callback(lambda x: got.append(float(x)), x, ordered=True)
    way(st.vmap(f))(XS)
    assert got == [1, 2, 3]


def test_steps_of_loops(way, seen):
    way(lambda xs: st.lax.scan(lambda c, x: (c + seen.show(x), None), 0.0, xs))(XS)
    assert seen.take() == [1, 2, 3]
    way(st.grad(lambda xs: st.lax.scan(lambda c, x: (c + seen.show(x), None), 0.0, xs)[0]))(XS)
    assert seen.take() == [1, 2, 3]
    way(lambda x: st.lax.fori_loop(0, 3, lambda i, c: (seen.show(c), c + 1)[1], x))(X)
    assert seen.take() == [2, 3, 4]
    way(lambda xs: st.lax.map(seen.show, xs))(XS)
    assert seen.take() == [1, 2, 3]


def doubling(seen):
    def body(c):
        seen.show(c)
        return c * 2

    return lambda x: st.lax.while_loop(lambda c: c < 10, body, x)


def test_steps_of_while_loops(way, seen):
    f = doubling(seen)
    assert way(f)(X) == 16
    assert seen.take() == [2, 4, 8]
    assert way(lambda x: st.jvp(f, (x,), (1.0,)))(X) == (16, 8)
    assert seen.take() == [2, 4, 8]
    _, linear = st.linearize(f, X)
    assert seen.take() == [2, 4, 8]
    assert way(linear)(1.0) == 8
    assert seen.take() == []


def test_an_example_that_has_stopped_is_not_seen(way, seen):
    np.testing.assert_array_equal(way(st.vmap(doubling(seen)))(XS), [16, 16, 12])
    assert seen.take() == [1, 2, 4, 8, 2, 4, 8, 3, 6]
    both = lambda x: st.jvp(doubling(seen), (x,), (1.0,))
    np.testing.assert_array_equal(way(st.vmap(both))(XS), [[16, 16, 12], [16, 8, 4]])
    assert seen.take() == [1, 2, 4, 8, 2, 4, 8, 3, 6]


def test_a_condition_that_is_seen(way):
    got = []

    def more(c):
        st.debug.callback(lambda c: got.append(float(c)), c)
        return c < 10

    way(lambda x: st.lax.while_loop(more, lambda c: c * 2, x))(X)
    assert got == [2, 4, 8, 16]


def test_branches_not_taken_are_not_seen(way, seen):
    f = lambda x: st.lax.cond(x > 1, seen.show, lambda x: x, x)
    way(f)(X)
    assert seen.take() == [2]
    way(f)(snp.array(0.5))
    assert seen.take() == []
    way(st.vmap(f))(XS)
    assert sorted(seen.take()) == [2, 3]
    way(st.vmap(st.grad(f)))(XS)
    assert sorted(seen.take()) == [2, 3]


def test_it_is_seen_though_nobody_needs_it(way, seen):
    def f(x):
        seen.show(x)
        st.lax.scan(lambda c, _: ((seen.show(c), c + 1)[1], None), x, None, length=2)
        st.jit(seen.show)(x * 10)
        return x

    way(f)(X)
    assert sorted(seen.take()) == [2, 2, 3, 20]


def test_nothing_comes_back(way, seen):
    assert way(lambda x: st.debug.callback(lambda x: 7, x))(X) is None
    assert way(st.grad(lambda x: (seen.show(x), x * 3)[1]))(X) == 3


def test_what_is_no_array_is_handed_on(way):
    got = []

    def f(x):
        note = lambda x, *rest, **named: got.append((type(x), rest, named))
        st.debug.callback(note, x, "text", None, len, several=["a", None], name="n")

    way(f)(X)
    assert got == [(st.Array, ("text", None, len), {"several": ["a", None], "name": "n"})]


def test_rules_of_the_user_may_look(way, capsys):
    @st.custom_vjp
    def f(x):
        return x * x

    def backward(x, ct):
        st.debug.print("{} {}", x, ct)
        return (2 * x * ct,)

    f.defvjp(lambda x: (f(x), x), backward)
    assert way(st.grad(f))(X) == 4
    assert capsys.readouterr().out == "2.0 1.0\n"


def test_threads(seen):
    f = st.jit(lambda x: st.lax.scan(lambda c, _: (seen.show(c), None), x, None, length=20)[0])
    f(X)
    seen.clear()
    threads = [threading.Thread(target=f, args=(snp.array(float(i)),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 80


# print


def test_formats(way, capsys):
    def f(x, i):
        st.debug.print("{} and {:>5} and {n:03d} {flag} {text!r:>5} {}", x, i, x[0], n=i, flag=True,
                       text="t")  # fmt: skip

    way(f)(snp.array([1.0, 2.5]), snp.array(7))
    assert capsys.readouterr().out == "[1.  2.5] and     7 and 007 True   't' 1.0\n"


def test_parts_trees_and_braces(way, capsys):
    def f(x):
        st.debug.print("{{}} {0.shape} {0.dtype} {0[1]:.1f} {1[a]} {2}", x, {"a": x[0]}, (x, None))

    way(f)(XS)
    want = "{} (3,) float32 2.0 1.0 (Array([1., 2., 3.], dtype=float32), None)\n"
    assert capsys.readouterr().out == want


def test_no_arguments(way, capsys):
    way(lambda x: (st.debug.print("here"), x)[1])(X)
    assert capsys.readouterr().out == "here\n"


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.int8, np.complex64])
def test_numbers_of_any_dtype_take_formats(dtype, way, capsys):
    way(lambda x: st.debug.print("{:4}|{}", x, x))(snp.array(1).astype(dtype))
    text = format(np.ones((), dtype)[()], "4")
    assert capsys.readouterr().out == f"{text}|{np.ones((), dtype)!s}\n"


def test_print_options_are_those_where_it_was_called(way, capsys):
    with np.printoptions(precision=2):
        f = st.jit(lambda x: st.debug.print("{}", x)).lower(snp.array([0.12345])).compile()
    f(snp.array([0.12345]))
    st.debug.print("{}", snp.array([0.12345]))
    assert capsys.readouterr().out == "[0.12]\n[0.12345]\n"


def test_order(capsys):
    def f(x):
        for i in range(20):
            st.debug.print("{}", x + i, ordered=True)

    st.jit(f)(snp.array(0))
    assert capsys.readouterr().out.split() == [str(i) for i in range(20)]


@pytest.mark.parametrize(
    "fmt, args, kwargs, problem",
    [
        ("{} {}", (1,), {}, "uses argument 1, and 1 were given by position"),
        ("{y}", (), {"x": 1}, "uses 'y', which was not given; the arguments given by name: x"),
        ("{x}", (1,), {"x": 1}, "does not use the arguments 0"),
        ("{}", (1,), {"x": 1, "y": 2}, "does not use the arguments x, y"),
        ("{:d}", (1.5,), {}, "has 'd' for an argument that does not take it"),
        ("{:.2f}", (XS,), {}, "has '.2f' for an argument that does not take it"),
        ("{x.shape} {", (), {"x": 1}, "'{' encountered|expected '}'"),
    ],
)
def test_formats_that_do_not_fit(fmt, args, kwargs, problem, way):
    with pytest.raises(ValueError, match=problem):
        way(lambda args, kwargs: st.debug.print(fmt, *args, **kwargs))(args, kwargs)


def test_formats_are_checked_while_tracing():
    with pytest.raises(ValueError, match=r"debug\.print: the format '{:d}' has 'd'"):
        st.make_graph(lambda x: st.debug.print("{:d}", x))(1.5)
    with pytest.raises(TypeError, match="fmt must be a string to format, got Array"):
        st.debug.print(X)
    with pytest.raises(TypeError, match=r"debug\.callback: callback must be a function, got Array"):
        st.debug.callback(X)
