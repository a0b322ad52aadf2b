"""Tracebacks show the user's code: no frame of the package between the call and the fault."""

import itertools
import pickle
import re
import sys
import traceback
from types import SimpleNamespace

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core import boundary as boundaries
from stretto._engine.core.boundary import _chain, boundary, bounded
from stretto._engine.core.errors import SizeError
from stretto._engine.core.position import PACKAGE


def fault(x):
    return x + snp.ones(7)  # the user's line


def raised(call):
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def files(error):
    return [entry.filename for entry in traceback.extract_tb(error.__traceback__)]


X = snp.ones(3)
BATCH = snp.ones((5, 3))
CALLS = {
    "jit": lambda: st.jit(fault)(X),
    "jit of a tree": lambda: st.jit(lambda t: fault(t["x"]))({"x": X}),
    "trace": lambda: st.jit(fault).trace(X),
    "lower": lambda: st.jit(fault).lower(X),
    "vmap": lambda: st.vmap(fault)(BATCH),
    "grad": lambda: st.grad(lambda x: fault(x).sum())(X),
    "value_and_grad": lambda: st.value_and_grad(lambda x: fault(x).sum())(X),
    "jvp": lambda: st.jvp(fault, (X,), (X,)),
    "linearize": lambda: st.linearize(fault, X),
    "vjp": lambda: st.vjp(fault, X),
    "jacfwd": lambda: st.jacfwd(fault)(X),
    "jacrev": lambda: st.jacrev(fault)(X),
    "hessian": lambda: st.hessian(lambda x: fault(x).sum())(X),
    "eval_shape": lambda: st.eval_shape(fault, X),
    "make_graph": lambda: st.make_graph(fault)(X),
    "nested": lambda: st.jit(st.vmap(st.grad(lambda x: st.jit(fault)(x).sum())))(BATCH),
    "scan": lambda: st.jit(lambda x: st.lax.scan(lambda c, y: (fault(c), y), x, x))(X),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_only_the_users_frames_are_shown(call):
    error = raised(call)
    shown = files(error)
    assert not [name for name in shown if name.startswith(PACKAGE)]
    lines = [entry.line for entry in traceback.extract_tb(error.__traceback__)]
    assert lines[-1] == "return x + snp.ones(7)  # the user's line"
    assert set(shown) == {__file__}
    notes = error.__notes__
    assert len(notes) == 1 and "stretto.config.traceback_filtering = 'off'" in notes[0]
    assert PACKAGE not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_off_shows_all(call):
    with st.config(traceback_filtering="off"):
        error = raised(call)
    assert any(name.startswith(PACKAGE) for name in files(error))
    assert not hasattr(error, "__notes__")


@pytest.mark.parametrize(
    "call",
    [
        lambda: st.jit(lambda x: x)("text"),
        lambda: st.jit(lambda x: "text")(1.0),
        lambda: st.jit(lambda x: x if x > 0 else -x)(1.0),
        lambda: st.jit(lambda x, n: x, static_argnums=1)(1.0, []),
        lambda: st.vmap(lambda x: x)(1.0),
        lambda: st.grad(lambda x: x)(X),
        lambda: st.jvp(fault, X, X),
        lambda: st.linearize(snp.sin, 1.0)[1](1.0, 2.0),
        lambda: st.vjp(snp.sin, 1.0)[1](X),
        lambda: st.jit(snp.sin).lower(1.0).compile()(X),
        lambda: st.jit(snp.sin).lower(1.0).compile({"xla_nonsense": 1}),
    ],
)
def test_mistakes_in_a_call_point_at_the_call(call):
    error = raised(call)
    assert set(files(error)) == {__file__}
    shown = "".join(traceback.format_exception(error))
    assert PACKAGE not in shown and "During handling" not in shown


def test_the_users_own_errors_and_causes():
    def cause():
        raise KeyError("first")

    def f(x):
        try:
            st.jit(lambda x: cause())(x)
        except KeyError as error:
            raise ValueError("second") from error

    error = raised(lambda: st.vmap(f)(X))
    assert isinstance(error, ValueError) and isinstance(error.__cause__, KeyError)
    shown = "".join(traceback.format_exception(error))
    assert PACKAGE not in shown
    assert "in cause" in shown and "direct cause" in shown


def test_an_error_met_twice_is_noted_once():
    kept = []

    def f(x):
        try:
            return st.jit(fault)(x)
        except TypeError as error:
            kept.append(error)
            raise

    for _ in range(2):
        with pytest.raises((TypeError, ValueError)):
            st.jit(st.vmap(st.jit(fault)))(BATCH)
    error = raised(lambda: st.jit(st.vmap(st.jit(fault)))(BATCH))
    assert len(error.__notes__) == 1
    with pytest.raises(type(error)) as again:
        bounded(lambda: raised_again(error))()
    assert again.value is error and len(error.__notes__) == 1


def raised_again(error):
    raise error


def test_deep_recursion_ends_with_its_own_error():
    @st.jit
    def forever(x):
        return forever(x + 1)

    limit = sys.getrecursionlimit()
    error = raised(lambda: forever(1.0))
    assert isinstance(error, RecursionError) and sys.getrecursionlimit() == limit
    assert not [name for name in files(error) if name.startswith(PACKAGE)]


def test_what_is_no_error_passes_as_it_is():
    def stop(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        st.jit(stop)(1.0)
    assert not hasattr(caught.value, "__notes__")
    assert float(st.jit(lambda x: x + 1)(1.0)) == 2  # the interpreter at rest is in place again


def test_boundary_and_bounded():
    with boundary:
        pass
    with pytest.raises(ZeroDivisionError) as caught, boundary:
        1 / 0  # noqa: B018
    assert not hasattr(caught.value, "__notes__")  # nothing was left out

    @bounded
    def f(x, y=2):
        """Doc."""
        return x + y

    assert (f(1), f(1, y=3), f.__name__, f.__doc__) == (3, 4, "f", "Doc.")


def test_errors_can_be_pickled():
    error = raised(lambda: st.jit(float)(1.0))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is st.errors.TracedValueError and str(again) == str(error)


def test_nothing_changes_where_nothing_is_raised():
    np.testing.assert_array_equal(st.vmap(st.grad(lambda x: (x * x).sum()))(BATCH), 2 * BATCH)


# What a message says inside transformations


SHAPES = {
    "add": (lambda x: x + snp.ones(7), r"shapes \(2, 3\) and \(7,\)"),
    "matmul": (lambda x: x @ snp.ones((7, 2)), r"x: float32\[2,3\]"),
    "concatenate": (
        lambda x: snp.concatenate([x, snp.ones((4, 5))]),
        r"except along axis 0; got float32\[2,3\] \(array 0\) and float32\[4,5\]",
    ),
    "pad": (lambda x: st.lax.pad(x, 0.0, [(1, 1, 0)]), r"each axis of float32\[2,3\]"),
    "dot_general": (
        lambda x: st.lax.dot_general(x, snp.ones((7, 2)), (((1,), (0,)), ((), ()))),
        r"axis 1 of x: float32\[2,3\]",
    ),
}
WAYS = {
    "vmap": lambda f: st.vmap(f)(snp.ones((5, 2, 3))),
    "vmap of vmap": lambda f: st.vmap(st.vmap(f))(snp.ones((4, 5, 2, 3))),
    "vmap of grad of jit": lambda f: st.vmap(st.grad(lambda x: st.jit(f)(x).sum()))(
        snp.ones((5, 2, 3))
    ),
    "jit of vmap of grad": lambda f: st.jit(st.vmap(st.grad(lambda x: f(x).sum())))(
        snp.ones((5, 2, 3))
    ),
    "vmap of jvp": lambda f: st.vmap(lambda x: st.jvp(f, (x,), (x,)))(snp.ones((5, 2, 3))),
    "grad of vmap": lambda f: st.grad(lambda x: st.vmap(f, in_axes=2)(x).sum())(
        snp.ones((2, 3, 5))
    ),
    "scan in vmap": lambda f: st.vmap(lambda x: st.lax.scan(lambda c, y: (c, f(y)), 0, x))(
        snp.ones((5, 4, 2, 3))
    ),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("fun, message", SHAPES.values(), ids=SHAPES)
def test_shapes_are_those_of_one_example_at_the_users_line(way, fun, message):
    error = raised(lambda: way(fun))
    assert re.search(message, str(error)), error
    last = traceback.extract_tb(error.__traceback__)[-1]
    assert last.filename == __file__
    first = fun.__code__.co_firstlineno
    assert first <= last.lineno <= first + 1


LEAKS = {
    "jit": (lambda f: st.jit(f)(X), r"the argument x"),
    "eval_shape": (lambda f: st.eval_shape(f, X), r"the argument x"),
    "vmap": (lambda f: st.vmap(f)(BATCH), r"one of 5 examples that vmap maps over"),
    "vmap in chunks": (lambda f: st.vmap(f, chunk_size=2)(BATCH), r"the argument x"),
    "grad": (lambda f: st.grad(f)(X), r"a value being differentiated"),
    "jvp": (lambda f: st.jvp(f, (X,), (X,)), r"a value being differentiated"),
    "jacfwd": (lambda f: st.jacfwd(f)(X), r"a value being differentiated"),
    "cond": (lambda f: st.lax.cond(True, f, f, X), r"the argument operands\[0\]"),
    "nested": (lambda f: st.jit(st.vmap(st.grad(f)))(BATCH), r"one of 5 .*, the argument x"),
}


@pytest.mark.parametrize("way, origin", LEAKS.values(), ids=LEAKS)
def test_escaped_values_say_which_call_made_them(way, origin):
    kept = []

    def leak(x):
        kept.extend([x, x * 2])
        return (x * x).sum()

    way(leak)
    for value in kept[:2]:
        for use in (lambda v: v + 1, bool, st.jit(lambda v: v * 2)):
            with pytest.raises(
                st.errors.EscapedTracerError,
                match=rf"({origin}|computed by mul at .*test_boundary.py:\d+ \(leak\)).*, while "
                r"leak was transformed for .*test_boundary.py:\d+ \(",
            ):
                use(value)


def test_values_that_escape_a_loop():
    kept = []

    def body(carry, x):
        kept.append(x)
        return carry, x

    st.lax.scan(body, 0.0, X)
    with pytest.raises(
        st.errors.EscapedTracerError,
        match=r"the argument xs.*, while body was transformed for .*test_boundary.py:\d+ "
        r"\(test_values_that_escape_a_loop\)",
    ):
        kept[0] + 1


LOOPS = {
    "scan": lambda f: st.lax.scan(lambda c, _: (f(c), None), snp.ones(2), length=2),
    "while_loop": lambda f: st.lax.while_loop(lambda c: c[0] < 3, f, snp.ones(2)),
    "fori_loop": lambda f: st.lax.fori_loop(0, 3, lambda i, c: f(c), snp.ones(2)),
    "cond": lambda f: st.lax.cond(True, f, f, snp.ones(2)),
    "map": lambda f: st.lax.map(f, snp.ones((3, 2))),
    "associative_scan": lambda f: st.lax.associative_scan(lambda x, y: f(x), snp.ones(4)),
    "checkpoint": lambda f: st.checkpoint(f)(snp.ones(2)),
    "custom_jvp": lambda f: with_rule(f)(snp.ones(2)),
    "custom_root": lambda f: st.lax.custom_root(f, snp.ones(2), lambda f, x: f(x), None),
}


def with_rule(f):
    function = st.custom_jvp(f)
    function.defjvps(None)
    return function


@pytest.mark.parametrize("name", LOOPS)
def test_at_rest_too(name):
    def wrong(x):
        return x @ snp.ones(7)

    with pytest.raises((TypeError, ValueError)) as caught:
        LOOPS[name](wrong)
    files = [entry.filename for entry in traceback.extract_tb(caught.value.__traceback__)]
    assert all(file == __file__ for file in files), files


def test_errors_that_come_from_one_another():
    """Each is looked at once, though they are in a ring."""
    first, second = ValueError("first"), TypeError("second")
    first.__context__, second.__cause__, second.__context__ = second, first, first
    assert [*itertools.islice(_chain(first), 5)] == [first, second]


# Which frames are left out


def frame(file, module="__main__", name="f", qualname=None, **names):
    code = SimpleNamespace(co_filename=file, co_name=name, co_qualname=qualname or name)
    return SimpleNamespace(f_code=code, f_globals={"__name__": module, **names})


LIBRARIES, STANDARD = boundaries._LIBRARIES, boundaries._STANDARD


@pytest.mark.parametrize(
    ("file", "module", "after_ours", "at_all"),
    [
        (PACKAGE + "numpy/shape.py", "stretto.numpy.shape", True, True),
        ("<string>", "stretto.nn", True, True),
        ("<string>", "stretto_more", False, False),
        ("<string>", "__main__", False, False),
        (LIBRARIES + "numpy/core.py", "numpy", True, False),
        (LIBRARIES + "jaxlib/xla.py", "jaxlib", True, False),
        (LIBRARIES + "torch/nn.py", "torch", False, False),
        ("<frozen importlib._bootstrap>", "importlib", True, False),
        (STANDARD + "json/decoder.py", "json", True, False),
        (STANDARD + "site-packages/torch/nn.py", "torch", False, False),
        ("/home/user/mine.py", "__main__", False, False),
        (__file__, "__main__", False, False),
    ],
)
def test_frames_of_libraries_are_left_out_below_ours(file, module, after_ours, at_all):
    one = frame(file, module)
    assert boundaries._is_hidden(one, True) is after_ours
    assert boundaries._is_hidden(one, False) is at_all


@pytest.mark.parametrize(
    ("made", "is_public"),
    [
        (frame(PACKAGE + "numpy/shape.py", name="stack", __all__=["stack"]), True),
        (frame(PACKAGE + "_engine/a.py", name="stack", __all__=["stack"]), True),
        (frame(PACKAGE + "numpy/shape.py", name="helper", __all__=["stack"]), False),
        (frame(PACKAGE + "numpy/shape.py", name="stack"), True),
        (frame(PACKAGE + "numpy/shape.py", name="_stack"), False),
        (frame(PACKAGE + "numpy/shape.py", name="go", qualname="stack.<locals>.go"), False),
        (frame(boundaries._ENGINE + "a.py", name="stack"), False),
    ],
)
def test_which_functions_users_call(made, is_public):
    assert boundaries._is_public(made) is is_public


def test_errors_in_a_ring_are_gone_through_once():
    one, two, three = KeyError("1"), KeyError("2"), KeyError("3")
    one.__context__, two.__cause__, three.__context__ = two, three, one
    assert [*boundaries._chain(one)] == [one, two, three]


def test_only_what_was_raised_here_or_by_numpy_is_ours_to_handle():
    def raised(code, file):
        with pytest.raises(ValueError) as caught:
            exec(compile(code, file, "exec"), {})
        return caught.value

    foreign = raised("raise ValueError", "/home/user/mine.py")
    with pytest.raises(ValueError):
        boundaries.reraise_foreign(foreign)
    for file in (PACKAGE + "made.py", boundaries._NUMPY + "made.py"):
        boundaries.reraise_foreign(raised("raise ValueError", file))


def test_frames_between_the_users_are_taken_out():
    space = {}
    exec(compile("def ours(f): return f()", PACKAGE + "made.py", "exec"), space)

    def inner():
        raise KeyError("inner")

    with pytest.raises(KeyError) as caught:
        space["ours"](lambda: space["ours"](inner))
    assert boundaries._trim(caught.value)
    found = [f.name for f in traceback.extract_tb(caught.value.__traceback__)]
    assert found == ["test_frames_between_the_users_are_taken_out", "<lambda>", "inner"]
    assert not boundaries._trim(caught.value)


def test_only_what_was_asked_of_sizes_gets_the_name_of_a_function(monkeypatch):
    named = []
    monkeypatch.setattr(boundaries, "_name_function", named.append)
    errors = [SizeError("a"), ValueError("b"), KeyError("c")]
    for error in errors:
        boundaries._trim_all(error)
    assert named == errors[:1]
