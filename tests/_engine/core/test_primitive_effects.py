"""What effects say, and that programs unite those of their operations."""

import stretto as st
from stretto._engine.core.primitive import (
    CALLBACK,
    ORDERED,
    Effect,
    NamedAxis,
    names_axis,
    observable,
)


def test_callbacks_are_observable_and_named_axes_are_not():
    assert observable({CALLBACK})
    assert observable({ORDERED, NamedAxis("i")})
    assert not observable({NamedAxis("i")})
    assert not observable(())


def test_kinds_of_effects_are_observable_and_named_after_their_class():
    class Printing(Effect):
        pass

    assert observable({Printing()})
    assert (repr(Printing()), repr(Printing("ink"))) == ("Printing", "ink")


def test_a_named_axis_is_found_by_its_name():
    assert names_axis({CALLBACK, NamedAxis("i")}, "i")
    assert not names_axis({NamedAxis("i")}, "j")
    assert not names_axis({CALLBACK}, "callback")


def test_a_program_of_pure_operations_has_no_effects():
    assert st.make_graph(st.jit(lambda x: x * 2))(1.0).effects == frozenset()
