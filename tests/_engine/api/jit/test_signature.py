"""Arguments by position and by name: found in signatures and in calls."""

import functools

import pytest

import stretto as st
from stretto._engine.api.jit.signature import (
    NO_ARGUMENTS,
    ArgumentSet,
    Static,
    argument_set,
    jitted_at,
    no_overlap,
    note_traced,
)


def f(x, y, /, z=0, *, w=1):
    return x, y, z, w


@pytest.mark.parametrize(
    "fun, numbers, names, expected",
    [
        (f, None, None, ArgumentSet((), ())),
        (f, 2, None, ArgumentSet((2,), ("z",))),
        (f, (0, -1), None, ArgumentSet((0, 2), ("z",))),  # x cannot be passed by name
        (f, None, "z", ArgumentSet((2,), ("z",))),
        (f, None, ["w"], ArgumentSet((), ("w",))),
        (lambda *xs, **named: xs, (-1, 3), None, ArgumentSet((-1, 3), ())),
        (lambda a, *rest: a, 0, None, ArgumentSet((0,), ("a",))),
        (min, 1, None, ArgumentSet((1,), ())),  # Python does not tell its signature
    ],
)
def test_each_is_found_from_the_other(fun, numbers, names, expected):
    assert argument_set(fun, numbers, names, "static") == expected


@pytest.mark.parametrize(
    "fun, numbers, names, expected",
    [
        (f, [], "z", ArgumentSet((), ("z",))),
        (f, {1}, ("z", "w"), ArgumentSet((1,), ("w", "z"))),
        (f, -1, "w", ArgumentSet((2,), ("w",))),
        (lambda *xs, **named: xs, (-1, 3), "any", ArgumentSet((-1, 3), ("any",))),
    ],
)
def test_both_say_all(fun, numbers, names, expected):
    assert argument_set(fun, numbers, names, "static") == expected


def test_a_function_with_the_signature_of_one_inside():
    def inside(x, flag):
        return x if flag else -x

    @functools.wraps(inside)
    def f(first, x, flag):
        return inside(x, flag) if first else x

    # By its signature flag is the argument 1: here that is x, which has to stay an array.
    jitted = st.jit(f, static_argnums=(0,), static_argnames=("flag",))
    assert float(jitted(True, 2.0, flag=False)) == -2.0
    assert float(st.grad(lambda x: jitted(True, x, flag=False))(2.0)) == -1.0


@pytest.mark.parametrize(
    "numbers, names, error, message",
    [
        (3, None, ValueError, "static_argnums names argument 3, but f takes 3 positional"),
        (-4, None, ValueError, "static_argnums names argument -4, but f takes 3 positional"),
        (None, "v", ValueError, "static_argnames names 'v', but f takes x, y, z, w"),
        (1.0, None, TypeError, "static_argnums must be an int or a sequence of ints; got 1.0"),
        ("x", None, TypeError, "static_argnums must be an int or a sequence of ints; got 'x'"),
        (None, [0], TypeError, r"static_argnames must be a name or a sequence.*got \[0\]"),
        (None, 0, TypeError, "static_argnames must be a name or a sequence of names; got 0"),
    ],
)
def test_what_is_not_there(numbers, names, error, message):
    with pytest.raises(error, match=f"jit: {message}"):
        argument_set(f, numbers, names, "static")


def test_in_a_call():
    chosen = ArgumentSet((0, -1), ("mode",))
    static, (positional, named) = chosen.separate((1, 2, 3), {"mode": "a", "k": 4}, "f")
    assert [(p, s.value) for p, s in static] == [(0, 1), (2, 3), ("mode", "a")]
    assert (positional, named) == ((2,), {"k": 4})
    assert NO_ARGUMENTS.separate((1,), {"k": 2}, "f") == ((), ((1,), {"k": 2}))
    assert not NO_ARGUMENTS and chosen
    assert chosen.present((), {}) == []


def test_leaves():
    chosen = ArgumentSet((1,), ("k",))
    args, kwargs = ([1, 2], {"a": 3, "b": 4}, 5), {"m": 6, "k": (7, 8), "c": None}
    assert chosen.leaves(args, kwargs, ()) == (
        *(False, False, True, True, False),
        *(True, True, False),
    )
    assert chosen.leaves(args, kwargs, {0, "m"}) == (True, True, False, True, True)


def test_static_values():
    one, same, other = (Static(v, "f", 0) for v in (1, 1, 1.0))
    assert one == same and hash(one) == hash(same)
    assert one != other and one != Static(True, "f", 0) and one != 1
    assert repr(Static("a", "f", 0)) == "'a'"
    with pytest.raises(ValueError, match=r"f: the static argument 'k' must be hashable.*got list"):
        Static([], "f", "k")


def test_overlap():
    no_overlap(ArgumentSet((0,), ("x",)), ArgumentSet((1,), ("y",)))
    with pytest.raises(ValueError, match="the argument 'x' is both static and donated"):
        no_overlap(ArgumentSet((0,), ("x",)), ArgumentSet((0,), ("x",)))
    with pytest.raises(ValueError, match="the argument 3 is both static and donated"):
        no_overlap(ArgumentSet((3,), ()), ArgumentSet((2, 3), ()))


def test_each_first_trace_of_a_code_is_counted():
    f, g = (lambda x: x), functools.partial(max, 1)
    assert jitted_at(f) == jitted_at(g) == 0
    for count in (1, 2):
        note_traced(f), note_traced(g)
        assert jitted_at(f) == count and jitted_at(g) == 0
